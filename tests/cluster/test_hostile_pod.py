"""One pod with thousands of constraints: the pods of others do not wait for it, and no replica loses the lease."""

from __future__ import annotations

import time

from moorage.api.resources import LEASES
from tests.cluster import objects
from tests.cluster.api import Json, eventually
from tests.cluster.moorage_process import LEASE, NAMESPACE
from tests.cluster.worlds import SCHEDULER, World

CONSTRAINTS = 6000
NODES = 300
MAX_WAIT_SECONDS = 1.0
CANARIES = 20


def constraint(number: int) -> Json:
    return {
        "maxSkew": 1,
        "topologyKey": f"tenant.example/key-{number}",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "hostile"}},
    }


def transitions(world: World) -> int:
    """How often the lease has changed hands."""
    lease = world.api.get(LEASES, LEASE, NAMESPACE)
    return int(lease["spec"].get("leaseTransitions") or 0)


def test_a_pod_with_6000_constraints_delays_no_other_and_costs_no_lease(world: World) -> None:
    world.api.create_all([objects.node(f"n-{i}") for i in range(NODES)])
    for name in ("first", "second"):
        world.moorage(name=name)
    world.pod("warm-up")
    world.wait_bound("warm-up")
    before = transitions(world)
    world.api.create(
        objects.pod("hostile", scheduler=SCHEDULER, topologySpreadConstraints=[*map(constraint, range(CONSTRAINTS))])
    )
    waits: list[float] = []
    for number in range(CANARIES):
        began = time.monotonic()
        world.pod(f"canary-{number}")
        world.wait_bound(f"canary-{number}")
        waits.append(time.monotonic() - began)
    eventually(lambda: world.node_of("hostile"), 60, "the hostile pod itself is bound")
    print(f"seconds that the canaries waited: {', '.join(f'{seconds:.2f}' for seconds in waits)}")
    assert max(waits) < MAX_WAIT_SECONDS, waits
    assert transitions(world) == before, "no replica lost the lease"
    assert all(process.running for process in world.processes)
