"""Moves that no hint decides: activation, and the flush of pods unschedulable too long."""

from __future__ import annotations

import pytest

from tests.queue.kit import NODE_ADD, POD_ALL, START, World, a_pod, no, on


def test_activation_moves_a_unschedulable_pod_whatever_it_waits_for(world):
    pod = a_pod("p")
    info = world.refuse(pod, "Fit")
    assert (world.queue.activate([pod]), world.place(pod)) == (1, "active")
    assert (info.woken_by, info.woken_hint) == ("ForceActivate", "")
    assert world.incoming[-1] == ("active", "ForceActivate")


def test_activation_ends_a_backoff_without_asking_the_gates_again(world):
    pod = a_pod("p")
    world.fail(pod)
    world.hooks.gate_calls.clear()
    assert (world.queue.activate([pod.uid]), world.place(pod)) == (1, "active")
    assert world.hooks.gate_calls == []


def test_activation_of_active_and_unknown_pods_changes_nothing(world):
    world.add(a_pod("p"))
    assert world.queue.activate([a_pod("p"), a_pod("nobody")]) == 0
    assert world.pop_names() == ["p"]


@pytest.mark.parametrize("plugins", [["Fit"], ["Unregistered"]])
def test_activation_during_the_attempt_brings_the_pod_back_by_backoff(world, plugins):
    world.register(Fit=[on(NODE_ADD, no())])
    pod, other = a_pod("p"), a_pod("other")
    info = world.popped(pod)
    neighbour = world.popped(other)
    world.queue.activate([pod])
    world.queue.requeue(info, unschedulable_plugins=frozenset(plugins))
    world.queue.requeue(neighbour, unschedulable_plugins=frozenset(plugins))
    assert (world.place(pod), info.woken_by, world.place(other)) == ("backoff", "ForceActivate", "unschedulable")


def test_a_pod_unschedulable_too_long_is_tried_again(world, flush_after):
    pod = a_pod("p")
    info = world.refuse(pod, "Unregistered")
    world.wait(400)
    if flush_after is None:
        assert (world.place(pod), info.was_flushed) == ("unschedulable", False)
        return
    assert (world.place(pod), info.was_flushed, info.woken_by) == ("active", True, "UnschedulableTimeout")
    assert world.incoming[-1] == ("active", "UnschedulableTimeout")


def test_the_mark_of_the_flush_lasts_for_one_attempt():
    world = World(300.0)
    pod = a_pod("p")
    info = world.refuse(pod, "Fit")
    world.wait(400)
    assert world.pop().was_flushed
    world.queue.requeue(info, unschedulable_plugins=frozenset({"Fit"}))
    assert not info.was_flushed


def test_the_flush_looks_every_30_seconds():
    world = World(300.0)
    world.clock.advance(10)
    world.refuse(a_pod("p"), "Fit")
    assert world.queue.next_deadline() == START + 330
    world.clock.advance(310)
    assert world.queue.tick() == 0
    world.clock.advance(10)
    assert world.queue.tick() == 1


def test_without_the_flush_nothing_is_due(world, flush_after):
    world.refuse(a_pod("p"), "Fit")
    assert (world.queue.next_deadline() is None) == (flush_after is None)


@pytest.mark.parametrize("open_now", [True, False])
def test_the_flush_tries_gated_pods_too(open_now):
    """A hint that always skips would otherwise hold the pod for ever (k/k#139162)."""
    world = World(300.0)
    world.register(Gate=[on(POD_ALL, no())])
    world.hooks.gates["p"] = "Gate"
    pod = a_pod("p")
    world.add(pod)
    if open_now:
        del world.hooks.gates["p"]
    assert world.wait(400) == int(open_now)
    assert world.place(pod) == ("active" if open_now else "gated")
    deadline = world.queue.next_deadline()
    assert deadline is None if open_now else (deadline is not None and deadline > world.clock.now())


def test_the_flush_takes_only_pods_that_are_old_enough():
    world = World(300.0)
    old, young = a_pod("old"), a_pod("young")
    world.refuse(old, "Fit")
    world.wait(200)
    world.refuse(young, "Fit")
    world.wait(140)
    assert (world.place(old), world.place(young)) == ("active", "unschedulable")
