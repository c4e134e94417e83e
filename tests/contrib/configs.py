"""Configurations that enable plugins of contrib beside the default ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def enabling(
    plugin: str,
    args: Mapping[str, Any] | None = None,
    *,
    weight: int = 1,
    without: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
) -> str:
    """The default profile with one more plugin, and perhaps with or without others."""
    sets = {
        "multiPoint": {
            "enabled": [{"name": plugin, "weight": weight}, *({"name": name} for name in beside)],
            "disabled": [{"name": name} for name in without],
        }
    }
    profile: dict[str, Any] = {"plugins": sets}
    if args is not None:
        profile["pluginConfig"] = [{"name": plugin, "args": args}]
    return json.dumps(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    )
