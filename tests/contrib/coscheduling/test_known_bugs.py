"""What went wrong in scheduler-plugins, by the number of its issue (sp), koordinator's or volcano's."""

from __future__ import annotations

import pytest

from moorage.contrib.coscheduling.groups import LABEL, PODGROUPS
from moorage.framework import CycleState
from moorage.testing import make_node, make_pod
from tests.contrib.coscheduling.gangs import (
    cluster,
    gang,
    held,
    member,
    nodes,
    plugin_of,
    podgroup,
    refusal,
    remove,
    started,
)


def test_sp930_a_member_whose_wait_is_over_does_not_count_for_one_that_comes_before_it_has_gone():
    """Its node is not given back yet: a quorum with it would be one member short."""
    with cluster() as found:
        found.add(nodes(2), podgroup("train", 2, scheduleTimeoutSeconds=5), member("train", 0))
        found.add(member("train", 1, scheduler_name="another"))
        found.settle(2)
        [first] = found.scheduler.engine.services.waiting
        first.reject("another plugin", "no")
        status = plugin_of(found).permit(CycleState(), member("train", 1), "n1")
        assert status is not None
        assert status.is_wait


def test_sp713_nine_members_do_not_hold_nodes_for_a_tenth_that_never_fits():
    with cluster() as found:
        found.add(nodes(10), podgroup("train", 10), (member("train", number) for number in range(9)))
        found.add(member("train", 9, node_selector={"gpu": "yes"}))
        found.settle(10)
        assert held(found) == []
        assert started(found) == {}


@pytest.mark.parametrize("seed", range(5))
def test_sp429_a_fragmented_cluster_with_enough_in_sum_is_not_tried_in_circles(seed):
    with cluster(seed=seed) as found:
        found.add(nodes(4, "3"), podgroup("train", 4, minResources={"cpu": "8"}))
        found.add(make_pod(f"filler-{number}", cpu="1500m") for number in range(4))
        found.settle(5)
        found.add(member("train", number, cpu="2") for number in range(4))
        found.patch(PODGROUPS, "train", {"spec": {"minResources": {"cpu": "6"}}}, namespace="default")
        found.settle(60)
        assert started(found) == {}
        assert held(found) == []
        assert found.record("train-0").attempt < 5
        assert "does not fit" in refusal(found, "train-0")


def test_sp443_nothing_is_preempted_for_a_group_that_would_not_fit_all_the_same():
    with cluster() as found:
        found.add(nodes(3), (make_pod(f"low-{number}", cpu="1", priority=0) for number in range(3)))
        found.settle(5)
        found.add(gang("train", 4, priority=100))
        found.settle(30)
        assert all(found.node_of(f"low-{number}") for number in range(3))


@pytest.mark.parametrize("seconds", [3, 50], ids=["in time", "after the group has timed out"])
def test_sp428_sp370_sp581_a_group_preempts_where_all_of_it_fits_afterwards(seconds):
    with cluster() as found:
        found.add(nodes(4), (make_pod(f"low-{number}", cpu="1", priority=0) for number in range(3)))
        found.settle(5)
        found.add(gang("train", 4, priority=100))
        found.settle(seconds)
        for number in range(3):
            remove(found, f"low-{number}")  # the victims end
        found.settle(30)
        assert started(found) == {"train": 4}


def test_sp682_siblings_are_activated_once_a_round():
    with cluster() as found:
        found.add(nodes(20), gang("train", 20))
        found.settle(5)
        assert sum(found.record(f"train-{number}").attempt for number in range(20)) == 20


def test_sp110_a_group_that_fails_goes_behind_younger_ones():
    with cluster() as found:
        found.add(nodes(2), gang("old", 3))
        found.settle(5)
        found.add(podgroup("young", 2) | {"metadata": {"name": "young"}}, member("young", 0), member("young", 1))
        found.settle(15)
        assert started(found) == {"young": 2}


@pytest.mark.parametrize("seed", range(10))
def test_sp114_sp117_koord872_two_groups_do_not_hold_half_each(seed):
    """Their pods take turns in the queue: the groups are equally old, and names decide."""
    with cluster(seed=seed, start=False) as found:
        found.add(nodes(6), podgroup("a", 4), podgroup("b", 4))
        found.add(
            make_pod(f"{number}-{group}", cpu="1", labels={LABEL: group}) for number in range(4) for group in "ab"
        )
        found.start()
        found.settle(3)
        assert started(found) == {"a": 4}
        assert {found.record(f"{number}-a").attempt for number in range(4)} == {1}


