"""Whether a group fits as a whole: with every filter, in several orders, beside what others have planned."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.pod import PersistentVolumeClaimVolumeSource, Pod, Volume
from moorage.contrib.coscheduling.groups import LABEL
from moorage.contrib.coscheduling.planning import Misfit, Planner, interchangeable
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_affinity
from tests.contrib.coscheduling.gangs import cluster, nodes, plugin_of

INDEX = "batch.kubernetes.io/job-completion-index"


def members(number: int, **options: Any) -> list[Pod]:
    return [make_pod(f"g-{n}", labels={LABEL: "g"}, **{"cpu": "1", **options}) for n in range(number)]


def planned(found: Cluster, pods: list[Pod], reserved: Any = ()) -> Any:
    """Pod → node, or why there is none for one of them."""
    plugin = plugin_of(found)
    with plugin._groups.planning("default/g"):
        outcome = Planner(plugin.handle).plan(pods, reserved)
    if isinstance(outcome, Misfit):
        return f"{outcome.placed}: {outcome.pod.name}: {outcome.why}"
    return {pod.name: node for pod, node in outcome}


@pytest.fixture
def found():
    with cluster(start=False) as made:
        yield made


def placed(found: Cluster, *objects: Any) -> None:
    found.add(*objects)
    found.start()
    found.settle(1)


def test_members_are_packed(found):
    placed(found, nodes(3, "2"))
    assert planned(found, members(4)) == {"g-0": "n0", "g-1": "n0", "g-2": "n1", "g-3": "n1"}


def test_filters_see_the_members_that_were_placed_before(found):
    placed(found, nodes(3, "8"))
    apart = members(4, affinity=make_affinity(away={LABEL: "g"}))
    assert set(planned(found, apart[:3]).values()) == {"n0", "n1", "n2"}
    refused = "3: g-3: 0/3 nodes are available: 3 node(s) didn't match pod anti-affinity"
    assert planned(found, apart).startswith(refused)


CLAIM = Volume(name="v", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data"))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({}, {}, True),
        ({"labels": {INDEX: "0"}}, {"labels": {INDEX: "1"}}, True),
        ({"labels": {"role": "a"}}, {"labels": {"role": "b"}}, False),
        ({"cpu": "1"}, {"cpu": "2"}, False),
        ({"volumes": [Volume(name="token-x")]}, {"volumes": [Volume(name="token-y")]}, True),
        ({"volumes": [CLAIM]}, {"volumes": [CLAIM]}, False),
        ({"nominated": "n0"}, {}, False),
    ],
    ids=["nothing", "a number", "a label", "a request", "names of tokens", "a claim", "a nominated node"],
)
def test_members_are_judged_as_one_where_filters_cannot_tell_them_apart(one, other, expected):
    assert interchangeable(make_pod("a", **one), make_pod("b", **other)) is expected


def test_the_most_particular_members_go_first_where_that_helps(found):
    placed(found, make_node("plain", cpu="2"), make_node("gpu", cpu="2", labels={"gpu": "yes"}))
    free, bound = members(2), make_pod("g-x", labels={LABEL: "g"}, cpu="2", node_selector={"gpu": "yes"})
    large = make_pod("g-y", labels={LABEL: "g"}, cpu="2")
    assert planned(found, [large, bound]) == {"g-x": "gpu", "g-y": "plain"}
    assert planned(found, [*free, bound])["g-x"] == "gpu"


def test_plans_of_other_gangs_are_not_touched(found):
    placed(found, nodes(2))
    [other] = members(1)
    assert planned(found, [make_pod("mine", cpu="1")], [(other, "n0")]) == {"mine": "n1"}
    assert planned(found, [make_pod("mine", cpu="1")], [(other, "gone")]) == {"mine": "n0"}


def test_a_member_that_is_nominated_goes_there_if_it_can(found):
    placed(found, nodes(3))
    pods = members(2, nominated="n2")
    assert planned(found, pods) == {"g-0": "n2", "g-1": "n0"}
    assert planned(found, members(1, nominated="gone")) == {"g-0": "n0"}


@pytest.mark.parametrize(
    ("priority", "policy", "fits"),
    [(100, None, True), (100, "Never", False), (0, None, False)],
    ids=["higher", "never preempts", "equal"],
)
def test_lower_pods_do_not_count_for_members_that_may_preempt(found, priority, policy, fits):
    low = [make_pod(f"low-{n}", cpu="1", node=f"n{n}", phase="Running") for n in range(2)]
    placed(found, nodes(2), low)
    outcome = planned(found, members(2, priority=priority, preemption_policy=policy))
    assert isinstance(outcome, dict) is fits


def test_a_victim_that_is_gone_for_one_member_is_gone_for_the_next(found):
    placed(found, nodes(1, "3"), make_pod("low", cpu="3", node="n0"))
    pods = [*members(2, priority=100), make_pod("other", cpu="1", priority=100)]
    assert planned(found, pods) == {"g-0": "n0", "g-1": "n0", "other": "n0"}


def test_a_member_does_not_count_on_the_removal_of_another_one(found):
    placed(found, nodes(1), make_pod("low", cpu="1", node="n0"))
    [lesser] = members(1, priority=10)
    urgent = make_pod("g-urgent", labels={LABEL: "g"}, cpu="1", priority=100)
    assert isinstance(planned(found, [lesser, urgent]), str)


def test_a_member_that_never_preempts_does_not_count_on_what_others_free(found):
    placed(found, nodes(1, "2"), make_pod("low", cpu="2", node="n0"))
    patient = make_pod("patient", labels={LABEL: "g"}, cpu="1", priority=100, preemption_policy="Never")
    assert planned(found, [*members(1, priority=100), patient]).startswith("0: ")
    assert planned(found, members(2, priority=100)) == {"g-0": "n0", "g-1": "n0"}


def test_a_node_that_took_members_and_is_gone_is_not_looked_at(found):
    placed(found, nodes(2))
    plugin = plugin_of(found)
    planner: Any = Planner(plugin.handle)
    with plugin._groups.planning("default/g"):
        assert planner.plan(members(1), ()) == [(members(1)[0], "n0")]
        found.delete(found.node("n0"))
        found.settle(1)
        assert [node for _, node in planner.plan(members(1), ())] == ["n1"]
