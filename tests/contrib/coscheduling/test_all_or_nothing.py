"""Groups run whole or not at all, whatever the order in which their pods come."""

from __future__ import annotations

import random

import pytest

from tests.contrib.coscheduling.gangs import cluster, gang, held, member, nodes, podgroup, started
from mooring.testing import make_pod


def test_a_group_that_fits_starts_together():
    with cluster() as found:
        found.add(nodes(3), gang("train", 3))
        found.settle(5)
        assert started(found) == {"train": 3}


def test_a_group_that_does_not_fit_holds_nothing_and_says_why():
    with cluster() as found:
        found.add(nodes(2), gang("train", 3))
        found.settle(5)
        assert started(found) == {} and held(found) == []
        assert "PodGroup default/train does not fit: 2 of 3 members have a node" in found.record("train-0").message
        assert "2 Insufficient cpu" in found.record("train-0").message


def test_capacity_that_comes_wakes_a_group_that_did_not_fit():
    with cluster() as found:
        found.add(nodes(2), gang("train", 3))
        found.settle(30)
        found.add(nodes(3)[2])
        found.settle(15)
        assert started(found) == {"train": 3}


@pytest.mark.slow
def test_100_gangs_of_10_that_fight_for_30_places_leave_none_in_part_over_200_orders():
    for seed in range(200):
        fight(seed)


@pytest.mark.parametrize("seed", range(3))
def test_100_gangs_of_10_that_fight_for_30_places_leave_none_in_part(seed):
    fight(seed)


def fight(seed: int) -> None:
    draw = random.Random(seed)
    with cluster(seed=seed, start=False) as found:
        found.add(nodes(*draw.choice([(30, "1"), (3, "10"), (6, "5"), (10, "3")])))
        objects = [each for number in range(100) for each in gang(f"g{number}", 10)]
        groups = [each for each in objects if isinstance(each, dict)]
        pods = [each for each in objects if not isinstance(each, dict)]
        draw.shuffle(groups)
        draw.shuffle(pods)
        found.add(groups, pods)
        found.start()
        found.settle(60)
        assert sorted(started(found).values()) == [10, 10, 10], f"seed {seed}"
        assert held(found) == [], f"seed {seed}"
