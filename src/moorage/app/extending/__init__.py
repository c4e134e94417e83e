"""Plugins behind a stock kube-scheduler: the verbs of an extender, answered by the plugins of a profile."""

from moorage.app.extending.application import extender_app
from moorage.app.extending.selecting import Served, select
from moorage.app.extending.verbs import ExtenderVerbs

__all__ = ["ExtenderVerbs", "Served", "extender_app", "select"]
