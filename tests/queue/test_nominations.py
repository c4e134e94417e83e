"""Space that is held for pods whose victims are still going."""

from __future__ import annotations

import pytest

from moorage.api.pod import Pod
from moorage.framework.events import QueueingHint
from moorage.framework.handle import Nominator
from tests.queue.kit import POD_ALL, Hint, World, a_pod, changed, on, yes


def names(world: World, node: str) -> list[str]:
    return [pod.name for pod in world.queue.nominator.nominated_on(node)]


def test_the_queues_nominator_is_what_plugins_get(world):
    nominator: Nominator = world.queue.nominator
    nominator.nominate(a_pod("p"), "n1")
    assert (list(nominator.nodes()), names(world, "n1")) == (["n1"], ["p"])


def test_a_pod_is_nominated_to_one_node_at_a_time(world):
    nominator = world.queue.nominator
    for node in ("n1", "n2"):
        nominator.nominate(a_pod("a"), node)
    nominator.nominate(a_pod("b"), "n2")
    assert (names(world, "n1"), names(world, "n2")) == ([], ["a", "b"])
    assert nominator.nominated_node("uid-a") == "n2"
    nominator.forget("uid-a")
    nominator.nominate(a_pod("b"), "")
    assert (list(nominator.nodes()), nominator.nominated_node("uid-a")) == ([], None)


def test_a_pod_is_nominated_by_its_status_when_it_is_added(world):
    world.add(a_pod("p", nominated="n1"))
    assert names(world, "n1") == ["p"]


def test_a_gated_pod_holds_its_space(world):
    world.register(Gate=[on(POD_ALL)])
    world.hooks.gates["p"] = "Gate"
    pod = a_pod("p", nominated="n1", gates=1)
    world.add(pod)
    assert names(world, "n1") == ["p"]
    del world.hooks.gates["p"]
    world.queue.update(pod, changed(pod, scheduling_gates=()))
    assert names(world, "n1") == ["p"]


@pytest.mark.parametrize(
    ("before", "in_memory", "after", "node"),
    [
        pytest.param("", "", "n1", "n1", id="set by somebody"),
        pytest.param("n1", "n1", "n2", "n2", id="changed by somebody"),
        pytest.param("n1", "n1", "", None, id="cleared by somebody"),
        pytest.param("", "n1", "", "n1", id="an update that left before our patch keeps it"),
        pytest.param("n1", "n2", "n1", "n2", id="an old name does not replace our newer choice"),
        pytest.param("n1", "", "n1", None, id="an old name does not bring a nomination back"),
    ],
)
@pytest.mark.parametrize("place", ["active", "unschedulable"])
def test_an_update_changes_a_nomination_only_where_the_object_changed(world, before, in_memory, after, node, place):
    pod = a_pod("p", nominated=before)
    if place == "active":
        world.add(pod)
    else:
        world.refuse(pod, "Fit")
    world.queue.nominator.nominate(pod, in_memory)
    newer = changed(pod, nominated=after, labels={"a": "b"})
    world.queue.update(pod, newer)
    assert world.queue.nominator.nominated_node(pod.uid) == node
    if node:
        assert world.queue.nominator.nominated_on(node) == (newer,)


def test_an_update_during_the_attempt_leaves_the_nomination_to_the_attempt(world):
    pod = a_pod("p")
    world.popped(pod)
    world.queue.update(pod, changed(pod, nominated="n1"))
    assert names(world, "n1") == []


def test_a_pod_deleted_during_its_attempt_is_not_nominated_any_more(world):
    pod = a_pod("p")
    world.popped(pod)
    world.queue.delete(pod)
    world.queue.nominator.nominate(pod, "n1")
    assert names(world, "n1") == []


def waiting_for_space(world: World) -> tuple[list[Pod], list[tuple[str, str, None]]]:
    """Three unschedulable pods whose rejector is woken when a pod leaves a node, and what its hint saw."""
    seen: list[tuple[str, str, None]] = []

    def watch(pod, old, new):
        seen.append((old.name, old.nominated_node_name, new))
        return QueueingHint.QUEUE

    world.register(Fit=[on(POD_ALL, Hint(watch))])
    pods = [a_pod("lower", priority=1), a_pod("equal", priority=5), a_pod("higher", priority=9)]
    for pod in pods:
        world.refuse(pod, "Fit")
    return pods, seen


@pytest.mark.parametrize("known_by", ["status", "memory"])
def test_deleting_a_nominated_pod_frees_its_space_for_lower_and_equal_priorities(world, known_by):
    nominated = a_pod("nominated", priority=5, nominated="n1" if known_by == "status" else "")
    world.add(nominated)
    world.queue.nominator.nominate(nominated, "n1")
    world.queue.done(world.pop().uid)
    pods, seen = waiting_for_space(world)
    world.queue.delete(nominated)
    assert [world.place(pod) for pod in pods] == ["backoff", "backoff", "unschedulable"]
    assert seen == [("nominated", "n1", None)] * 2
    assert names(world, "n1") == []


@pytest.mark.parametrize(
    ("after", "wakes"),
    [
        pytest.param("", True, id="given up"),
        pytest.param("n2", True, id="moved to another node"),
        pytest.param("n1", False, id="unchanged"),
    ],
)
def test_changing_a_nomination_frees_the_old_space(world, after, wakes):
    nominated = a_pod("nominated", priority=5, nominated="n1")
    world.popped(nominated)
    pods, _ = waiting_for_space(world)
    world.queue.update(nominated, changed(nominated, nominated=after, labels={"a": "b"}))
    assert [world.place(pod) for pod in pods] == (
        ["backoff", "backoff", "unschedulable"] if wakes else ["unschedulable"] * 3
    )


def test_a_pod_does_not_wake_itself_by_giving_up_its_nomination(world):
    def others_only(pod, old, new):
        return QueueingHint.QUEUE if new is None else QueueingHint.SKIP

    world.register(Fit=[on(POD_ALL, Hint(others_only))])
    pod = a_pod("p", nominated="n1")
    world.refuse(pod, "Fit")
    world.queue.update(pod, changed(pod, nominated=""))
    assert world.place(pod) == "unschedulable"


@pytest.mark.parametrize(("bound_to", "place"), [("n1", "unschedulable"), ("n2", "backoff")])
def test_a_nominated_pod_frees_space_only_if_it_was_bound_elsewhere(world, bound_to, place):
    """k/k#134859: after another scheduler had bound the pod, its nomination still held space."""
    world.register(Fit=[on(POD_ALL, yes())])
    nominated, waiting = a_pod("nominated", nominated="n1"), a_pod("waiting")
    world.refuse(nominated, "Other")
    world.refuse(waiting, "Fit")
    world.queue.delete(a_pod("nominated", nominated="n1", node=bound_to))
    assert world.place(waiting) == place
