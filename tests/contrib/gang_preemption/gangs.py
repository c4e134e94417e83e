"""Clusters with Coscheduling and GangPreemption."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moorage.api.pod import Pod
from moorage.testing import Cluster, make_pod

CONFIG: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "GangPreemption"}, {"name": "Coscheduling"}],
                    "disabled": [{"name": "PrioritySort"}, {"name": "DefaultPreemption"}],
                }
            }
        }
    ],
}


def cluster(args: Mapping[str, Any] | None = None, **options: Any) -> Cluster:
    config = CONFIG
    if args is not None:
        own = [{"name": "GangPreemption", "args": args}]
        config = {**config, "profiles": [{**config["profiles"][0], "pluginConfig": own}]}
    return Cluster(config=json.dumps(config), **options)


def low(name: str, node: str, cpu: str = "1", **options: Any) -> Pod:
    return make_pod(name, node=node, cpu=cpu, phase="Running", **options)


def ended(found: Cluster) -> list[str]:
    """Delete all pods that terminate, as the kubelets do; their names."""
    ending = [pod for pod in found.pods() if pod.is_terminating]
    for pod in ending:
        found.delete(pod)
    return sorted(pod.name for pod in ending)
