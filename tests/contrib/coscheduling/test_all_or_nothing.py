"""Groups run whole or not at all, whatever the order in which their pods come."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import Cluster, make_pod
from tests.contrib.configs import enabling
from tests.contrib.coscheduling.gangs import cluster, gang, held, member, nodes, plugin_of, podgroup, started


def test_a_group_that_fits_starts_together():
    with cluster() as found:
        found.add(nodes(3), gang("train", 3))
        found.settle(5)
        assert started(found) == {"train": 3}


def test_a_group_that_does_not_fit_holds_nothing_and_says_why():
    with cluster() as found:
        found.add(nodes(2), gang("train", 3))
        found.settle(5)
        assert started(found) == {}
        assert held(found) == []
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
@pytest.mark.parametrize("block", range(20))
def test_100_gangs_of_10_that_fight_for_30_places_leave_none_in_part_over_200_orders(block):
    for seed in range(10 * block, 10 * block + 10):
        fight(seed)


@pytest.mark.parametrize("seed", range(1000, 1002))
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
        found.settle(20)
        assert sorted(started(found).values()) == [10, 10, 10], f"seed {seed}"
        assert held(found) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", range(20))
def test_a_scheduler_that_is_killed_in_the_middle_leaves_no_group_in_part(seed):
    draw = random.Random(seed)
    with cluster(seed=seed, start=False) as found:
        found.add(nodes(10))
        pods = [each for number in range(3) for each in gang(f"g{number}", 5)]
        draw.shuffle(pods)
        found.add(pods)
        found.start()
        found.settle(0)
        found.restart()
        halves = [number for number in started(found).values() if number < 5]
        assert halves or seed not in (0, 1, 3), "nothing was in part: the test shows nothing"
        found.settle(60)
        assert sorted(started(found).values()) == [5, 5]
        assert held(found) == []


@pytest.mark.parametrize("seed", range(5))
def test_b25_a_gang_of_which_some_binds_fail_is_completed(seed):
    """The others run already; those that failed join them before another group has their nodes (vc5805)."""
    with cluster(seed=seed, start=False) as found:
        found.faults.add(Fault(verb="bind", effect=faults.server_error(503), times=2))
        found.add(nodes(6), gang("a", 5), gang("b", 2))
        found.start()
        found.settle(30)
        assert started(found) == {"a": 5}


def test_500_single_pods_wait_no_longer_than_the_timeout_of_two_gangs():
    with cluster() as found:
        found.add(nodes(26, "20"), gang("a", 10, timeout=30), gang("b", 10, timeout=30))
        found.add(make_pod(f"single-{number}", cpu="1") for number in range(500))
        found.settle(30)
        assert len(found.bound()) == 520


def test_a_group_with_a_member_that_never_fits_takes_nothing_from_single_pods():
    with cluster() as found:
        found.add(nodes(10), podgroup("train", 10), (member("train", n) for n in range(9)))
        found.add(member("train", 9, cpu="5"))
        found.add(make_pod(f"single-{number}", cpu="1") for number in range(10))
        found.settle(5)
        assert len(found.bound()) == 10
        assert started(found) == {}


@pytest.mark.parametrize("seed", range(5))
def test_reused_answers_are_those_of_a_fresh_evaluation(seed):
    with cluster(seed=seed, verify_reuse=True) as found:
        found.add(nodes(6, "3"), (each for number in range(8) for each in gang(f"g{number}", 3)))
        found.add(make_pod(f"single-{number}", cpu="1") for number in range(3))
        found.settle(20)
        assert set(started(found).values()) == {3}


def test_a_group_with_members_of_two_profiles_starts_together():
    """Each profile plans its own members; who has a node is known to both."""
    profile: dict[str, Any] = json.loads(enabling("Coscheduling", without=("PrioritySort",)))
    [one] = profile["profiles"]
    profile["profiles"] = [{**one, "schedulerName": name} for name in ("default-scheduler", "second")]
    with Cluster(config=json.dumps(profile)) as found:
        found.add(nodes(4), podgroup("train", 4), (member("train", number) for number in range(2)))
        found.settle(3)
        assert started(found) == {}
        found.add(member("train", number, scheduler="second") for number in (2, 3))
        found.settle(5)
        assert started(found) == {"train": 4}


def test_members_that_wait_give_their_nodes_back_when_the_podgroup_is_deleted():
    with cluster() as found:
        group = podgroup("train", 2, scheduleTimeoutSeconds=5)
        found.add(nodes(1), group, member("train", 0), member("train", 1, scheduler="another"))
        found.settle(2)
        assert held(found) == ["train-0"]
        found.delete(group)
        found.add(make_pod("single", cpu="1"))
        found.settle(10)
        assert found.node_of("single") == "n0"
        assert plugin_of(found)._groups.progress("default/train").placed == {}
