"""Which pod is next."""

from __future__ import annotations

import random

import pytest

from moorage.framework.events import QueuedPod
from moorage.queue.heaps import PodHeap, order_of
from tests.queue.kit import World, a_pod, changed


def test_an_empty_queue_has_no_next_pod(world):
    assert world.queue.pop() is None


def test_higher_priority_goes_first_then_who_came_first(world):
    for name, priority in [("low", 1), ("first", 5), ("second", 5), ("high", 9)]:
        world.add(a_pod(name, priority=priority))
        world.clock.advance(0.1)
    assert world.pop_names() == ["high", "first", "second", "low"]


def test_pods_of_one_instant_come_out_as_they_came_in(world):
    world.add(*(a_pod(f"p{i}") for i in range(20)))
    assert world.pop_names() == [f"p{i}" for i in range(20)]


def test_ties_are_broken_by_the_last_return_not_by_creation(world):
    older = world.popped(a_pod("older"))
    world.clock.advance(1)
    world.add(a_pod("newer"))
    world.clock.advance(1)
    world.queue.requeue(older, unschedulable_plugins=frozenset({"Fit"}))
    world.queue.activate([older.pod])
    assert world.pop_names() == ["newer", "older"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"key": lambda info: info.pod.name}, id="a key"),
        pytest.param({"less": lambda a, b: a.pod.name < b.pod.name}, id="a comparison"),
    ],
)
def test_the_queue_sort_plugin_decides(options):
    world = World(**options)
    world.add(a_pod("b"), a_pod("c"), a_pod("a"))
    assert world.pop_names() == ["a", "b", "c"]


def test_a_comparison_that_calls_pods_equal_keeps_their_order():
    world = World(less=lambda a, b: False)
    world.add(*(a_pod(f"p{i}") for i in range(9)))
    assert world.pop_names() == [f"p{i}" for i in range(9)]


@pytest.mark.parametrize("form", ["key", "less"])
def test_an_update_moves_an_active_pod_to_its_new_rank(form):
    def key(info: QueuedPod) -> int:
        return -info.pod.priority

    options = {"key": key} if form == "key" else {"less": lambda a, b: key(a) < key(b)}
    world = World(**options)
    pods = [a_pod(f"p{i}", priority=i) for i in range(10)]
    world.add(*pods)
    world.queue.update(pods[0], changed(pods[0], priority=99))
    world.queue.update(pods[9], changed(pods[9], priority=-1))
    world.queue.pending.validate()
    assert world.pop_names() == ["p0", *(f"p{i}" for i in range(8, 0, -1)), "p9"]


@pytest.mark.parametrize("form", ["key", "less"])
def test_resort_follows_keys_that_changed_outside_of_the_pods(form):
    usage = {f"p{i}": i for i in range(10)}

    def key(info: QueuedPod) -> int:
        return usage[info.pod.name]

    options = {"key": key} if form == "key" else {"less": lambda a, b: key(a) < key(b)}
    world = World(**options)
    world.add(*(a_pod(name) for name in usage))
    usage["p0"], usage["p9"] = 50, -1
    world.queue.resort(["uid-p0", "uid-p9", "uid-unknown"])
    world.queue.pending.validate()
    assert world.pop_names() == ["p9", *(f"p{i}" for i in range(1, 9)), "p0"]


@pytest.mark.parametrize("form", ["key", "less"])
def test_another_order_holds_for_the_pods_that_wait_already(form):
    world = World()
    world.add(a_pod("b"), a_pod("c"), a_pod("a"))
    if form == "key":
        world.queue.sort_by(key=lambda info: info.pod.name)
    else:
        world.queue.sort_by(less=lambda a, b: a.pod.name < b.pod.name)
    world.queue.pending.validate()
    assert world.pop_names() == ["a", "b", "c"]


def test_a_popped_pod_knows_its_attempts_and_when_the_first_began(world):
    pod = a_pod("p")
    info = world.refuse(pod, "Fit")
    first = info.initial_attempt
    world.clock.advance(30)
    world.queue.activate([pod])
    again = world.pop()
    assert (again.attempts, again.initial_attempt) == (2, first)


def test_a_deleted_pod_does_not_come_out(world):
    world.add(a_pod("a"), a_pod("b"))
    world.queue.delete(a_pod("a"))
    assert world.pop_names() == ["b"]


def test_delete_goes_by_uid_not_by_name(world):
    world.add(a_pod("a", uid="new"))
    world.queue.delete(a_pod("a", uid="old"))
    assert world.pop_names() == ["a"]


def test_a_pod_added_twice_is_queued_once(world):
    world.add(a_pod("a"), a_pod("a"), a_pod("a", version="2"))
    assert world.pop_names() == ["a"]


def test_adding_a_pod_in_flight_does_not_queue_it_a_second_time(world):
    info = world.popped(a_pod("a"))
    world.add(a_pod("a"))
    assert (world.place(info.pod), world.queue.pop()) == ("inflight", None)


def test_a_heap_with_many_removals_stays_small_and_sorted():
    heap = PodHeap(order_of())
    draw = random.Random(7)
    alive: dict[str, int] = {}
    for i in range(3000):
        pod = a_pod(f"p{i}", priority=draw.randrange(50))
        heap.add(QueuedPod(pod, float(i)))
        alive[pod.uid] = pod.priority
        if len(alive) > 20:
            uid = draw.choice(sorted(alive))
            heap.remove(uid)
            del alive[uid]
    assert heap.validate() == []
    assert len(heap._entries) <= 2 * len(alive) + 65
    out = [info.pod.priority for info in iter(heap.pop, None)]
    assert out == sorted(alive.values(), reverse=True)
