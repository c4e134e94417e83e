"""Which unschedulable pods an event brings back, and how many questions that takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from moorage.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE,
    POD,
    UNSCHEDULED_POD_ADD,
    VOLUME_ATTACHMENT,
    WILDCARD,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from moorage.queue import SchedulingQueue
from moorage.telemetry.logs import VALUES
from tests.queue.kit import NODE_ADD, NODE_DELETE, NODE_LABEL, POD_ALL, Hint, World, a_pod, changed, no, on, yes

EVERYTHING = ClusterEvent(WILDCARD, ActionType.ALL)
GATES_GONE = "TargetPodUpdatePodSchedulingGatesEliminated"
TOLERATIONS = a_pod("x", tolerations=1).spec.tolerations
CUSTOM = EventResource("foos.v1.example.com")


@pytest.mark.parametrize(
    ("registered", "event", "wakes"),
    [
        pytest.param(NODE_ADD, NODE_ADD, True, id="the same event"),
        pytest.param(NODE_ADD, NODE_DELETE, False, id="another action"),
        pytest.param(NODE_ADD, ClusterEvent(POD, ActionType.ADD), False, id="another resource"),
        pytest.param(ClusterEvent(NODE, ActionType.UPDATE), NODE_LABEL, True, id="one bit in common"),
        pytest.param(POD_ALL, ASSIGNED_POD_DELETE, True, id="Pod covers assigned pods"),
        pytest.param(POD_ALL, UNSCHEDULED_POD_ADD, True, id="Pod covers pending pods"),
        pytest.param(EVERYTHING, NODE_LABEL, True, id="a wildcard registration, as extenders have"),
        pytest.param(ClusterEvent(CUSTOM, ActionType.ADD), ClusterEvent(CUSTOM, ActionType.ADD), True, id="custom"),
        pytest.param(None, NODE_ADD, False, id="no registration at all"),
        pytest.param(None, ClusterEvent(VOLUME_ATTACHMENT, ActionType.ADD), False, id="no registration, rare kind"),
        pytest.param(None, EVERYTHING, True, id="a wildcard event needs no registration"),
    ],
)
def test_an_event_wakes_pods_whose_rejector_registered_it(world, registered, event, wakes):
    world.register(Fit=[on(registered)] if registered else [])
    pod = a_pod("p")
    world.refuse(pod, "Fit")
    world.wait(20)
    assert world.queue.on_event(event) == int(wakes)
    assert world.place(pod) == ("active" if wakes else "unschedulable")


@pytest.mark.parametrize(
    ("first", "second", "wakes"),
    [(no, no, False), (yes, no, True), (no, yes, True)],
    ids=["both skip", "the first queues", "the second queues"],
)
def test_one_queue_among_all_rejectors_suffices(world, first, second, wakes):
    world.register(A=[on(NODE_ADD, first())], B=[on(NODE_ADD, second())], C=[on(NODE_ADD, yes())])
    pod = a_pod("p")
    info = world.refuse(pod, "A", "B")
    world.wait(20)
    assert world.queue.on_event(NODE_ADD) == int(wakes)
    assert info.woken_hint == ({(no, no): "", (yes, no): "A", (no, yes): "B"}[first, second])


def test_only_rejectors_are_asked(world):
    asked, other = yes(), yes()
    world.register(A=[on(NODE_ADD, asked)], B=[on(NODE_ADD, other)])
    world.refuse(a_pod("p"), "A")
    world.queue.on_event(NODE_ADD)
    assert (asked.asked, other.asked) == (["p"], [])


@pytest.mark.parametrize(
    ("waited", "pending", "place"),
    [
        pytest.param(0, (), "backoff", id="within its wait it backs off"),
        pytest.param(5, (), "active", id="after its wait it is active at once"),
        pytest.param(0, ("Gang",), "active", id="a Pending plugin skips the wait"),
    ],
)
def test_a_woken_pod_finishes_its_backoff_first(world, waited, pending, place):
    world.register(Fit=[on(NODE_ADD, yes())], Gang=[on(NODE_ADD, yes())])
    pod = a_pod("p")
    info = world.refuse(pod, "Fit", pending=pending)
    world.wait(waited)
    world.queue.on_event(NODE_ADD)
    assert world.place(pod) == place
    assert (info.woken_by, info.was_flushed) == ("NodeAdd", False)


def test_what_woke_a_pod_is_remembered_through_backoff(world):
    world.register(Fit=[on(NODE_ADD, yes())])
    pod = a_pod("p")
    info = world.refuse(pod, "Fit")
    world.queue.on_event(NODE_ADD)
    world.wait(3)
    assert (world.place(pod), info.woken_by, info.woken_hint) == ("active", "NodeAdd", "Fit")


@pytest.mark.parametrize("per_pod", [False, True])
def test_a_hint_that_breaks_wakes_the_pod_and_is_logged_with_its_plugin(world, caplog, per_pod):
    world.register(Fit=[on(NODE_ADD, Hint(RuntimeError("boom")), per_pod)])
    world.refuse(a_pod("p"), "Fit")
    with caplog.at_level(logging.ERROR):
        assert world.queue.on_event(NODE_ADD) == 1
    assert "Queueing hint failed" in caplog.text
    assert any("Fit" in str(vars(record)) for record in caplog.records)


class Answer:
    """Nothing that a hint may return."""


@pytest.mark.parametrize("per_pod", [False, True])
@pytest.mark.parametrize(
    ("nonsense", "shown"),
    [
        (None, "None"),
        (False, "False"),
        ("QueueSkip", "'QueueSkip'"),
        (Answer(), "<tests.queue.test_events.Answer object>"),
    ],
)
def test_a_hint_that_answers_nonsense_wakes_the_pod_and_is_logged_once_per_plugin_and_event(
    world, caplog, nonsense: Any, shown, per_pod
):
    hint = Hint(lambda pod, old, new: nonsense)
    world.register(Fit=[on(NODE_ADD, hint, per_pod), on(NODE_DELETE, hint, per_pod)])
    with caplog.at_level(logging.ERROR):
        for event in (NODE_ADD, NODE_ADD, NODE_DELETE):
            for number in range(2):
                world.refuse(a_pod(f"{len(hint.asked)}-{number}"), "Fit")
            assert world.queue.on_event(event) == 2
            world.wait(30)
            world.pop_names()
    assert [getattr(record, VALUES) for record in caplog.records] == [
        {"plugin": "Fit", "event": "NodeAdd", "got": shown},
        {"plugin": "Fit", "event": "NodeDelete", "got": shown},
    ]


def test_pods_of_one_signature_share_one_answer(world):
    hint = yes()
    world.register(Fit=[on(NODE_ADD, hint)])
    for i in range(10):
        world.refuse(a_pod(f"p{i}", labels={"app": "web"}), "Fit")
    assert world.queue.on_event(NODE_ADD) == 10
    assert hint.asked == ["p0"]


def test_an_answer_is_shared_by_groups_with_other_rejectors_too(world):
    hint = no()
    world.register(Fit=[on(NODE_ADD, hint)], Other=[])
    world.refuse(a_pod("a", labels={"app": "web"}), "Fit")
    world.refuse(a_pod("b", labels={"app": "web"}), "Fit", "Other")
    world.queue.on_event(NODE_ADD)
    assert hint.asked == ["a"]


def test_answers_are_not_kept_for_the_next_event(world):
    hint = no()
    world.register(Fit=[on(NODE_ADD, hint)])
    world.refuse(a_pod("p"), "Fit")
    world.queue.on_event(NODE_ADD)
    hint.answer = QueueingHint.QUEUE
    assert world.queue.on_event(NODE_ADD) == 1


def test_answers_are_not_shared_between_profiles(world):
    hint = no()
    world.register(Fit=[on(NODE_ADD, hint)])
    for profile in ("one", "two"):
        world.refuse(a_pod(profile, labels={"app": "web"}, profile=profile), "Fit")
    world.queue.on_event(NODE_ADD)
    assert hint.asked == ["one", "two"]


def test_a_hint_for_each_pod_is_asked_for_each_pod(world):
    def only_p1(pod, old, new):
        return QueueingHint.QUEUE if pod.name == "p1" else QueueingHint.SKIP

    hint = Hint(only_p1)
    world.register(Fit=[on(NODE_ADD, hint, per_pod=True)])
    for i in range(3):
        world.refuse(a_pod(f"p{i}", labels={"app": "web"}), "Fit")
    assert world.queue.on_event(NODE_ADD) == 1
    assert hint.asked == ["p0", "p1", "p2"]
    assert world.place(a_pod("p1")) == "backoff"


@pytest.mark.parametrize(
    "signatures",
    [lambda pod: None, lambda pod: ["not hashable"], lambda pod: 1 / 0],
    ids=["no signature", "a signature that cannot be compared", "a plugin that breaks"],
)
def test_without_a_signature_every_pod_is_asked_about(world, signatures):
    hint = yes()
    world.hooks.signatures = signatures
    world.register(Fit=[on(NODE_ADD, hint)])
    for i in range(3):
        world.refuse(a_pod(f"p{i}"), "Fit")
    assert world.queue.on_event(NODE_ADD) == 3
    assert hint.asked == ["p0", "p1", "p2"]


def test_the_predicate_leaves_pods_out_also_those_in_flight(world):
    world.register(Fit=[on(NODE_ADD)])
    low, high, flying = a_pod("low"), a_pod("high", priority=9), a_pod("flying", priority=9)
    world.refuse(low, "Fit")
    world.refuse(high, "Fit")
    info = world.popped(flying)
    assert world.queue.on_event(NODE_ADD, only=lambda pod: pod.priority < 5) == 1
    world.queue.requeue(info, unschedulable_plugins=frozenset({"Fit"}))
    assert [world.place(pod) for pod in (low, high, flying)] == ["backoff", "unschedulable", "unschedulable"]


def test_a_wildcard_event_with_a_pod_moves_that_pod_only(world):
    a, b = a_pod("a"), a_pod("b")
    world.refuse(a, "Fit")
    world.refuse(b, "Fit")
    assert world.queue.on_event(EVERYTHING, None, a) == 1
    assert (world.place(a), world.place(b)) == ("backoff", "unschedulable")


def test_new_registrations_hold_at_once_as_after_a_reload(world):
    pod = a_pod("p")
    world.register(Fit=[])
    world.refuse(pod, "Fit")
    assert world.queue.on_event(NODE_ADD) == 0
    world.register(Fit=[on(NODE_ADD)])
    assert world.queue.on_event(NODE_ADD) == 1


@pytest.mark.parametrize(
    ("pod_before", "changes", "label"),
    [
        pytest.param({}, {"labels": {"a": "b"}}, "TargetPodUpdatePodLabel", id="labels"),
        pytest.param({"cpu": "2"}, {"containers": ()}, "TargetPodUpdatePodScaleDown", id="requests"),
        pytest.param({"gates": 1}, {"scheduling_gates": ()}, GATES_GONE, id="gates"),
        pytest.param({}, {"tolerations": TOLERATIONS}, "TargetPodUpdatePodToleration", id="tolerations"),
        pytest.param({}, {"priority_class_name": "x"}, "TargetPodUpdate", id="anything else"),
    ],
)
def test_a_pods_own_update_reaches_the_hint_that_registered_it(world, pod_before, changes, label):
    pod = a_pod("p", **pod_before)
    newer = changed(pod, **changes)
    world.register(Own=[on(POD_ALL, yes())])
    info = world.refuse(pod, "Own")
    world.wait(20)
    world.queue.update(pod, newer)
    assert (world.place(pod), info.woken_by, info.pod) == ("active", label, newer)


@pytest.mark.parametrize(
    ("registered", "place"),
    [
        pytest.param([on(POD_ALL, yes())], "active", id="the rejector registered pod updates"),
        pytest.param([on(POD_ALL, no())], "unschedulable", id="its hint skips this one"),
        pytest.param([on(NODE_ADD)], "unschedulable", id="the rejector registered other events only"),
    ],
)
@pytest.mark.parametrize("when", ["unschedulable", "in flight"])
def test_a_pods_own_update_helps_only_if_a_rejector_says_so(world, registered, place, when):
    world.register(Fit=registered)
    pod = a_pod("p")
    newer = changed(pod, labels={"a": "b"})
    info = world.popped(pod)
    if when == "in flight":
        world.queue.update(pod, newer)
    world.queue.requeue(info, unschedulable_plugins=frozenset({"Fit"}))
    if when == "unschedulable":
        world.queue.update(pod, newer)
    world.wait(20)
    assert world.place(pod) == place


def test_a_pods_own_update_is_no_matter_of_others(world):
    hint = yes()
    world.register(Fit=[on(POD_ALL, hint)])
    changing, other = a_pod("changing"), a_pod("other")
    world.refuse(other, "Fit")
    flying = world.popped(a_pod("flying"))
    world.popped(changing)
    world.queue.update(changing, changed(changing, labels={"a": "b"}))
    world.queue.requeue(flying, unschedulable_plugins=frozenset({"Fit"}))
    assert (world.place(other), world.place(flying.pod), hint.asked) == ("unschedulable", "unschedulable", [])


def test_an_update_with_the_same_version_is_ignored(world):
    world.register(Fit=[on(POD_ALL)])
    pod = a_pod("p")
    world.refuse(pod, "Fit")
    world.queue.update(pod, changed(pod, version="1", labels={"a": "b"}))
    assert world.place(pod) == "unschedulable"


def test_an_update_of_an_unknown_pod_adds_it(world):
    pod = a_pod("p")
    world.queue.update(pod, changed(pod))
    assert (world.place(pod), world.incoming) == ("active", [("active", "UnscheduledPodUpdate")])


def test_an_updated_pod_is_grouped_by_its_new_signature(world):
    hint = yes()
    world.register(Fit=[on(NODE_ADD, hint)])
    a, b = a_pod("a", labels={"app": "web"}), a_pod("b", labels={"app": "web"})
    world.refuse(a, "Fit")
    world.refuse(b, "Fit")
    world.queue.update(b, changed(b, labels={"app": "db"}))
    assert world.queue.on_event(NODE_ADD) == 2
    assert hint.asked == ["a", "b"]


def test_moves_are_counted_by_queue_and_event(world):
    world.register(Fit=[on(NODE_ADD)])
    pod = a_pod("p")
    world.refuse(pod, "Fit")
    world.queue.on_event(NODE_ADD)
    world.wait(5)
    assert world.incoming == [
        ("active", "UnscheduledPodAdd"),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "NodeAdd"),
        ("active", "BackoffComplete"),
    ]


def test_hints_are_reported_with_plugin_event_and_answer():
    world, seen = World(), []
    queue = SchedulingQueue(clock=world.clock, hooks=world.hooks, on_hint=lambda *what: seen.append(what))
    world.register(A=[on(NODE_ADD, no())], B=[on(NODE_ADD, Hint(ValueError()))])
    queue.add(a_pod("p"))
    info = queue.pop()
    assert info is not None
    queue.requeue(info, unschedulable_plugins=frozenset({"A", "B"}))
    queue.on_event(NODE_ADD)
    assert seen == [("A", "NodeAdd", "QueueSkip", 0.0), ("B", "NodeAdd", "Error", 0.0)]


def park_many(world: World, pods: int, signatures: int) -> None:
    for i in range(pods):
        world.queue.add(a_pod(f"p{i}", labels={"app": f"app-{i % signatures}"}))
    while (info := world.queue.pop()) is not None:
        world.queue.requeue(info, unschedulable_plugins=frozenset({"Fit"}))


def test_an_event_over_50000_unschedulable_pods_of_100_signatures_asks_100_hints():
    world, hint = World(), no()
    world.register(Fit=[on(NODE_DELETE, hint), on(ClusterEvent(POD, ActionType.DELETE), hint)], Other=[on(NODE_ADD)])
    park_many(world, 50_000, 100)
    assert world.queue.on_event(NODE_DELETE) == 0
    assert len(hint.asked) == 100
    assert world.queue.on_event(ASSIGNED_POD_DELETE) == 0
    assert len(hint.asked) == 200
    # 0.4 ms and 0.01 ms on a slow machine; a look at each of the pods takes at least 10 ms.
    assert fastest(lambda: world.queue.on_event(NODE_DELETE)) < 0.005
    assert fastest(lambda: world.queue.on_event(NODE_ADD)) < 0.001
    hint.answer, hint.asked = QueueingHint.QUEUE, []
    assert world.queue.on_event(NODE_DELETE) == 50_000
    assert len(hint.asked) == 100
    world.queue.pending.validate()


def fastest(call: Callable[[], object]) -> float:
    """Seconds of CPU that a call takes when nothing disturbs it."""
    times = []
    for _ in range(10):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def test_a_change_of_the_status_alone_does_not_wake_the_pod(world):
    world.register(Fit=[on(POD_ALL)])
    pod = a_pod("p")
    info = world.refuse(pod, "Fit")
    newer = changed(pod, nominated="n1")
    world.queue.update(pod, newer)
    assert (world.place(pod), info.pod) == ("unschedulable", newer)
