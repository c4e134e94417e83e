"""Extenders at their port: they narrow, score and bind; their errors fail the attempt or are skipped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from moorage.api.errors import OutcomeUnknown
from moorage.framework import FilterPlugin, ScorePlugin, Status
from moorage.framework.nodes import Nodes
from moorage.framework.ports import ExtenderError, ExtenderFilterResult, Victims
from moorage.testing import make_node, make_nodes, make_pod
from tests.scheduler.kit import ExtendedCluster, assumed, config, notes, place

PLAIN = config()
THREE = tuple(make_node(name) for name in "abc")
DOWN = ExtenderError("the extender is down")


class Fake:
    """An extender with prepared answers, which notes what it was asked. A verb without answer is off."""

    def __init__(
        self,
        name: str = "fake",
        *,
        filter: Callable[[list[str]], Any] | None = None,  # noqa: A002
        prioritize: Callable[[list[str]], Any] | None = None,
        bind: Callable[[Any, str], Any] | None = None,
        weight: int = 1,
        ignorable: bool = False,
        interested: Callable[[Any], bool] = lambda pod: True,
    ) -> None:
        self.name, self.weight, self.ignorable = name, weight, ignorable
        self.is_interested = interested
        self.filters, self.prioritizes, self.binds = bool(filter), bool(prioritize), bool(bind)
        self.preempts = False
        self._filter, self._prioritize, self._bind = filter, prioritize, bind
        self.calls: list[tuple[Any, ...]] = []
        self.closed = False
        self.warnings: list[str] = []

    async def close(self) -> None:
        self.closed = True

    def warn(self, error: Exception) -> None:
        self.warnings.append(str(error))

    async def filter(self, pod: Any, nodes: Nodes) -> ExtenderFilterResult:
        await asyncio.sleep(0)
        self.calls.append(("filter", pod.name, tuple(nodes.names)))
        assert self._filter is not None
        answer = self._filter(nodes.names)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, ExtenderFilterResult) else ExtenderFilterResult(frozenset(answer))

    async def prioritize(self, pod: Any, nodes: Nodes) -> Mapping[str, int]:
        await asyncio.sleep(0)
        self.calls.append(("prioritize", pod.name, tuple(nodes.names)))
        assert self._prioritize is not None
        answer = self._prioritize(nodes.names)
        if isinstance(answer, Exception):
            raise answer
        scores: Mapping[str, int] = answer
        return scores

    async def preempt(self, pod: Any, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return victims

    async def bind(self, pod: Any, node_name: str) -> None:
        self.calls.append(("bind", pod.name, node_name))
        assert self._bind is not None
        answer = self._bind(pod, node_name)
        if isinstance(answer, Exception):
            raise answer


def cluster_of(*extenders: Fake, **options: Any) -> ExtendedCluster:
    return ExtendedCluster(*extenders, **{"config": PLAIN, "flush_after": None, **options})


def test_a_filter_narrows_the_nodes_and_the_next_sees_the_remaining_ones():
    first = Fake(filter=lambda names: [n for n in names if n != "a"])
    second = Fake("second", filter=lambda names: [n for n in names if n != "b"])
    with cluster_of(first, second) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "c"
    assert (first.calls, second.calls) == ([("filter", "p", ("a", "b", "c"))], [("filter", "p", ("b", "c"))])


def test_ignorable_extenders_are_asked_last_whatever_the_order():
    order: list[str] = []

    def noting(name: str) -> Callable[[list[str]], Any]:
        def answer(names: list[str]) -> list[str]:
            order.append(name)
            return names

        return answer

    extenders = [Fake(n, filter=noting(n), ignorable=n in "xz") for n in ("x", "w", "z", "v")]
    with cluster_of(*extenders) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
    assert order == ["w", "v", "x", "z"]


def test_no_extender_is_asked_about_an_empty_list_of_nodes():
    class No(FilterPlugin):
        name = "never"

        def filter(self, state, pod, node):
            return Status.unschedulable("no")

    fake = Fake(filter=lambda names: names, prioritize=lambda names: {})
    with cluster_of(fake, config=config("never"), plugins=[No]) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert notes(cluster, "p") == ["0/3 nodes are available: 3 no."]
    assert fake.calls == []


def test_pods_that_it_is_not_interested_in_pass_by():
    fake = Fake(filter=lambda names: [], interested=lambda pod: pod.name == "p")
    with cluster_of(fake) as cluster:
        cluster.add(*THREE, make_pod("p"), make_pod("q"))
        cluster.settle()
        assert cluster.pending() == ["default/p"]


REFUSALS = [
    pytest.param(
        ExtenderFilterResult(frozenset(), {"a": "busy", "b": "busy"}, {"c": "never"}),
        "0/3 nodes are available: 1 never, 2 busy.",
        id="texts of both kinds",
    ),
    pytest.param(
        ExtenderFilterResult(frozenset(), {"a": "x", "b": "x", "c": "x"}, {"a": "y"}),
        "0/3 nodes are available: 1 y, 2 x.",
        id="unresolvable wins over failed",
    ),
    pytest.param(
        ExtenderFilterResult(frozenset(), {"a": "x"}),
        "0/3 nodes are available: 1 x.",
        id="nodes left out without a word add no reason",
    ),
    pytest.param(ExtenderFilterResult(frozenset()), "0/3 nodes are available:", id="no word at all"),
]


@pytest.mark.parametrize(("answer", "note"), REFUSALS)
def test_the_texts_of_an_extender_reach_the_event(answer, note):
    with cluster_of(Fake(filter=lambda names: answer)) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert notes(cluster, "p") == [note]
        record = cluster.record("p")
        assert {refusal.plugin for refusal in record.refusals} == {"Extender"}
        assert sum(refusal.nodes for refusal in record.refusals) == 3


def test_codes_of_extender_refusals():
    answer = ExtenderFilterResult(frozenset(), {"a": "x"}, {"b": "y"})
    with cluster_of(Fake(filter=lambda names: answer)) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        found = {name: cluster.record("p").refusal_of(name) for name in "abc"}
        codes = {name: refusal.code for name, refusal in found.items() if refusal is not None}
    hopeless = "UnschedulableAndUnresolvable"
    assert codes == {"a": "Unschedulable", "b": hopeless, "c": hopeless}


def test_an_error_of_an_ignorable_extender_is_skipped():
    broken = Fake("broken", filter=lambda names: DOWN, prioritize=lambda names: DOWN, ignorable=True)
    narrow = Fake("narrow", filter=lambda names: ["c"], ignorable=True)
    with cluster_of(broken, narrow) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "c"
    assert (broken.warnings, narrow.warnings) == ([str(DOWN)], [])


def test_an_error_of_any_other_extender_fails_the_attempt():
    answers: list[Any] = [DOWN]
    fake = Fake(filter=lambda names: answers.pop() if answers else names)
    with cluster_of(fake) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(0.3)
        assert notes(cluster, "p") == ["the extender is down"]
        assert place(cluster, "p") == "backoff"
        assert cluster.record("p").plugin == "Extender"
        cluster.settle(5)
        assert cluster.node_of("p") == "a"


@pytest.mark.parametrize("name", ["unknown", "b"], ids=["no node of the cluster", "a node that was not sent"])
def test_a_node_that_was_not_asked_about_is_an_error(name):
    refusing = Fake("first", filter=lambda names: [n for n in names if n != "b"])
    lying = Fake("lying", filter=lambda names: [*names, name])
    with cluster_of(refusing, lying) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(0.3)
        expected = f'extender "lying" claims a filtered node "{name}" which is not found in the input node list'
        assert notes(cluster, "p") == [expected]


def test_an_ignorable_extender_that_invents_nodes_is_ignored():
    lying = Fake("lying", filter=lambda names: ["c", "unknown"], ignorable=True)
    with cluster_of(lying) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a", "its narrowing counts for nothing either"


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind"])
def test_an_extender_with_a_bug_fails_the_attempt_and_nothing_else(verb):
    faults: list[Any] = [ZeroDivisionError("bug")]

    def answer(*args: Any) -> Any:
        if faults:
            return faults.pop()
        return {} if verb == "prioritize" else args[0]

    with cluster_of(Fake(**{verb: answer})) as cluster:  # type: ignore[arg-type]
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(0.3)
        assert faults == []
        assert assumed(cluster) == []
        cluster.settle(0.1)
        if verb == "prioritize":
            return
        assert "ZeroDivisionError: bug" in notes(cluster, "p")[0]
        assert len(cluster.scheduler.records.of("default/p")) == 1, "this attempt is on record too"
        cluster.add(make_pod("q"))
        cluster.settle(5)
        assert verb == "bind" or cluster.pending() == []
        assert verb != "bind" or cluster.pending() == ["default/p", "default/q"], "its binds say so only"


class Prefers(ScorePlugin):
    """Node c is 31 better than b, which is 19 better than a."""

    name = "prefers"

    def score(self, state, pod, node):
        return {"a": 10, "b": 29, "c": 60}[node.name]


SCORES = [
    pytest.param({}, 1, "c", {"a": 10, "b": 29, "c": 60}, id="no opinion"),
    pytest.param({"a": 5}, 1, "c", {"a": 60, "b": 29, "c": 60}, id="not enough, times ten"),
    pytest.param({"a": 6}, 1, "a", {"a": 70, "b": 29, "c": 60}, id="enough, times ten"),
    pytest.param({"b": 1}, 4, "b", {"a": 10, "b": 69, "c": 60}, id="times its weight"),
    pytest.param({"b": 10, "zz": 10}, 1, "b", {"a": 10, "b": 129, "c": 60}, id="unknown hosts are ignored"),
]


@pytest.mark.parametrize(("scores", "weight", "winner", "totals"), SCORES)
def test_scores_are_added_times_weight_times_ten(scores, weight, winner, totals):
    fake = Fake(prioritize=lambda names: scores, weight=weight)
    with cluster_of(fake, config=config("prefers"), plugins=[Prefers], seed=1) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        record = cluster.record("p")
        assert {entry.node: entry.total for entry in record.scores} == totals
        assert cluster.node_of("p") in [name for name, total in totals.items() if total == max(totals.values())]
        if winner != "c" or scores == {}:
            assert cluster.node_of("p") == winner


def test_scores_of_several_extenders_add_up():
    fakes = [Fake(str(i), prioritize=lambda names: {"a": 3}) for i in range(2)]
    with cluster_of(*fakes, config=config("prefers"), plugins=[Prefers]) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.record("p").scores[0].total == 10 + 2 * 30


BAD_SCORES = [
    pytest.param(DOWN, id="an error"),
    pytest.param({"a": float("nan")}, id="NaN"),
    pytest.param({"a": 9.9}, id="a fraction"),
    pytest.param({"a": "9"}, id="a text"),
    pytest.param({"a": True}, id="a bool"),
    pytest.param({"a": 10**18}, id="beyond all bounds"),
    pytest.param({"a": -1}, id="negative"),
    pytest.param({"b": 10, "a": "9"}, id="one good and one bad"),
    pytest.param([("a", 9)], id="no mapping"),
]


@pytest.mark.parametrize("scores", BAD_SCORES)
def test_bad_scores_of_an_extender_count_for_nothing(scores):
    fake = Fake(prioritize=lambda names: scores)
    with cluster_of(fake, config=config("prefers"), plugins=[Prefers]) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "c"
        assert [entry.total for entry in cluster.record("p").scores] == [60, 29, 10]
    assert len(fake.warnings) == 1, "not ignorable, and no failure of the attempt either"


def placements(seed: int, extended: bool) -> list[str]:
    fakes = [Fake(prioritize=lambda names: {})] if extended else []
    with cluster_of(*fakes, seed=seed) as cluster:
        cluster.add(make_nodes(8), *(make_pod(f"p{i}") for i in range(12)))
        cluster.settle()
        return [cluster.node_of(f"p{i}") for i in range(12)]


def test_ties_are_broken_by_the_seeded_random_only_where_extenders_score():
    print("seeds 5 and 6")
    assert set(placements(5, extended=False)) == {"node-0"}, "the first one otherwise"
    drawn = placements(5, extended=True)
    assert len(set(drawn)) > 3
    assert placements(5, extended=True) == drawn
    assert placements(6, extended=True) != drawn


def test_a_binding_extender_binds_in_place_of_the_plugins():
    with cluster_of(Fake(bind=lambda pod, node: cluster.store.bind(pod.name, pod.namespace, node))) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a"
        assert cluster.faults.calls_of("bind") == []
        assert notes(cluster, "p") == ["Successfully assigned default/p to a"]
        assert assumed(cluster) == []


def test_a_failing_ignorable_binder_falls_through_to_the_plugins():
    binder = Fake(bind=lambda pod, node: DOWN, ignorable=True)
    with cluster_of(binder) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a"
        assert len(cluster.faults.calls_of("bind")) == 1
    assert binder.warnings == [str(DOWN)]


def test_a_failing_binder_fails_the_attempt():
    with cluster_of(Fake(bind=lambda pod, node: DOWN)) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(0.3)
        assert notes(cluster, "p") == ["the extender is down"]
        assert (assumed(cluster), place(cluster, "p")) == ([], "backoff")


def test_a_binder_that_bound_and_then_failed_is_understood():
    def bind(pod: Any, node: str) -> Exception:
        cluster.store.bind(pod.name, pod.namespace, node)
        return OutcomeUnknown("no answer")

    with cluster_of(Fake(bind=bind)) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(3)
        assert notes(cluster, "p") == ["Successfully assigned default/p to a"]
        assert assumed(cluster) == []


WAKING = [
    pytest.param(lambda c: c.label_node("a", x="y"), id="a node's label"),
    pytest.param(lambda c: c.add(make_pod("other", scheduler="somebody", node="b")), id="another pod"),
    pytest.param(lambda c: c.add(make_node("d")), id="a new node"),
]


@pytest.mark.parametrize("happen", WAKING)
def test_a_pod_refused_by_an_extender_is_woken_by_any_event(happen):
    open_ = [False]
    with cluster_of(Fake(filter=lambda names: names if open_[0] else [])) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(20)
        assert place(cluster, "p") == "unschedulable"
        open_[0] = True
        cluster.settle(3600)
        assert place(cluster, "p") == "unschedulable", "no timer does it"
        happen(cluster)
        cluster.settle(2)
        assert cluster.node_of("p") == "a"
        assert cluster.record("p").woken_hint == "Extender"


def test_stopping_while_an_extender_thinks_sends_no_bind():
    class Slow(Fake):
        async def filter(self, pod: Any, nodes: Nodes) -> ExtenderFilterResult:
            await cluster.clock.sleep(0.5)
            return await super().filter(pod, nodes)

    with cluster_of(Slow(filter=lambda names: names)) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(0.1)
        cluster.run(cluster.scheduler.engine.stop())
        cluster.settle(5)
        assert cluster.faults.calls_of("bind") == []
