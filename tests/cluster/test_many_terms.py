"""Pods of one tenant with very many terms, and how long a pod of another tenant waits beside them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mooring.api.resources import PODS
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.worlds import SCHEDULER, World

GREEDY, TERMS = 150, 500
LONGEST_WAIT = 5.0
"""Seconds; generous, since the API server shares the machine with the tests."""


def _away(pod: int) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _terms(pod)}}


def _near(pod: int) -> dict[str, Any]:
    preferred = [{"weight": 10, "podAffinityTerm": term} for term in _terms(pod)]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _terms(pod: int) -> list[dict[str, Any]]:
    return [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": f"{pod}-{j}"}}}
        for j in range(TERMS)
    ]


@pytest.mark.parametrize("affinity", [_away, _near])
def test_a_pod_of_another_tenant_does_not_wait_for_pods_with_many_terms(world: World, affinity) -> None:
    # Names of their own: namespaces of an earlier case may still be on their way out.
    modest, rival = (f"{tenant}{affinity.__name__.replace('_', '-')}" for tenant in ("modest", "greedy"))
    for space in (modest, rival):
        world.api.create(objects.namespace(space))
    world.nodes(*(f"n{i}" for i in range(10)))
    process = world.mooring()
    before = _seconds(process.pid), _megabytes(process.pid)
    greedy = [
        objects.pod(f"greedy-{i}", scheduler=SCHEDULER, cpu="1m", memory="1Mi", affinity=affinity(i))
        for i in range(GREEDY)
    ]
    creating = threading.Thread(target=world.api.create_all, args=(greedy,), kwargs={"namespace": rival})
    creating.start()
    waits = [_wait(world, modest, "canary-0")]
    while creating.is_alive():
        waits.append(_wait(world, modest, f"canary-{len(waits)}"))
    creating.join()
    waits.append(_wait(world, modest, f"canary-{len(waits)}"))
    eventually(lambda: len(_bound(world, rival)) == GREEDY, 60, "all pods are bound")
    used = _seconds(process.pid) - before[0], _megabytes(process.pid) - before[1]
    print(f"waits {max(waits):.2f} s at most, {used[0]:.1f} s CPU, {used[1]:.0f} MB more")
    assert max(waits) < LONGEST_WAIT


def _wait(world: World, namespace: str, name: str) -> float:
    """Seconds from the creation of a pod to the binding."""
    pod = objects.pod(name, scheduler=SCHEDULER, cpu="1m", memory="1Mi")
    world.api.create(pod, namespace=namespace)
    began = time.monotonic()
    eventually(lambda: world.node_of(name, namespace), 60, f"pod {name} is bound")
    return time.monotonic() - began


def _bound(world: World, namespace: str) -> list[Any]:
    return [pod for pod in world.api.list(PODS, namespace) if pod["spec"].get("nodeName")]


def _seconds(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e3
