"""What the queue can say about a pod, and that it notices when it is broken."""

from __future__ import annotations

import pytest

from moorage.queue import Location, QueueCorrupted
from tests.queue.kit import NODE_ADD, START, World, a_pod, on


def test_every_place_explains_itself():
    world = World(300.0)
    world.register(Fit=[on(NODE_ADD)])
    world.hooks.gates["gated"] = "Gate"
    pods = {name: a_pod(name) for name in ("unschedulable", "refused", "errored", "gated", "flying", "active")}
    world.refuse(pods["refused"], "Fit")
    world.queue.on_event(NODE_ADD)
    world.refuse(pods["unschedulable"], "Ports", "Fit")
    world.fail(pods["errored"])
    world.popped(pods["flying"])
    world.add(pods["gated"], pods["active"])
    assert {name: world.queue.pending.where(pod.uid) for name, pod in pods.items()} == {
        "active": Location("active", "Waits for its turn, moved by UnscheduledPodAdd.", START),
        "unschedulable": Location(
            "unschedulable",
            "Refused by Fit, Ports; waits for an event that may change that.",
            START,
            START + 330,
            ("Fit", "Ports"),
        ),
        "refused": Location("backoff", "Refused once, last by Fit; backs off.", START, START + 2, ("Fit",)),
        "errored": Location("backoff", "Failed with an error once in a row; backs off.", START, START + 2),
        "gated": Location("gated", "Held back by Gate: the gate is closed.", START, START + 330, ("Gate",)),
        "flying": Location("inflight", "Attempt 1 is under way.", START),
    }
    assert world.queue.pending.counts() == {"active": 1, "backoff": 2, "unschedulable": 1, "gated": 1}
    assert sorted(info.pod.name for info, _ in world.queue.pending) == sorted(pods)
    assert len(world.queue) == len(pods)


def test_a_woken_pod_names_event_and_hint(world):
    world.register(Fit=[on(NODE_ADD)])
    pod = a_pod("p")
    world.refuse(pod, "Fit")
    world.wait(5)
    world.queue.on_event(NODE_ADD)
    location = world.queue.pending.where(pod.uid)
    assert location is not None
    assert location.why == "Waits for its turn, moved by NodeAdd (hint of Fit)."


def test_unknown_pods_are_nowhere(world):
    pods = world.queue.pending
    assert (pods.where("nobody"), pods.get("nobody"), "nobody" in world.queue) == (None, None, False)


def test_a_pod_stays_gated_since_its_gate_first_closed(world):
    world.register(Gate=[on(NODE_ADD)])
    world.hooks.gates["p"] = "Gate"
    world.add(a_pod("p"))
    world.clock.advance(60)
    world.queue.on_event(NODE_ADD)
    location = world.queue.pending.where("uid-p")
    assert location is not None
    assert location.since == START


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        pytest.param(lambda queue: queue._places.active.remove("uid-a"), "should be in active", id="lost"),
        pytest.param(
            lambda queue: queue._places.backoff.add(queue.pending.get("uid-a")),
            "is in .'active', 'backoff'",
            id="twice",
        ),
        pytest.param(lambda queue: queue._inflight.begin(queue.pending.get("uid-a"), 0), "and in flight", id="flying"),
        pytest.param(lambda queue: queue._places.slots.clear(), "has no slot", id="unknown"),
        pytest.param(lambda queue: queue._inflight.record(None), "are needed", id="events for nobody"),
    ],
)
def test_a_broken_queue_says_what_is_broken(world, damage, complaint):
    world.add(a_pod("a"))
    damage(world.queue)
    with pytest.raises(QueueCorrupted, match=complaint):
        world.queue.pending.validate()
