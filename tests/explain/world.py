"""A small cluster for questions: objects in, explanations out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from moorage.api import decoding
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, POD_DISRUPTION_BUDGETS, PODS, Resource
from moorage.app.configuration import configure
from moorage.explain.explanation import Explanation, explain
from moorage.explain.loaded import LoadedCluster
from moorage.snapshots.cluster import ClusterObjects


def load(
    nodes: Iterable[Node], pods: Iterable[Pod] = (), budgets: Iterable[dict[str, Any]] = ()
) -> LoadedCluster:
    objects: dict[Resource, Any] = {NODES: list(nodes), PODS: list(pods)}
    objects[POD_DISRUPTION_BUDGETS] = [decoding.convert(POD_DISRUPTION_BUDGETS, each) for each in budgets]
    return LoadedCluster.load(ClusterObjects(objects), configure(discover=False))


def ask(loaded: LoadedCluster, pod: Pod, **options: Any) -> Explanation:
    return asyncio.run(explain(loaded.judge(pod), pod, **options))
