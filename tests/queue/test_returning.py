"""What happens to a pod whose attempt failed, and to the events that came meanwhile."""

from __future__ import annotations

import random

import pytest

from moorage.api.pod import PodSchedulingGroup
from moorage.framework.events import ASSIGNED_POD_DELETE, UNSCHEDULED_POD_ADD, WILDCARD, ActionType, ClusterEvent
from tests.queue.kit import NODE_ADD, NODE_DELETE, NODE_LABEL, POD_ALL, World, a_pod, changed, no, on, yes

EVERYTHING = ClusterEvent(WILDCARD, ActionType.ALL)


@pytest.mark.parametrize(
    ("plugins", "place"),
    [
        pytest.param([], "backoff", id="an attempt that broke is retried by backoff"),
        pytest.param(["Fit"], "unschedulable", id="a refused pod waits for an event"),
        pytest.param(["Unregistered"], "unschedulable", id="also when its rejector registered nothing"),
    ],
)
def test_a_failed_pod_goes_where_its_failure_sends_it(world, plugins, place):
    world.register(Fit=[on(NODE_ADD)])
    pod = a_pod("p")
    world.refuse(pod, *plugins)
    assert world.place(pod) == place
    assert world.queue.pending.inflight_events() == {}


@pytest.mark.parametrize(
    ("unschedulable", "pending", "events", "place", "woken"),
    [
        pytest.param("Fit", "", [], "unschedulable", ("", ""), id="nothing happened"),
        pytest.param("Fit", "", [NODE_LABEL], "unschedulable", ("", ""), id="an event nobody registered"),
        pytest.param("Fit", "", [NODE_DELETE], "unschedulable", ("", ""), id="the hint skips it"),
        pytest.param("Fit", "", [NODE_ADD], "backoff", ("NodeAdd", "Fit"), id="the hint queues it"),
        pytest.param("Fit", "", [NODE_DELETE, NODE_ADD], "backoff", ("NodeAdd", "Fit"), id="the second one"),
        pytest.param("Other", "", [NODE_ADD], "unschedulable", ("", ""), id="only the rejectors are asked"),
        pytest.param("", "Fit", [NODE_ADD], "active", ("NodeAdd", "Fit"), id="Pending skips the backoff"),
        pytest.param(
            "Fit", "Gang", [NODE_ADD, ASSIGNED_POD_DELETE], "active", ("AssignedPodDelete", "Gang"),
            id="a later event for the Pending plugin beats an earlier one",
        ),
        pytest.param("Fit", "Gang", [NODE_ADD], "backoff", ("NodeAdd", "Fit"), id="not asked, no say"),
        pytest.param("Fit", "", [EVERYTHING], "backoff", ("*", ""), id="a wildcard helps everybody"),
    ],
)  # fmt: skip
def test_events_during_the_attempt_decide_where_the_pod_goes(world, unschedulable, pending, events, place, woken):
    world.register(Fit=[on(NODE_ADD, yes()), on(NODE_DELETE, no())], Gang=[on(POD_ALL, yes())])
    pod = a_pod("p")
    info = world.popped(pod)
    for event in events:
        world.queue.on_event(event)
    names = [frozenset(filter(None, [plugins])) for plugins in (unschedulable, pending)]
    returned = world.queue.requeue(info, unschedulable_plugins=names[0], pending_plugins=names[1])
    assert (returned, world.place(pod), (info.woken_by, info.woken_hint)) == (place, place, woken)
    assert world.queue.pending.inflight_events() == {}


def test_events_from_before_the_pop_are_not_replayed(world):
    hint = yes()
    world.register(Fit=[on(NODE_ADD, hint)])
    first, second = a_pod("first"), a_pod("second")
    world.add(first, second)
    one = world.pop()
    world.queue.on_event(NODE_ADD)
    two = world.pop()
    world.queue.requeue(two, unschedulable_plugins=frozenset({"Fit"}))
    assert (world.place(second), hint.asked) == ("unschedulable", [])
    world.queue.requeue(one, unschedulable_plugins=frozenset({"Fit"}))
    assert (world.place(first), hint.asked) == ("backoff", ["first"])


@pytest.mark.parametrize(
    "order",
    [
        pytest.param([0, 1, 2], id="the oldest ends first"),
        pytest.param([2, 1, 0], id="the youngest ends first"),
        pytest.param([1, 0, 2], id="the middle one ends first"),
    ],
)
def test_the_end_of_one_attempt_does_not_take_events_from_another(world, order):
    world.register(Fit=[on(NODE_ADD, yes())])
    pods = [a_pod(f"p{i}") for i in range(3)]
    world.add(*pods)
    infos = []
    for _ in pods:
        infos.append(world.pop())
        world.queue.on_event(NODE_ADD)
    for i in order:
        world.queue.requeue(infos[i], unschedulable_plugins=frozenset({"Fit"}))
        assert world.place(pods[i]) == "backoff"
    assert world.queue.pending.inflight_events() == {}


def test_only_events_that_a_plugin_registered_are_kept(world):
    world.register(Fit=[on(NODE_ADD)])
    world.popped(a_pod("p"))
    for event in (NODE_ADD, NODE_LABEL, UNSCHEDULED_POD_ADD, NODE_ADD):
        world.queue.on_event(event)
    assert world.queue.pending.inflight_events() == {"NodeAdd": 2, "PodPopped": 1}


