"""The plugins of this package by name. A module is imported when a configuration names its plugin, so the
others cost nothing. None is enabled unless a configuration says so."""

from __future__ import annotations

PLUGINS: dict[str, str] = {
    "Coscheduling": "mooring.contrib.coscheduling.plugin:Coscheduling",
    "NodeMetadata": "mooring.contrib.node_metadata:NodeMetadata",
    "NodeResourcesAllocatable": "mooring.contrib.node_resources_allocatable:NodeResourcesAllocatable",
    "PodState": "mooring.contrib.pod_state:PodState",
    "QOSSort": "mooring.contrib.qos_sort:QOSSort",
}
"""Plugin → `module:Class`."""
