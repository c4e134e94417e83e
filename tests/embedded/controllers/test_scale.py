"""Large numbers cost what they must: counted in writes, which are the same on every machine."""

from __future__ import annotations

from collections import Counter

import pytest

from moorage.embedded.controllers import kinds
from tests.embedded.controllers.world import World, workload


@pytest.mark.slow
def test_a_large_deployment_takes_few_writes_beside_those_of_its_pods():
    count = 1500
    with World(nodes=20) as world:
        since = world.clock.now()
        world.create(kinds.DEPLOYMENTS, workload(replicas=count))
        world.until(lambda: _ready(world) == count, timeout=60.0, step=0.5)
        written = Counter((call.resource.plural, call.verb) for call in world.writes(since))
        assert written["pods", "create"] == count
        assert count <= written["pods", "replace"] <= 2 * count + 20  # ContainerCreating and Running
        beside = sum(n for (plural, _), n in written.items() if plural != "pods")
        assert beside <= 120, written


def _ready(world: World) -> int:
    return int((world.get(kinds.DEPLOYMENTS, "web").get("status") or {}).get("readyReplicas") or 0)


@pytest.mark.slow
def test_idle_nodes_write_their_leases_and_nothing_else():
    with World(nodes=400, schedule=False) as world:
        world.settle(30)
        since = world.clock.now()
        world.settle(100)
        assert world.writes(since) == []
        leases = [c for c in world.faults.calls if c.time >= since and c.resource.plural == "leases"]
        writes = [c for c in leases if c.verb == "patch"]
        assert 3200 <= len(writes) <= 4200  # each node every ten seconds
