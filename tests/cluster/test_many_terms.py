"""Pods of one tenant with very many terms do not hold up those of another."""

from __future__ import annotations

import pytest

from tests.cluster import greedy
from tests.cluster.worlds import SCHEDULER, World

LONGEST_WAIT = 5.0
"""Seconds; generous, since the API server shares the machine with the tests. `beside terms` measures it."""


@pytest.mark.parametrize("affinity", [greedy.away, greedy.near])
def test_a_pod_of_another_tenant_does_not_wait_for_pods_with_many_terms(world: World, affinity) -> None:
    world.nodes(*(f"n{i}" for i in range(10)))
    world.moorage()
    # Names of their own: namespaces of an earlier case may still be on their way out.
    waits = greedy.waits(world.api, SCHEDULER, affinity, affinity.__name__)
    assert max(waits) < LONGEST_WAIT, waits
