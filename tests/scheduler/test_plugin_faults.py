"""Broken plugins: the attempt fails with a message that says who broke where, and the scheduler goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from moorage.framework import (
    ActionType,
    ClusterEvent,
    Code,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreBindPreFlight,
    QueueingHint,
    QueueSortPlugin,
    Reads,
    Registration,
    ReservePlugin,
    ReusablePlugin,
    SortKeyPlugin,
    Status,
    VectorFilterPlugin,
    VectorScorePlugin,
)
from moorage.framework.events import NODE, POD
from moorage.runtime.registry import PluginError
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import built, config, the_pod, where
from tests.scheduler.recorder import ONLY_WITNESS, witness

TWO = (make_node("a"), make_node("b"))
BOOM = RuntimeError("boom")
REFUSES = {"Filter": lambda node: Status.unschedulable("full")}

OF_NODES = ("Filter", "Score")
OF_THE_CHOSEN = ("Reserve", "Permit", "PreBindPreFlight", "PreBind", "Bind")
POINTS = ("PreFilter", *OF_NODES, "PreScore", "NormalizeScore", *OF_THE_CHOSEN)
NAMES = {"Filter": 'running "witness" filter plugin: ', "Score": "running Score plugins: "}
NAMES["NormalizeScore"] = "running Normalize on Score plugins: "


def prefix(point: str) -> str:
    return NAMES.get(point, f'running {point} plugin "witness": ')


def lazily(answer: Any) -> Any:
    """For points whose answers depend on the node; raises when it is asked, inside the plugin."""

    def give(node: str) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer

    return give


class Mute(Exception):
    """An exception whose text cannot be built."""

    def __str__(self) -> str:
        raise SystemExit("no text")


class Hidden:
    """An answer whose repr cannot be built."""

    def __repr__(self) -> str:
        raise asyncio.CancelledError


NONSENSE = [
    pytest.param(BOOM, "RuntimeError: boom", id="raises"),
    pytest.param(KeyError("k"), "KeyError: 'k'", id="raises KeyError"),
    pytest.param(asyncio.CancelledError(), "CancelledError", id="raises CancelledError"),
    pytest.param(TimeoutError(), "TimeoutError", id="raises TimeoutError"),
    pytest.param(SystemExit(3), "SystemExit: 3", id="raises SystemExit"),
    pytest.param(GeneratorExit(), "GeneratorExit", id="raises GeneratorExit"),
    pytest.param(BaseException("boom"), "BaseException: boom", id="raises BaseException"),
    pytest.param(Mute(), "<Mute whose __str__ raises SystemExit>", id="raises what has no text"),
    pytest.param(Hidden(), "<Hidden whose __repr__ raises CancelledError>", id="returns what has no repr"),
    pytest.param("full", "got 'full'", id="returns text"),
    pytest.param([], "got []", id="returns a list"),
    pytest.param(False, "got False", id="returns False"),
    pytest.param(lambda: Status(99), "99", id="makes a Status of an unknown code"),  # type: ignore[arg-type]
    pytest.param(lambda: Status.unschedulable(7), "7", id="gives a number as reason"),  # type: ignore[arg-type]
]


def fail_once(point: str, answer: Any, more: dict[str, Any] | None = None) -> str:
    """The pod meets the fault and fails; without the fault it and another pod are bound. Returns the note."""
    plugin = witness({**(more or {}), point: lazily(answer)})
    with Cluster(config=ONLY_WITNESS, plugins=[plugin], flush_after=None) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.3)
        assert cluster.node_of("p") == ""
        assert [event.reason for event in cluster.events("p")] == ["FailedScheduling"]
        note = cluster.events("p")[0].note
        assert not list(cluster.scheduler.engine.cache.pods()), "nothing stays assumed"
        assert len(cluster.scheduler.engine.services.waiting) == 0, "nothing stays waiting"
        record = cluster.record("p")
        cluster.validate()
        plugin.answers.clear()
        cluster.add(make_pod("other"))
        cluster.settle(20)
        assert cluster.pending() == [], "the scheduler goes on"
        cluster.validate()
        if point not in ("PreBindPreFlight", "PreBind", "Bind"):
            assert (record.message, record.result) == (note, "unschedulable" if more else "error")
    return note


def nonsense_at_points():
    """Every answer at every point."""
    for case in NONSENSE:
        for point in POINTS:
            yield pytest.param(point, *case.values, id=f"{case.id}-{point}")


@pytest.mark.parametrize(("point", "answer", "message"), list(nonsense_at_points()))
def test_nonsense_at_a_point_fails_that_attempt_only(point, answer, message):
    if point == "NormalizeScore" and answer is False:
        message = "got False"
    note = fail_once(point, answer)
    assert note.startswith(prefix(point))
    assert message in note
    assert '"witness"' in note
    assert 'pod "default/p"' in note
    if point in (*OF_NODES, *OF_THE_CHOSEN):
        assert 'node "a"' in note


@pytest.mark.parametrize(("answer", "message"), NONSENSE)
def test_nonsense_at_post_filter_is_reported_after_the_refusals(answer, message):
    note = fail_once("PostFilter", answer, REFUSES)
    assert note.startswith('0/2 nodes are available: 2 full. running PostFilter plugin "witness": ')
    assert message in note
    assert 'pod "default/p"' in note


MEANINGLESS = [
    ("PreFilter", Status.wait()),
    ("PreFilter", Status.pending("p")),
    ("Filter", Status.skip()),
    ("Filter", Status.wait()),
    ("Reserve", Status.skip()),
    ("Reserve", Status.wait()),
    ("Permit", Status.skip()),
]


@pytest.mark.parametrize(("point", "status"), MEANINGLESS, ids=[f"{p} {s.code.label}" for p, s in MEANINGLESS])
def test_a_code_without_meaning_at_a_point_is_an_error(point, status):
    note = fail_once(point, status)
    assert note.startswith(prefix(point))
    assert f"{status.code.label} is not a valid answer to {point}" in note


SCORES = [
    pytest.param(101, "invalid score 101", id="101"),
    pytest.param(-1, "invalid score -1", id="minus 1"),
    pytest.param(float("nan"), "finite", id="NaN"),
    pytest.param(float("-inf"), "finite", id="infinity"),
    pytest.param(True, "got True", id="a bool"),
    pytest.param("5", "got '5'", id="a text"),
    pytest.param(10**400, "64 bits", id="10^400"),
    pytest.param(np.float64("nan"), "finite", id="NaN of numpy"),
]


@pytest.mark.parametrize("point", ["Score", "NormalizeScore"])
@pytest.mark.parametrize(("score", "message"), SCORES)
def test_a_bad_score_names_plugin_pod_and_node(point, score, message):
    answer = {"a": 1, "b": score} if point == "NormalizeScore" else score
    note = fail_once(point, answer)
    assert message in note
    assert 'plugin "witness"' in note
    assert "default/p" in note
    assert f'node "{"b" if point == "NormalizeScore" else "a"}"' in note


def test_a_normalised_score_for_an_unknown_node_is_an_error():
    note = fail_once("NormalizeScore", {"a": 1, "b": 1, "zz": 1})
    assert "'zz', which is not among the nodes" in note


ONLY_MINE = config("mine")


def note_of(plugin: type[Plugin]) -> str:
    with Cluster(config=ONLY_MINE, plugins=[plugin]) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.3)
        assert cluster.node_of("p") == ""
        assert cluster.record("p").plugin == "mine"
        return cluster.events("p")[0].note


VECTORS = [
    pytest.param(lambda nodes: "no", "got 'no'", id="text"),
    pytest.param(lambda nodes: nodes.named("a"), "must return nodes.refuse", id="a bare mask"),
    pytest.param(lambda nodes: nodes.refuse(np.ones(1, np.bool_), "x"), "one entry per node (2)", id="short mask"),
    pytest.param(
        lambda nodes: nodes[0].alone().refusals(), "other nodes than those that it was given", id="for other nodes"
    ),
    pytest.param(lambda nodes: nodes.refuse(nodes.named("a"), ["x"] * 0), "IndexError", id="too few reasons"),
    pytest.param(lambda nodes: nodes.refuse(nodes.named("a"), lambda i: i), "text", id="a number as reason"),
    pytest.param(lambda nodes: nodes.refuse(nodes.named("a"), 5), "", id="a number for a reason"),
    pytest.param(lambda nodes: nodes.refuse(nodes.named("a"), "x", Code.WAIT), "Wait is not a valid answer", id="Wait"),
    pytest.param(lambda nodes: nodes.refuse(nodes.named("a"), "x", Code.ERROR), ": x", id="an Error"),
]


@pytest.mark.parametrize(("answer", "message"), VECTORS)
def test_nonsense_of_a_vector_filter(answer, message):
    class Mine(VectorFilterPlugin):
        name = "mine"

        def filter_nodes(self, state, pod, nodes):
            return answer(nodes)

    note = note_of(Mine)
    assert note.startswith('running "mine" filter plugin: ')
    assert message in note


@pytest.mark.parametrize("array", [np.ones(3), np.array([1.0, np.nan]), [1, 2], np.array([1, 101]), None], ids=str)
def test_nonsense_of_a_vector_score(array):
    class Mine(VectorScorePlugin):
        name = "mine"

        def score_nodes(self, state, pod, nodes):
            return array

    assert 'plugin "mine"' in note_of(Mine)


def test_unreserve_of_the_others_runs_though_one_raises():
    calls: list[str] = []

    def reserving(mine: str, broken: bool) -> type[Plugin]:
        class Mine(ReservePlugin):
            name = mine

            def unreserve(self, state, pod, node_name):
                calls.append(mine)
                if broken:
                    raise BOOM

        return Mine

    class Denies(PermitPlugin):
        name = "denies"

        def permit(self, state, pod, node_name):
            return Status.unschedulable("no") if pod.name == "p" else None

    plugins = [reserving("one", False), reserving("two", True), reserving("three", False), Denies]
    with Cluster(
        config=config("one", "two", "three", "denies"), plugins=plugins, allow_background_failures=True
    ) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.3)
        assert calls == ["three", "two", "one"], "in reverse order"
        assert cluster.events("p")[0].note == "0/1 nodes are available: 1 no."
        cluster.add(make_pod("q"))
        cluster.settle(0.3)
        assert cluster.node_of("q") == "a"


def test_a_failing_post_bind_changes_nothing():
    plugin = witness({"PostBind": lazily(BOOM)})
    with Cluster(config=ONLY_WITNESS, plugins=[plugin], allow_background_failures=True) as cluster:
        cluster.add(*TWO, make_pod("p"), make_pod("q"))
        cluster.settle()
        assert cluster.pending() == []
        assert [e.reason for e in cluster.events()] == ["Scheduled", "Scheduled"]


def test_a_failing_pre_enqueue_gates_the_pod_and_tells_why():
    plugin = witness({"PreEnqueue": lazily(BOOM)})
    with Cluster(config=ONLY_WITNESS, plugins=[plugin], flush_after=None) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle()
        held = where(cluster, "p")
        assert held.place == "gated"
        assert "witness" in held.why
        assert "RuntimeError: boom" in held.why
        plugin.answers.clear()
        cluster.add(make_pod("other"))
        cluster.settle()
        assert cluster.pending() == [], "an event of a common kind brings it back"


HINTS = [
    pytest.param(BOOM, id="raises"),
    pytest.param(None, id="returns None"),
    pytest.param("QueueSkip", id="returns the label of Skip"),
]


@pytest.mark.parametrize("point", POINTS)
def test_what_a_point_answered_is_quoted_without_its_address(point):
    note = fail_once(point, lambda: lambda: None)
    assert "<function" in note
    assert "0x" not in note


@pytest.mark.parametrize("answer", HINTS)
def test_a_broken_hint_queues_the_pod(answer):
    class Mine(FilterPlugin):
        name = "mine"

        def filter(self, state, pod, node):
            return None if "ok" in node.labels else Status.unschedulable("not ok")

        def events_to_register(self):
            return [Registration(ClusterEvent(NODE, ActionType.UPDATE_NODE_LABEL), self.hint)]

        def hint(self, pod, old, new):
            if isinstance(answer, BaseException):
                raise answer
            return answer

    with Cluster(config=ONLY_MINE, plugins=[Mine], flush_after=None) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle()
        cluster.label_node("b", ok="yes")
        cluster.settle()
        assert cluster.node_of("p") == "b"


@pytest.mark.parametrize("answer", [BOOM, [], np.arange(3)], ids=["raises", "unhashable", "ambiguous"])
def test_a_broken_sign_costs_sharing_only(answer):
    class Mine(FilterPlugin, ReusablePlugin):
        name = "mine"

        def filter(self, state, pod, node):
            return None if "ok" in node.labels else Status.unschedulable("not ok")

        def sign(self, pod):
            if isinstance(answer, BaseException):
                raise answer
            return answer

    with Cluster(config=ONLY_MINE, plugins=[Mine], flush_after=None) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle()
        cluster.label_node("b", ok="yes")
        cluster.settle()
        assert cluster.node_of("p") == "b"


async def waiting_hint(pod, old, new):
    return QueueingHint.SKIP


REGISTERED = [
    pytest.param(BOOM, "RuntimeError: boom", id="raises"),
    pytest.param(5, "got 5", id="a number"),
    pytest.param([ClusterEvent(NODE, ActionType.ADD)], "Registration", id="events without Registration"),
    pytest.param([Registration("NodeAdd")], "ClusterEvent", id="a text as event"),  # type: ignore[arg-type]
    pytest.param(
        [Registration(ClusterEvent(Reads.NODE, ActionType.ADD))],  # type: ignore[arg-type]
        "the resource of a ClusterEvent is an EventResource",
        id="a dependency as resource of the event",
    ),
    pytest.param(
        [Registration(ClusterEvent(POD, "Add"))],  # type: ignore[arg-type]
        "the action of a ClusterEvent is an ActionType, got 'Add'",
        id="a text as action of the event",
    ),
    pytest.param(
        [Registration(ClusterEvent(NODE, ActionType.ADD), waiting_hint)],  # type: ignore[arg-type]
        "the hint of a Registration is a plain function",
        id="async def as hint",
    ),
    pytest.param([Registration(ClusterEvent(NODE, ActionType.ADD), 7)], "hint", id="a number as hint"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("answer", "message"), REGISTERED)
def test_bad_registrations_are_an_error_at_start_that_names_the_plugin(answer, message):
    class Mine(FilterPlugin):
        name = "mine"

        def filter(self, state, pod, node):
            return None

        def events_to_register(self):
            if isinstance(answer, BaseException):
                raise answer
            return answer

    with pytest.raises(PluginError) as caught:
        built(ONLY_MINE, [Mine])
    assert 'profile "default-scheduler"' in str(caught.value)
    assert '"mine"' in str(caught.value)
    assert "events_to_register" in str(caught.value)
    assert message in str(caught.value)


def test_a_failing_pre_flight_of_a_waiting_pod_leaves_no_pod_waiting():
    fail_once("PreBindPreFlight", BOOM, None)
    plugin = witness({"Permit": Status.wait(timeout=600), "PreBindPreFlight": lazily(BOOM)})
    with Cluster(config=ONLY_WITNESS, plugins=[plugin]) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.3)
        assert len(cluster.scheduler.engine.services.waiting) == 0
        del plugin.answers["PreBindPreFlight"]
        cluster.settle(20)
        assert len(cluster.scheduler.engine.services.waiting) == 1, "its next attempt waits again"
        cluster.delete(the_pod(cluster, "p"))
        cluster.settle()
        assert not list(cluster.scheduler.engine.cache.pods())


def test_parallel_pre_binds_where_one_raises_cancel_the_other():
    ended: list[str] = []
    first = witness({"PreBindPreFlight": PreBindPreFlight(True), "PreBind": lazily(BOOM)}, "first")

    class Second(first):  # type: ignore[valid-type, misc]
        name = "second"

        async def pre_bind(self, state, pod, node_name):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(pod.name)

    with Cluster(config=config("first", "second"), plugins=[first, Second]) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.3)
        assert ended == ["p"]
        assert "boom" in cluster.events("p")[0].note


def broken_sort(method: str) -> type[QueueSortPlugin]:
    def broken(self: Any, *pods: Any) -> Any:
        if any(pod.pod.name == "p" for pod in pods):
            raise BOOM
        return pods[0].timestamp < pods[-1].timestamp if method == "less" else pods[0].timestamp

    base = SortKeyPlugin if method == "key" else QueueSortPlugin
    return type("Sort", (base,), {"name": "mine", method: broken})


@pytest.mark.parametrize("method", ["key", "less"])
def test_a_queue_sort_that_raises_loses_no_pod(method):
    text = config().replace("PrioritySort", "mine")
    with Cluster(config=text, plugins=[broken_sort(method)], flush_after=None) as cluster:
        cluster.add(*TWO, *(make_pod(name) for name in ("x", "p", "y")))
        cluster.settle()
        assert cluster.pending() == []
        cluster.validate()
