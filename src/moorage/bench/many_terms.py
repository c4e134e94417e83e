"""Workloads of pods with very many terms that no other pod has.

One tenant can create such pods and make all others wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from moorage.api.node import HOSTNAME
from moorage.api.resources import NAMESPACES
from moorage.bench.world import BenchWorld, raw_pod

Pods = Iterator[dict[str, Any]]


def _terms(spec: Callable[[str], dict[str, Any]]) -> Callable[[BenchWorld], Pods]:
    """Return a workload of the pods that `spec(name)` describes."""

    def pods(world: BenchWorld) -> Pods:
        for i in count():
            yield raw_pod(f"terms-{i}", cpu=5, memory=5, labels={"app": f"terms-{i}"}, **spec(f"terms-{i}"))

    return pods


def _term(name: str, index: int) -> dict[str, Any]:
    return {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": f"{name}-{index}"}}}


@_terms
def anti_affinity(name: str) -> dict[str, Any]:
    terms = [_term(name, j) for j in range(500)]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@_terms
def preferred(name: str) -> dict[str, Any]:
    terms = [{"weight": 1 + j % 100, "podAffinityTerm": _term(name, j)} for j in range(500)]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


@_terms
def spread(name: str) -> dict[str, Any]:
    constraints = [
        {**_term(name, j), "maxSkew": 5, "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway")[j % 2]}
        for j in range(200)
    ]
    return {"topologySpreadConstraints": constraints}


@_terms
def node_selector(name: str) -> dict[str, Any]:
    terms = [
        {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": [f"{name}-{j}"]}]} for j in range(500)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


@_terms
def tolerations(name: str) -> dict[str, Any]:
    return {"tolerations": [{"key": f"{name}-{j}", "operator": "Exists"} for j in range(500)]}


def namespaces(world: BenchWorld) -> Pods:
    """Create 1,000 namespaces, and pods with a term over the namespaces that their own selector matches."""
    spaces = ({"metadata": {"name": f"ns-{i}", "uid": f"ns-{i}", "labels": {"n": f"{i}"}}} for i in range(1000))
    world.put(NAMESPACES, spaces)

    def spec(name: str) -> dict[str, Any]:
        others = {"matchExpressions": [{"key": "n", "operator": "NotIn", "values": [name]}]}
        term = {**_term(name, 0), "namespaceSelector": others}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    yield from _terms(spec)(world)