@pytest.mark.parametrize("late", ["podgroup", "member"])
def test_sp397_sp450_sp358_what_comes_late_wakes_the_others_at_once(late):
    with cluster(flush_after=None) as found:
        group, *pods = gang("train", 3)
        found.add(nodes(3), pods if late == "podgroup" else [group, *pods[:2]])
        found.settle(20)
        assert started(found) == {}
        found.add(group if late == "podgroup" else pods[2])
        found.settle(11)
        assert started(found) == {"train": 3}


def test_sp364_a_member_that_is_created_anew_joins_those_that_run():
    with cluster() as found:
        found.add(nodes(3), gang("train", 3))
        found.settle(5)
        remove(found, "train-1")
        found.settle(1)
        found.add(member("train", "again"))
        found.settle(5)
        assert started(found) == {"train": 3}


def test_sp_pr307_waiting_members_are_rejected_when_prefilter_refuses_another():
    with cluster({"podGroupRejectPercentage": 0}) as found:
        found.add(nodes(3), podgroup("train", 3), (member("train", number) for number in range(2)))
        found.add(member("train", 2, scheduler_name="another"))
        found.settle(3)
        assert held(found) == ["train-0", "train-1"]
        remove(found, "train-2")
        found.add(member("train", 3, gates=("hold",)))
        found.settle(1)
        found.add(member("train", 4, cpu="5"))
        found.settle(3)
        assert held(found) == []


def test_kuberay5205_a_changed_min_member_counts_at_once():
    with cluster() as found:
        group, *pods = gang("train", 3)
        found.add(nodes(3), group, pods[:2])
        found.settle(5)
        assert "current pods number: 2, minMember of group: 3" in refusal(found, "train-0")
        found.patch(PODGROUPS, "train", {"spec": {"minMember": 2}}, namespace="default")
        found.settle(5)
        assert started(found) == {"train": 2}


def test_a_member_of_the_same_name_does_not_stand_for_one_that_is_gone():
    """The Go plugin counts by name."""
    with cluster() as found:
        found.add(nodes(1), podgroup("train", 2), member("train", 0), member("train", 1))
        found.settle(3)
        remove(found, "train-0")
        found.add(member("train", 0))
        found.settle(20)
        assert started(found) == {}


def test_scores_that_lead_a_group_astray_are_followed_once_only():
    """By scores the small pods go to the large nodes, and the large ones find none, in every round."""
    with cluster({"podGroupRejectPercentage": 0}) as found:
        found.add(make_node(f"large-{number}", cpu="4") for number in range(2))
        found.add(make_node(f"small-{number}", cpu="1", memory="1Gi") for number in range(2))
        found.add(podgroup("train", 4), (member("train", f"a{number}") for number in range(2)))
        found.add(member("train", f"b{number}", cpu="4") for number in range(2))
        found.settle(10)
        assert started(found) == {"train": 4}


def test_members_that_wait_give_their_nodes_back_with_the_first_whose_time_is_over():
    with cluster() as found:
        found.add(nodes(3), podgroup("train", 3, scheduleTimeoutSeconds=5), member("train", 0))
        found.add(member("train", f"x{number}", scheduler_name="another") for number in range(2))
        found.settle(4)
        found.add(member("train", 1))
        found.settle(0.5)
        assert held(found) == ["train-0", "train-1"]
        found.settle(4)
        assert held(found) == []
        found.settle(3)
        assert held(found) == ["train-0", "train-1"]  # another try, after a pause


def test_what_is_known_of_a_group_is_forgotten_with_its_last_pod():
    """In the Go plugin failure times of deleted groups stay."""
    with cluster() as found:
        found.add(nodes(1), gang("train", 2))
        found.settle(3)
        assert list(plugin_of(found)._groups._progress) == ["default/train"]
        for name in ("train-0", "train-1"):
            remove(found, name)
        found.settle(3)
        assert list(plugin_of(found)._groups._progress) == []
