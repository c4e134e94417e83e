"""A handle of a running scheduler, and plugins made in one line."""

from __future__ import annotations

from typing import Any

from moorage.framework import Handle, Plugin
from moorage.testing import Cluster
from tests.scheduler.kit import config


def cluster_with(*plugins: type[Plugin], **options: Any) -> Cluster:
    """A cluster whose only profile has these plugins beside PrioritySort and DefaultBinder."""
    text = options.pop("text", None) or config(*(plugin.name for plugin in plugins))
    return Cluster(config=text, plugins=plugins, **{"flush_after": None, **options})


def plugin_of(cluster: Cluster, name: str) -> Any:
    return next(iter(cluster.scheduler.engine.profiles.values())).plugins[name]


def handle_of(cluster: Cluster, name: str) -> Handle:
    handle: Handle = plugin_of(cluster, name).handle
    return handle
