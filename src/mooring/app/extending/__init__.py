"""Plugins behind a stock kube-scheduler: the verbs of an extender, answered by the plugins of a profile."""

from mooring.app.extending.application import extender_app
from mooring.app.extending.selecting import Served, select
from mooring.app.extending.verbs import ExtenderVerbs

__all__ = ["ExtenderVerbs", "Served", "extender_app", "select"]
