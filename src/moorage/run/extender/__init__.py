"""Plugins behind a stock kube-scheduler: the verbs of an extender, answered by the plugins of a profile."""

from moorage.run.extender.application import extender_app
from moorage.run.extender.selecting import ServedProfile, select
from moorage.run.extender.verbs import ExtenderVerbs

__all__ = ["ExtenderVerbs", "ServedProfile", "extender_app", "select"]
