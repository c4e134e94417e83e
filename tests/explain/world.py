"""Small clusters for questions: objects in, explanations out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from moorage.api import decoding
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, POD_DISRUPTION_BUDGETS, PODS, by_kind
from moorage.app.configuration import Configuration, configure
from moorage.app.offline import QuestionEngine, question_engine
from moorage.explain.explanation import Explanation, explain
from moorage.explain.judging import Judge
from moorage.snapshots.cluster import ClusterObjects

DEFAULT = configure(discover=False)


def cluster(nodes: Iterable[Node], pods: Iterable[Pod] = (), *others: Any) -> ClusterObjects:
    """Objects as they would be read from a cluster; `others` are of any kind."""
    objects: dict[Any, list[Any]] = {NODES: list(nodes)}
    for obj in others:
        resource = by_kind(obj.kind or type(obj).__name__)
        assert resource is not None
        objects.setdefault(resource, []).append(obj)
    return ClusterObjects({**objects, PODS: list(pods)})


def load(nodes: Iterable[Node], pods: Iterable[Pod] = (), *others: Any, by: Configuration = DEFAULT) -> QuestionEngine:
    """An engine that holds these objects."""
    return question_engine(by, cluster(nodes, pods, *others).changes())


def ask(engine: QuestionEngine, pod: Pod, profile: str = "", **options: Any) -> Explanation:
    return asyncio.run(explain(Judge.of(engine, pod, profile), pod, **options))


def budget(name: str, labels: dict[str, str], allowed: int = 0) -> Any:
    raw = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }
    return decoding.convert(POD_DISRUPTION_BUDGETS, raw)
