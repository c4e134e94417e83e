"""How long failed pods wait, and in which order they come back."""

from __future__ import annotations

import pytest

from tests.queue.kit import NODE_ADD, START, World, a_pod, changed, on


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [
        pytest.param(1, 1, id="the first wait is the initial one"),
        pytest.param(2, 2, id="then it doubles"),
        pytest.param(4, 8, id="and doubles again"),
        pytest.param(5, 10, id="up to the maximum"),
        pytest.param(2000, 10, id="also after very many attempts"),
    ],
)
@pytest.mark.parametrize("kind", ["refused", "errored"])
def test_waits_double_up_to_the_maximum(world, kind, attempts, seconds):
    plugins = frozenset({"Fit"}) if kind == "refused" else frozenset()
    world.add(a_pod("p"))
    for _ in range(attempts):
        world.queue.activate(["uid-p"])
        info = world.pop()
        world.queue.requeue(info, unschedulable_plugins=plugins)
    assert info.backoff_until == START + seconds + 1


def test_waits_end_with_the_window_of_one_second(world):
    world.clock.advance(0.3)
    info = world.fail(a_pod("p"))
    assert info.backoff_until == START + 2
    world.clock.advance(1.69)
    assert (world.queue.tick(), world.place(info.pod)) == (0, "backoff")
    world.clock.advance(0.01)
    assert (world.queue.tick(), world.place(info.pod)) == (1, "active")


def test_pods_of_one_window_come_back_in_queue_order(world):
    low, high = a_pod("low", priority=1), a_pod("high", priority=9)
    world.fail(low)
    world.clock.advance(0.5)
    world.fail(high)
    assert world.wait(10) == 2
    assert world.pop_names() == ["high", "low"]


def test_errors_have_a_counter_of_their_own_that_a_refusal_resets(world):
    pod = a_pod("p")
    info = world.refuse(pod, "Fit")
    seen = []
    for plugins in ({"Fit"}, {"Fit"}, (), (), {"Fit"}, ()):
        world.queue.activate([pod])
        again = world.pop()
        world.queue.requeue(again, unschedulable_plugins=frozenset(plugins))
        seen.append((info.unschedulable_count, info.consecutive_errors, info.backoff_until - START - 1))
    assert seen == [(2, 0, 2), (3, 0, 4), (3, 1, 1), (3, 2, 2), (4, 0, 8), (4, 1, 1)]


def test_an_idle_queue_takes_the_first_refused_pod_early(world):
    world.register(Fit=[on(NODE_ADD)])
    low, high = a_pod("low", priority=1), a_pod("high", priority=9)
    world.refuse(low, "Fit")
    world.refuse(high, "Fit")
    assert world.queue.on_event(NODE_ADD) == 2
    assert (world.place(low), world.place(high)) == ("backoff", "backoff")
    world.incoming.clear()
    assert world.pop().pod.name == "high"
    assert world.incoming == [("active", "PopFromBackoffQ")]


def test_a_pod_that_failed_by_an_error_is_never_taken_early(world):
    pod = a_pod("p")
    world.fail(pod)
    assert (world.queue.pop(), world.place(pod)) == (None, "backoff")
    assert world.wait(2) == 1
    assert world.pop().pod.name == "p"


def test_active_pods_go_before_those_in_backoff(world):
    world.register(Fit=[on(NODE_ADD)])
    world.refuse(a_pod("high", priority=9), "Fit")
    world.queue.on_event(NODE_ADD)
    world.add(a_pod("low"))
    assert world.pop_names() == ["low", "high"]


def test_gates_are_asked_when_backoff_begins_and_not_when_it_ends(world):
    pod = a_pod("p")
    world.fail(pod)
    assert [name for name, _ in world.hooks.gate_calls] == ["p", "p"]
    world.hooks.gates["p"] = "Gate"
    world.wait(5)
    assert world.place(pod) == "active"
    assert len(world.hooks.gate_calls) == 2


def test_an_update_in_backoff_changes_the_rank_and_not_the_wait(world):
    low, high = a_pod("low", priority=1), a_pod("high", priority=5)
    world.fail(low)
    world.fail(high)
    world.queue.update(low, changed(low, priority=9))
    world.queue.pending.validate()
    assert world.wait(2) == 2
    assert world.pop_names() == ["low", "high"]


def test_resort_reaches_backoff():
    rank = {"a": 1, "b": 2}
    world = World(key=lambda info: rank[info.pod.name])
    world.register(Fit=[on(NODE_ADD)])
    world.refuse(a_pod("a"), "Fit")
    world.refuse(a_pod("b"), "Fit")
    world.queue.on_event(NODE_ADD)
    rank["a"] = 3
    world.queue.resort(["uid-a"])
    assert world.pop_names() == ["b", "a"]


def test_a_wait_of_zero_still_ends_with_its_window():
    world = World(initial_backoff=0.0)
    pod = a_pod("p")
    world.fail(pod)
    assert world.place(pod) == "backoff"
    assert world.wait(1) == 1


def test_the_next_deadline_is_the_first_end_of_a_wait(world):
    world.fail(a_pod("a"))
    world.clock.advance(1)
    world.fail(a_pod("b"))
    assert world.queue.next_deadline() == START + 2
    world.wait(1)
    assert world.queue.next_deadline() == START + 3
    world.wait(1)
    assert world.queue.next_deadline() is None
