"""The rules of preemption one by one: who may preempt, who is spared, which node is taken, what is said."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from moorage.api.meta import LabelSelector, LabelSelectorRequirement
from moorage.api.pod import PodCondition
from moorage.api.resources import POD_DISRUPTION_BUDGETS
from moorage.framework.nodes import Nodes
from moorage.framework.ports import ExtenderError, Victims
from moorage.framework.preemption import Candidate, Candidates, PreemptionPolicy, best_candidate
from moorage.framework.status import Code, Status
from moorage.runtime.calling import maybe_await
from moorage.runtime.dry_run import Session
from moorage.runtime.preemption.budgets import ClusterBudgets
from moorage.runtime.preemption.evaluator import narrowed
from moorage.runtime.preemption.search import CandidateSearch
from moorage.state.ranking import PodRanking, VictimColumns
from moorage.testing import make_pod
from moorage.testing.builders import make_pdb
from tests.runtime.preemption_world import Scene, World


def pod(name, priority=0, minute=0, **options):
    return make_pod(name, priority=priority, start_time=f"2026-01-01T00:{minute:02d}:00Z", **options)


CHOICES = [
    pytest.param({"a": ([pod("x", 5)], 1), "b": ([pod("y", 50), pod("z", 50)], 0)}, "b", id="fewest violated budgets"),
    pytest.param({"a": ([pod("x", 10)], 0), "b": ([pod("y", 9), pod("z", 9), pod("w", 9)], 0)}, "b", id="top priority"),
    pytest.param({"a": ([pod("x", 9), pod("y", 5)], 0), "b": ([pod("z", 9), pod("w", 4)], 0)}, "b", id="sum of them"),
    pytest.param(
        {"a": ([pod("x", -9), pod("y", -9)], 0), "b": ([pod("z", -9)], 0)},
        "b",
        id="many of negative priority are not better than one",
    ),
    pytest.param(
        {"a": ([pod("x", 2**31 - 1), pod("y", -(2**31))], 0), "b": ([pod("z", 2**31 - 1)], 0)}, "b", id="fewest victims"
    ),
    pytest.param(
        {"a": ([pod("x", 9, 10), pod("y", 9, 20)], 0), "b": ([pod("z", 9, 11), pod("w", 9, 12)], 0)},
        "b",
        id="latest start of the earliest",
    ),
    pytest.param(
        {"a": ([pod("x", 9, 10), pod("y", 5, 59)], 0), "b": ([pod("z", 9, 11), pod("w", 5, 1)], 0)},
        "b",
        id="only top victims count for the start",
    ),
    pytest.param({"a": ([pod("x", 9, 10)], 0), "b": ([make_pod("z", priority=9)], 0)}, "b", id="not started is latest"),
    pytest.param({"a": ([pod("x", 9, 1)], 0), "b": ([pod("z", 9, 1)], 0)}, "a", id="else the first"),
]


@pytest.mark.parametrize(("candidates", "expected"), CHOICES)
def test_the_first_criterion_that_separates_decides(candidates, expected):
    listed = [Candidate(name, victims, violations) for name, (victims, violations) in candidates.items()]
    assert best_candidate(Candidates.of(listed)).node_name == expected
    if expected == "b":
        assert best_candidate(Candidates.of(reversed(listed))).node_name == expected


def violating(budgets, *victims):
    mask = ClusterBudgets(budgets).violating(VictimColumns([PodRanking((victim, {}) for victim in victims).below(99)]))
    return [] if mask is None else [v.name for v, hit in zip(victims, mask.tolist(), strict=True) if hit]


WEB = {"app": "web"}
IN_WEB = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="In", values=("web", "db")),))
NOT_DB = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="NotIn", values=("db",)),))
BROKEN = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="Likes"),))
THREE = [pod(f"p{i}", 5 - i, labels=WEB) for i in range(3)]


@pytest.mark.parametrize(
    ("budgets", "victims", "expected"),
    [
        pytest.param([make_pdb("b", WEB, allowed=1)], THREE, ["p1", "p2"], id="the most important go first"),
        pytest.param([make_pdb("b", WEB, allowed=3)], THREE, [], id="enough for all"),
        pytest.param([make_pdb("b", {}, allowed=0)], THREE, [], id="an empty selector selects nothing"),
        pytest.param([make_pdb("b", IN_WEB, allowed=2)], THREE, ["p2"], id="by expression"),
        pytest.param([make_pdb("b", NOT_DB, allowed=2)], THREE, ["p2"], id="without a label to file it by"),
        pytest.param([make_pdb("b", BROKEN, allowed=0)], THREE, [], id="a broken selector selects nothing"),
        pytest.param([make_pdb("b", WEB, namespace="other")], THREE, [], id="another namespace"),
        pytest.param([make_pdb("b", NOT_DB)], [pod("p")], [], id="a pod without labels has no budget"),
        pytest.param(
            [make_pdb("b", WEB, allowed=2), make_pdb("c", IN_WEB, allowed=1)],
            THREE,
            ["p1", "p2"],
            id="every budget that applies is used up",
        ),
        pytest.param([make_pdb("b", WEB, allowed=-1)], THREE, ["p0", "p1", "p2"], id="below zero already"),
    ],
)
def test_who_would_violate_a_budget(budgets, victims, expected):
    assert violating(budgets, *victims) == expected


def test_pods_that_a_budget_knows_to_be_disrupted_do_not_count_again():
    budget = make_pdb("b", WEB, allowed=1)
    known = replace(budget, status=replace(budget.status, disrupted_pods={"p0": "2026-01-01T00:00:00Z"}))
    assert violating([known], *THREE) == ["p2"]


def test_victims_on_other_nodes_use_up_disruptions_too():
    budgets = ClusterBudgets([make_pdb("b", WEB, allowed=2)])
    later, violating = budgets.spent(THREE[:2])
    assert violating == []
    found = later.violating(VictimColumns([PodRanking([(THREE[2], {})]).below(99)]))
    assert found is not None
    assert found.tolist() == [True]
    assert budgets.spent(THREE)[1] == THREE[2:], "the budgets themselves are as before"


def test_matches_are_forgotten_when_a_budget_changes():
    ranked = PodRanking((victim, {}) for victim in THREE)
    victims = VictimColumns([ranked.below(99)])
    for allowed, violating in ((0, [True, True, True]), (2, [False, False, True])):
        found = ClusterBudgets([make_pdb("b", WEB, allowed=allowed)]).violating(victims)
        assert found is not None
        assert found.tolist() == violating


@pytest.mark.parametrize(
    ("nodes", "percentage", "absolute", "expected"),
    [(5000, 10, 100, 500), (500, 10, 100, 100), (50, 10, 100, 50), (1000, 0, 3, 3), (9, 10, 0, 0), (7, 100, 1, 7)],
)
def test_how_many_candidates_are_enough(nodes, percentage, absolute, expected):
    assert PreemptionPolicy(percentage, absolute).number_of_candidates(nodes) == expected


ONE_NODE = [{"zone": "x", "side": "east", "cpu": 4}]
TARGET = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
EVICTED = PodCondition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")
DELETED = "2026-01-01T00:00:30Z"
NEVER = "not eligible due to preemptionPolicy=Never."
WAITS = "not eligible due to a terminating pod on the nominated node."


@pytest.mark.parametrize(
    ("spec", "victim", "refusal", "expected"),
    [
        pytest.param({"preemption_policy": "Never"}, {}, "", "not eligible due to preemptionPolicy=Never.", id="Never"),
        pytest.param({"preemption_policy": "PreemptLowerPriority"}, {}, "", "", id="the default policy"),
        pytest.param({}, {"deletion_timestamp": DELETED, "conditions": [TARGET]}, "", "", id="nominated nowhere"),
        pytest.param(
            {"nominated": "n0"},
            {"deletion_timestamp": DELETED, "conditions": [TARGET]},
            "",
            WAITS,
            id="a victim terminates",
        ),
        pytest.param(
            {"nominated": "n0"},
            {"deletion_timestamp": DELETED, "conditions": [TARGET]},
            "never",
            "",
            id="the nominated node is beyond help",
        ),
        pytest.param(
            {"nominated": "n0"},
            {"deletion_timestamp": DELETED, "conditions": [EVICTED]},
            "",
            "",
            id="evicted by others",
        ),
        pytest.param({"nominated": "n0"}, {"conditions": [TARGET]}, "", "", id="not terminating"),
        pytest.param(
            {"nominated": "n0"},
            {"deletion_timestamp": DELETED, "conditions": [TARGET], "priority": 100},
            "",
            "",
            id="not of lower priority",
        ),
        pytest.param({"nominated": "gone"}, {}, "", "", id="the nominated node is gone"),
    ],
)
def test_who_may_preempt(spec, victim, refusal, expected):
    world = World(Scene(ONE_NODE, [], {"cpu": 9, "priority": 9}))
    there = make_pod("low", **{"node": "n0", "priority": 0, "finalizers": ["x"], **victim})
    world.engine.cache.add_pod(there)
    status = Status.unresolvable("no") if refusal else Status.unschedulable("no")
    world.statuses.set_rows(world.nodes.rows, status)
    waiting = make_pod("high", priority=9, **spec)
    assert PreemptionPolicy().ineligible(waiting, world.statuses) == expected


class Webhook:
    """An extender with prepared answers."""

    weight, filters, prioritizes, binds, preempts = 1, False, False, False, True

    def __init__(self, answer, ignorable=False, interested=True):
        self.name, self.answer, self.ignorable, self.interested = "webhook", answer, ignorable, interested
        self.warnings = []

    def warn(self, error):
        self.warnings.append(str(error))

    def is_interested(self, pod):
        return self.interested

    async def preempt(self, pod, victims):
        if isinstance(self.answer, Exception):
            raise self.answer
        return {name: victims.get(name, Victims(())) if kept is None else kept for name, kept in self.answer.items()}


BOTH = Candidates.of([Candidate("a", [pod("x", 5), pod("y", 4)], 1), Candidate("b", [pod("z", 5)])])


@pytest.mark.parametrize(
    ("extenders", "expected"),
    [
        pytest.param([], {"a": ["x", "y"], "b": ["z"]}, id="nobody asked"),
        pytest.param([Webhook({"b": None})], {"b": ["z"]}, id="a node is dropped"),
        pytest.param([Webhook({"a": Victims([pod("y", 4)])})], {"a": ["y"]}, id="a victim is spared"),
        pytest.param([Webhook({}, interested=False)], {"a": ["x", "y"], "b": ["z"]}, id="not interested"),
        pytest.param([Webhook({})], {}, id="nothing is left"),
        pytest.param([Webhook({"a": None}), Webhook({"b": None})], "not in the request", id="one after the other"),
        pytest.param([Webhook(ExtenderError("down"))], "down", id="an error"),
        pytest.param([Webhook(ExtenderError("down"), True)], {"a": ["x", "y"], "b": ["z"]}, id="ignorable"),
        pytest.param([Webhook({"a": Victims(())})], 'expected at least one victim pod on node "a"', id="no victims"),
        pytest.param([Webhook({"a": Victims(()), "b": None}, True)], {"b": ["z"]}, id="no victims, ignorable"),
        pytest.param([Webhook({"c": None})], "not in the request", id="a node of its own"),
    ],
)
def test_extenders_narrow_the_candidates(extenders, expected):
    asked = narrowed(extenders, make_pod("high"), BOTH)
    if isinstance(expected, str):
        with pytest.raises(ExtenderError, match=expected):
            asyncio.run(asked)
    else:
        assert {c.node_name: [v.name for v in c.victims] for c in asyncio.run(asked)} == expected
        skipped = [str(each.answer) for each in extenders if isinstance(each.answer, Exception)]
        assert [text for each in extenders for text in each.warnings] == skipped


def answer(scene):
    """What PostFilter says about a scene."""
    world = World(scene)

    async def ask():
        answer = await maybe_await(world.profile.post_filter[-1].post_filter(world.state, world.pod, world.statuses))
        await world.engine.tasks.stop()
        return answer

    return asyncio.run(ask())


FULL = [{"node": i, "cpu": 4, "priority": 0, "at": i} for i in range(3)]
NODES = [{"zone": "x", "side": side, "cpu": 4} for side in ("east", "west", "west")]


def test_nodes_beyond_help_are_reported_and_the_nomination_is_cleared():
    result, status = answer(Scene(NODES, FULL, {"cpu": 5, "priority": 9}))
    assert (result.nominated_node, status.code) == ("", Code.UNSCHEDULABLE)
    assert status.message == "preemption: 0/3 nodes are available: 3 no room."


def test_refusals_of_the_dry_run_are_counted_with_nodes_beyond_help():
    pods = [*FULL[:1], {"node": 0, "cpu": 0, "priority": 9, "at": 9}]
    result, status = answer(Scene(NODES, pods, {"cpu": 5, "priority": 9, "side": "east"}))
    assert (result.nominated_node, result.victims) == ("", ())
    assert status.message == (
        "preemption: 0/3 nodes are available: 1 no room, 2 Preemption is not helpful for scheduling."
    )


def test_success_has_no_message():
    result, status = answer(Scene(NODES, FULL, {"cpu": 4, "priority": 9}))
    assert (status.is_success, result.nominated_node) == (True, "n2")
    assert [victim.name for victim in result.victims] == ["p2"]


class Spares(PreemptionPolicy):
    """Pods of app a are never victims, and the first node is as good as any."""

    def victims(self, pod, node):
        return [other for other in super().victims(pod, node) if other.labels.get("app") != "a"]

    def choose(self, pod, candidates):
        return candidates[0]


def test_a_policy_of_its_own_decides_who_goes_and_where():
    pods = [{**spec, "app": app} for spec, app in zip(FULL, ("a", "b", "c"), strict=True)]
    world = World(Scene(NODES, pods, {"cpu": 4, "priority": 9}))
    preemption = world.profile.plugins["DefaultPreemption"].handle.preemption(Spares())

    async def ask():
        answer = await preemption.preempt(world.state, world.pod, world.statuses)
        await world.engine.tasks.stop()
        return answer

    result, _ = asyncio.run(ask())
    assert (result.nominated_node, [v.name for v in result.victims]) == ("n1", ["p1"])


def test_the_search_stops_when_enough_are_found_and_one_violates_nothing():
    count = 30
    nodes = [{"zone": "x", "side": "east", "cpu": 4}] * count
    pods = [{"node": i, "cpu": 4, "priority": 0, "at": 0, "app": "a" if i < 20 else "b"} for i in range(count)]
    world = World(Scene(nodes, pods, {"cpu": 4, "priority": 9}, [make_pdb("b", {"app": "a"}, allowed=0)]))
    handle = world.profile.plugins["DefaultPreemption"].handle
    budgets = ClusterBudgets(handle.lister(POD_DISRUPTION_BUDGETS).list())
    search = CandidateSearch(Session(world.profile).remove_victims, world.pod, world.state, budgets)
    rows = world.statuses.rows_with(Code.UNSCHEDULABLE)
    found = search.run(Nodes(world.nodes.columns, rows), 8, lambda block: [node.ranked.below(9) for node in block])
    names = [c.node_name for c in found.candidates]
    assert names == ["n20", *(f"n{i}" for i in range(8))], "one sound node is enough, of the others eight are kept"