def test_without_pods_in_flight_no_event_is_kept(world):
    world.register(Fit=[on(NODE_ADD)])
    world.queue.on_event(NODE_ADD)
    assert world.queue.pending.inflight_events() == {}


def test_rejectors_of_an_earlier_attempt_have_no_say(world):
    pod = a_pod("p")
    info = world.refuse(pod, "Fit")
    world.queue.activate([pod])
    world.pop()
    assert (info.unschedulable_plugins, info.pending_plugins) == (frozenset(), frozenset())
    world.queue.requeue(info)
    assert (world.place(pod), world.queue.pop()) == ("backoff", None)


def test_done_may_come_twice_and_for_unknown_pods(world):
    info = world.popped(a_pod("p"))
    world.queue.done(info.uid)
    world.queue.done(info.uid)
    world.queue.done("nobody")
    assert (len(world.queue), world.queue.pending.inflight_events()) == (0, {})


@pytest.mark.parametrize("plugins", [[], ["Fit"]], ids=["after an error", "after a refusal"])
def test_a_pod_that_returns_after_done_backs_off_because_it_may_have_missed_events(world, plugins):
    pod = a_pod("p")
    info = world.popped(pod)
    world.queue.done(info.uid)
    assert world.queue.requeue(info, unschedulable_plugins=frozenset(plugins)) == "backoff"
    assert world.place(pod) == "backoff"


def test_a_pod_deleted_during_its_attempt_does_not_come_back(world):
    pod = a_pod("p")
    info = world.popped(pod)
    world.queue.delete(pod)
    assert (world.place(pod), pod.uid in world.queue) == (None, False)
    assert world.queue.requeue(info) is None
    assert (len(world.queue), world.queue.pending.inflight_events()) == (0, {})


def test_a_pod_that_is_reported_again_during_its_attempt_comes_back(world):
    pod = a_pod("p")
    info = world.popped(pod)
    world.queue.delete(pod)
    world.add(pod)
    assert world.queue.requeue(info) == "backoff"


def test_a_pod_recreated_during_its_attempt_leaves_nothing_in_flight(world):
    old, new = a_pod("p", uid="old"), a_pod("p", uid="new")
    info = world.popped(old)
    world.queue.on_event(EVERYTHING)
    world.queue.delete(old)
    world.add(new)
    info.pod = new
    assert world.queue.requeue(info, unschedulable_plugins=frozenset({"Fit"})) is None
    assert (world.place(new), world.queue.pending.inflight_events()) == ("active", {})
    assert world.pop_names() == ["p"]


def test_a_recreated_pod_keeps_its_own_attempt_when_the_old_one_returns(world):
    old, new = a_pod("p", uid="old"), a_pod("p", uid="new")
    first = world.popped(old)
    world.queue.delete(old)
    world.popped(new)
    first.pod = new
    assert world.queue.requeue(first) is None
    assert world.place(new) == "inflight"


def test_a_pod_returned_twice_is_queued_once(world):
    pod = a_pod("p")
    info = world.fail(pod)
    world.queue.requeue(info)
    assert (world.place(pod), info.consecutive_errors) == ("backoff", 1)


def test_the_newest_object_is_taken_back(world):
    pod = a_pod("p")
    info = world.popped(pod)
    newer = changed(pod, labels={"a": "b"})
    world.queue.update(pod, newer)
    assert info.pod is pod, "an attempt under way keeps its object"
    world.queue.requeue(info, unschedulable_plugins=frozenset({"Fit"}))
    assert info.pod is newer


@pytest.mark.parametrize("gate_on", [True, False])
def test_members_of_a_pod_group_retry_by_backoff_only(flush_after, gate_on):
    world = World(flush_after, pod_groups=gate_on)
    pod = changed(a_pod("p"), scheduling_group=PodSchedulingGroup(pod_group_name="gang"))
    world.refuse(pod, "Fit")
    assert world.place(pod) == ("backoff" if gate_on else "unschedulable")


def test_a_returning_pod_can_be_gated(world):
    pod = a_pod("p")
    info = world.popped(pod)
    world.hooks.gates["p"] = "Gate"
    assert world.queue.requeue(info) == "gated"


def test_the_in_flight_list_is_empty_after_many_pods_with_random_fates(world):
    draw = random.Random(11)
    world.register(Fit=[on(NODE_ADD, no())])
    flying = {}
    for i in range(4000):
        world.queue.add(a_pod(f"p{i}", labels={"app": "one"}))
        info = world.queue.pop()
        flying[info.uid] = info
        world.queue.on_event(NODE_ADD)
        while len(flying) > 20:
            uid = draw.choice(list(flying))
            gone = flying.pop(uid)
            match draw.randrange(3):
                case 0:
                    world.queue.delete(gone.pod)
                    world.queue.requeue(gone, unschedulable_plugins=frozenset({"Fit"}))
                case 1:
                    world.queue.done(uid)
                case 2:
                    world.queue.requeue(gone, unschedulable_plugins=frozenset({"Fit"}))
    for uid in flying:
        world.queue.done(uid)
    world.queue.pending.validate()
    assert world.queue.pending.inflight_events() == {}
