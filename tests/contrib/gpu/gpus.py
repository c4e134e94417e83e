"""Nodes with GPUs, pods that ask for them, and profiles that hand them out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from moorage.contrib.gpu.requests import GPU_COUNT, GPU_INDEX, GPU_MILLI, GPU_MODEL, cards_of, gpu_request
from moorage.testing import make_node, make_pod

TYPICAL = [{"cpu": "2", "gpuMilli": 500, "weight": 2}, {"cpu": "4", "gpuMilli": 1000}, {"cpu": "1"}]


def gpu_node(name="a", cards=2, *, model="T4", **options):
    amounts = {GPU_COUNT: cards, GPU_MILLI: 1000 * cards}
    return make_node(name, extended=amounts, labels={GPU_MODEL: model}, **{"cpu": "64", **options})


def gpu_pod(name="p", milli=1000, count=1, *, models="", index="", **options):
    """`index` are the cards of a pod that has a node."""
    found = {GPU_MILLI: str(milli), GPU_COUNT: str(count), GPU_MODEL: models, GPU_INDEX: index}
    annotations = {key: value for key, value in found.items() if value}
    return make_pod(name, annotations=annotations, **{"cpu": "1", **options})


def profile(policy: str = "", args: Mapping[str, Any] | None = None) -> str:
    """GpuShare, and one policy alone at Score."""
    plugins: dict[str, Any] = {"multiPoint": {"enabled": [{"name": "GpuShare"}]}}
    if policy:
        plugins["multiPoint"]["enabled"].append({"name": policy})
        plugins["score"] = {"disabled": [{"name": "*"}], "enabled": [{"name": policy}]}
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": plugins, "pluginConfig": [{"name": policy, "args": args}] if args else []}],
        }
    )


def cards(cluster, name):
    """Node and cards of a pod, as the API has them."""
    pod = cluster.pod(name)
    return pod.spec.node_name, cards_of(pod)


def in_use(cluster) -> Counter[tuple[str, int]]:
    """Milli by node and card, of all bound pods."""
    found: Counter[tuple[str, int]] = Counter()
    for pod in cluster.pods():
        if pod.is_assigned:
            for card in cards_of(pod):
                found[pod.spec.node_name, card] += gpu_request(pod).milli
    return found
