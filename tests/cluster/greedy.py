"""Pods of one tenant with very many terms, and pods of another tenant that wait beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from moorage.api.resources import PODS
from tests.cluster import objects
from tests.cluster.api import Api, Json, eventually

PODS_OF_ONE, TERMS = 150, 500
Affinity = Callable[[int], Json]


def away(pod: int) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _terms(pod)}}


def near(pod: int) -> Json:
    preferred = [{"weight": 10, "podAffinityTerm": term} for term in _terms(pod)]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _terms(pod: int) -> list[Json]:
    return [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": f"{pod}-{j}"}}}
        for j in range(TERMS)
    ]


def waits(api: Api, scheduler: str, affinity: Affinity, run: str) -> list[float]:
    """Seconds that pods of a modest tenant wait for their node while those of a greedy one are created and
    bound. `run` is part of the names of their namespaces."""
    modest, rival = f"modest-{run}", f"greedy-{run}"
    for space in (modest, rival):
        api.create(objects.namespace(space))
    small: dict[str, Any] = {"scheduler": scheduler, "cpu": "1m", "memory": "1Mi"}
    greedy = [objects.pod(f"greedy-{i}", **small, affinity=affinity(i)) for i in range(PODS_OF_ONE)]
    creating = threading.Thread(target=api.create_all, args=(greedy,), kwargs={"namespace": rival})
    creating.start()
    found: list[float] = []

    def canary() -> None:
        name = f"canary-{len(found)}"
        api.create(objects.pod(name, **small), namespace=modest)
        began = time.monotonic()
        eventually(lambda: _node(api.get(PODS, name, modest)), 60, f"pod {name} is bound")
        found.append(time.monotonic() - began)

    canary()
    while creating.is_alive():
        canary()
    creating.join()
    canary()
    eventually(lambda: all(map(_node, api.list(PODS, rival))), 60, "all pods are bound")
    return found


def _node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName", ""))
