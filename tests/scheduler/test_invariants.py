"""The invariants of faults.md hold in random worlds under faults, without the five-minute flush."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.scheduler.world import World

QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def run(seed: int, steps: int) -> None:
    note(f"seed {seed}, {steps} steps")
    print(f"seed {seed}, {steps} steps")
    world = World(seed)
    try:
        world.live(steps)
        world.heal()
        assert world.check() == [], f"seed {seed}, {steps} steps"
    finally:
        world.cluster.close()


@given(st.integers(0, 2**32), st.integers(20, 90))
@settings(QUIET, max_examples=50)
def test_random_worlds_come_right(seed, steps):
    run(seed, steps)


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(50, 400))
@settings(QUIET, max_examples=300)
def test_many_random_worlds_come_right(seed, steps):
    run(seed, steps)
