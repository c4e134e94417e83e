"""Pods that a PreEnqueue plugin holds back."""

from __future__ import annotations

import pytest

from moorage.framework.events import WILDCARD, ActionType, ClusterEvent
from tests.queue.kit import NODE_ADD, NODE_DELETE, POD_ALL, a_pod, changed, no, on, yes


def test_a_gated_pod_is_not_scheduled(world):
    world.hooks.gates["p"] = "Gate"
    pod = a_pod("p")
    world.add(pod)
    assert (world.place(pod), world.queue.pop()) == ("gated", None)
    assert world.queue.pending.counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert world.incoming == [("unschedulable", "UnscheduledPodAdd")]


@pytest.mark.parametrize(
    ("event", "retried"),
    [
        pytest.param(NODE_ADD, True, id="an event that the gate registered"),
        pytest.param(NODE_DELETE, False, id="an event whose hint skips"),
        pytest.param(ClusterEvent(NODE_ADD.resource, ActionType.UPDATE_NODE_TAINT), False, id="another event"),
        pytest.param(ClusterEvent(WILDCARD, ActionType.ALL), True, id="a wildcard"),
    ],
)
@pytest.mark.parametrize("open_now", [True, False], ids=["gate opens", "gate stays closed"])
def test_a_gated_pod_is_tried_again_only_for_the_events_of_its_gate(world, event, retried, open_now):
    world.register(Gate=[on(NODE_ADD, yes()), on(NODE_DELETE, no())], Fit=[on(event)])
    world.hooks.gates["p"] = "Gate"
    pod = a_pod("p")
    world.add(pod)
    world.hooks.gate_calls.clear()
    if open_now:
        del world.hooks.gates["p"]
    assert world.queue.on_event(event) == int(retried and open_now)
    assert world.hooks.gate_calls == ([("p", "Gate")] if retried else [])
    assert world.place(pod) == ("active" if retried and open_now else "gated")


def test_other_rejectors_do_not_wake_a_gated_pod_by_events_of_their_own(world):
    asked = yes()
    world.register(Fit=[on(NODE_ADD, asked)], Gate=[on(POD_ALL)])
    pod = a_pod("p")
    world.refuse(pod, "Fit")
    world.hooks.gates["p"] = "Gate"
    assert world.queue.on_event(NODE_ADD) == 0
    assert world.place(pod) == "gated"
    assert world.queue.on_event(NODE_ADD) == 0
    assert asked.asked == ["p"]


def test_a_gated_pod_still_knows_who_refused_it(world):
    world.register(Fit=[on(NODE_ADD)], Gate=[on(POD_ALL)])
    pod = a_pod("p")
    info = world.refuse(pod, "Fit")
    world.hooks.gates["p"] = "Gate"
    world.queue.on_event(NODE_ADD)
    assert (info.gating_plugin, info.unschedulable_plugins) == ("Gate", frozenset({"Fit"}))


def test_a_second_gate_takes_over_from_the_first(world):
    world.register(First=[on(NODE_ADD)], Second=[on(NODE_DELETE)])
    world.hooks.gates["p"] = "First"
    pod = a_pod("p")
    world.add(pod)
    world.hooks.gates["p"] = "Second"
    world.queue.on_event(NODE_ADD)
    del world.hooks.gates["p"]
    assert world.queue.on_event(NODE_ADD) == 0
    assert world.queue.on_event(NODE_DELETE) == 1


@pytest.mark.parametrize(("registered", "place"), [([on(POD_ALL)], "active"), ([on(NODE_ADD)], "gated")])
def test_its_own_update_opens_a_gate_that_registered_pod_updates(world, registered, place):
    world.register(Gate=registered)
    world.hooks.gates["p"] = "Gate"
    pod = a_pod("p", gates=1)
    world.add(pod)
    del world.hooks.gates["p"]
    world.queue.update(pod, changed(pod, scheduling_gates=()))
    assert world.place(pod) == place


def test_a_gate_that_waits_for_another_pod_opens_when_that_pod_is_added(world):
    """A gang: each member waits until enough of them are there (k/k#127290, #135528)."""
    world.register(Gang=[on(POD_ALL)])
    first, second = a_pod("first"), a_pod("second")
    world.hooks.gates["first"] = "Gang"
    world.add(first)
    del world.hooks.gates["first"]
    world.add(second)
    world.queue.on_event(ClusterEvent(POD_ALL.resource, ActionType.ADD), None, second)
    assert world.pop_names() == ["second", "first"]


def test_activation_opens_no_gate(world):
    world.hooks.gates["p"] = "Gate"
    pod = a_pod("p")
    world.add(pod)
    assert (world.queue.activate([pod]), world.place(pod)) == (0, "gated")
    del world.hooks.gates["p"]
    assert (world.queue.activate([pod]), world.place(pod)) == (1, "active")


def test_a_pod_that_leaves_its_gate_without_an_attempt_has_no_backoff(world):
    world.register(Gate=[on(NODE_ADD)])
    world.hooks.gates["p"] = "Gate"
    pod = a_pod("p")
    world.add(pod)
    del world.hooks.gates["p"]
    world.queue.on_event(NODE_ADD)
    assert world.place(pod) == "active"


def test_latency_is_counted_from_the_gate_on(world):
    world.register(Gate=[on(NODE_ADD)])
    world.hooks.gates["p"] = "Gate"
    world.add(a_pod("p"))
    world.clock.advance(60)
    del world.hooks.gates["p"]
    world.queue.on_event(NODE_ADD)
    assert world.pop().initial_attempt == world.clock.now()


def test_10000_gated_pods_cost_an_unrelated_event_nothing(world):
    world.register(Gate=[on(POD_ALL, no())], Fit=[on(NODE_ADD)])
    for i in range(10_000):
        world.hooks.gates[f"p{i}"] = "Gate"
        world.add(a_pod(f"p{i}", labels={"app": "one"}))
    world.hooks.gate_calls.clear()
    assert world.queue.on_event(NODE_ADD) == 0
    assert world.hooks.gate_calls == []
