"""GangPreemption: victims for a whole group or none, and what becomes of the members until they are gone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.app import checks
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_pdb
from tests.contrib.coscheduling.gangs import gang, held, member, nodes, podgroup, refusal, started
from tests.contrib.gang_preemption.gangs import CONFIG, cluster, ended, low


def ending(found: Cluster) -> list[str]:
    return sorted(pod.name for pod in found.pods() if pod.is_terminating)


def nominations(found: Cluster) -> dict[str, str]:
    return {pod.name: pod.nominated_node_name for pod in found.pods() if pod.nominated_node_name}


def full(number: int, **options: Any) -> list[Any]:
    """Nodes of one cpu, each with a pod that takes it."""
    return [*nodes(number), *(low(f"low-{n}", f"n{n}", **options) for n in range(number))]


def test_victims_of_all_members_go_at_once_and_the_group_starts_when_they_are_gone():
    with cluster() as found:
        found.add(full(3), gang("train", 3, priority=100))
        found.settle(5)
        assert sorted(found.record("train-0").victims) == ["default/low-0", "default/low-1", "default/low-2"]
        assert sorted(nominations(found).values()) == ["n0", "n1", "n2"]
        assert ended(found) == ["low-0", "low-1", "low-2"]
        found.settle(5)
        assert started(found) == {"train": 3}


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (gang("train", 3, priority=100), "0 of 3 members have a node"),
        (gang("train", 2), "0 of 2 members have a node"),
        (gang("train", 2, priority=100, preemption_policy="Never"), "0 of 2 members have a node"),
        ([podgroup("train", 2), member("train", 0, priority=100)], "cannot find enough sibling pods"),
        ([member("train", n, priority=100) for n in range(2)], "PodGroup default/train not found"),
    ],
    ids=["too many members", "no lower priority", "never preempts", "members missing", "no PodGroup"],
)
def test_no_pod_goes_where_the_group_would_not_start(members, reason):
    with cluster() as found:
        found.add(full(2), members)
        found.settle(30)
        assert ending(found) == []
        assert reason in refusal(found, "train-0")
        assert held(found) == []


def test_a_pod_without_a_group_and_a_member_beyond_min_member_preempt_as_with_default_preemption():
    with cluster() as found:
        found.add(nodes(2), podgroup("train", 1), member("train", 0, node="n0", priority=100), low("low", "n1"))
        found.add(make_pod("single", cpu="1", priority=100))
        found.settle(5)
        assert ended(found) == ["low"]
        found.settle(5)
        assert found.node_of("single") == "n1"
    with cluster() as found:
        found.add(nodes(2), podgroup("train", 1), member("train", 0, node="n0", priority=100), low("low", "n1"))
        found.settle(1)
        found.add(member("train", 1, priority=100))
        found.settle(5)
        assert ended(found) == ["low"]


def test_members_that_fit_cost_no_pod():
    with cluster() as found:
        found.add(full(1), make_node("free", cpu="2"), gang("train", 3, priority=100))
        found.settle(5)
        assert ended(found) == ["low-0"]
        found.settle(5)
        assert started(found) == {"train": 3}


@pytest.mark.parametrize(
    ("pods", "budgets", "expected"),
    [
        ([{"priority": 5}, {"priority": 1}, {"priority": 3}], [], ["low-1", "low-2"]),
        ([{"labels": {"a": "b"}}, {"labels": {"a": "b"}}, {"priority": 5}], [1], ["low-2", "low-?"]),
        ([{"labels": {"a": "b"}}, {"priority": 9}, {"priority": 9}], [0], ["low-1", "low-2"]),
        ([{"labels": {"a": "b"}}, {"labels": {"a": "b"}}], [1], ["low-0", "low-1"]),
    ],
    ids=["least priority", "a budget for one of two", "priority before budget", "violated if need be"],
)
def test_the_whole_plan_costs_least(pods, budgets, expected):
    with cluster() as found:
        found.add(nodes(len(pods)), (low(f"low-{n}", f"n{n}", **options) for n, options in enumerate(pods)))
        found.add(make_pdb("budget", {"a": "b"}, allowed=allowed) for allowed in budgets)
        found.settle(1)
        found.add(gang("train", 2, priority=100))
        found.settle(5)
        victims = ending(found)
        assert len(victims) == 2
        assert {*expected} - {"low-?"} <= {*victims}


def test_a_victim_that_a_later_one_makes_needless_stays():
    """The small member costs the small pod, and then the large member the large one, after which the small
    pod would fit beside both."""
    with cluster() as found:
        found.add(make_node("n0", cpu="5"), low("small", "n0", "1"), low("large", "n0", "4", priority=5))
        found.add(podgroup("train", 2), member("train", 0, priority=100), member("train", 1, cpu="3", priority=100))
        found.settle(5)
        assert ended(found) == ["large"]
        found.settle(5)
        assert started(found) == {"train": 2}


def test_members_of_lower_priority_are_no_victims_of_their_own_group():
    with cluster() as found:
        found.add(nodes(2), podgroup("train", 3), member("train", 0, node="n0"), low("low", "n1"))
        found.add(member("train", n, priority=100) for n in (1, 2))
        found.settle(5)
        assert ending(found) == []


def test_more_members_than_allowed_are_not_planned():
    with cluster({"maxMembers": 2}) as found:
        found.add(full(3), gang("train", 3, priority=100))
        found.settle(5)
        assert ending(found) == []
        assert "needs 3 members, more than maxMembers 2" in refusal(found, "train-0")


def test_a_scheduler_that_is_restarted_while_victims_end_takes_no_others():
    with cluster() as found:
        found.add(full(6), gang("train", 3, priority=100))
        found.settle(5)
        assert len(ending(found)) == 3
        found.restart()
        found.settle(30)
        assert len(ending(found)) == 3
        ended(found)
        found.settle(30)
        assert started(found) == {"train": 3}


def test_members_wait_for_the_last_victim_without_holding_a_node():
    with cluster() as found:
        found.add(full(3), make_node("free", cpu="1"), gang("train", 4, timeout=5, priority=100))
        found.settle(2)
        first = ending(found)[0]
        found.delete(next(pod for pod in found.pods() if pod.name == first))
        found.settle(60)
        assert ending(found) == sorted({"low-0", "low-1", "low-2"} - {first})
        ended(found)
        found.settle(60)
        assert started(found) == {"train": 4}


def test_a_pod_of_lower_priority_gets_no_place_that_was_freed_for_a_member():
    with cluster() as found:
        found.add(full(2), gang("train", 2, priority=100))
        found.settle(5)
        found.add(make_pod("late", cpu="1"))
        ended(found)
        found.settle(30)
        assert started(found) == {"train": 2}
        assert found.node_of("late") == ""


def test_a_member_beyond_min_member_waits_while_others_have_a_plan():
    with cluster() as found:
        found.add(full(2), podgroup("train", 2), (member("train", n, priority=100) for n in range(4)))
        found.settle(5)
        assert ended(found) == ["low-0", "low-1"]
        found.settle(30)
        assert started(found) == {"train": 2}


def test_a_deletion_that_fails_is_made_good():
    with cluster() as found:
        found.faults.add(Fault(verb="delete", effect=faults.server_error(500), times=1))
        found.add(full(2), gang("train", 2, priority=100))
        found.settle(60)
        assert ended(found) == ["low-0", "low-1"]
        found.settle(30)
        assert started(found) == {"train": 2}


def test_members_of_another_gang_that_wait_in_permit_make_way():
    with cluster() as found:
        found.add(nodes(2), podgroup("low", 3, scheduleTimeoutSeconds=300), (member("low", n) for n in range(2)))
        found.add(member("low", 2, scheduler="another"))
        found.settle(2)
        assert held(found) == ["low-0", "low-1"]
        found.add(gang("train", 2, priority=100))
        found.settle(30)
        assert started(found) == {"train": 2}


@pytest.mark.parametrize("value", [0, -1])
def test_max_members_must_be_positive(value):
    with pytest.raises(ConfigError, match=r"maxMembers.*must be at least 1"), cluster({"maxMembers": value}):
        pass


def test_an_order_in_which_a_group_is_rejected_before_it_is_planned_is_reported():
    config = json.loads(json.dumps(CONFIG))
    assert checks.find_warnings(configure(json.dumps(config), discover=False)) == []
    config["profiles"][0]["plugins"]["multiPoint"]["enabled"].reverse()
    assert checks.find_warnings(configure(json.dumps(config), discover=False)) == [
        'profiles[0].plugins.postFilter: "GangPreemption" must run before "Coscheduling"; enable it first'
    ]
