"""A small cluster for questions: objects in, explanations out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from mooring.api import decoding
from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.resources import NODES, POD_DISRUPTION_BUDGETS, PODS, Resource
from mooring.app.asking import LoadedCluster
from mooring.app.configuring import configure
from mooring.app.live_cluster import LiveCluster
from mooring.explain.explanation import Explanation, explain


def load(
    nodes: Iterable[Node], pods: Iterable[Pod] = (), budgets: Iterable[dict[str, Any]] = ()
) -> LoadedCluster:
    objects: dict[Resource, Any] = {NODES: list(nodes), PODS: list(pods)}
    objects[POD_DISRUPTION_BUDGETS] = [decoding.convert(POD_DISRUPTION_BUDGETS, each) for each in budgets]
    return LoadedCluster.load(LiveCluster(objects), configure(discover=False))


def ask(loaded: LoadedCluster, pod: Pod, **options: Any) -> Explanation:
    return asyncio.run(explain(loaded.judge(pod), pod, **options))
