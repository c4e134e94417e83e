"""The state of a pod: what is said first, and whether the pod gets a node as things are."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.core import Event, Lease, LeaseSpec, ObjectReference
from moorage.api.meta import ObjectMeta
from moorage.api.pod import ContainerState, ContainerStateWaiting, ContainerStatus, Pod
from moorage.api.resources import EVENTS, LEASES
from moorage.explain.other_schedulers import read_signs
from moorage.explain.standing import Surroundings, standing
from moorage.sim.loop import VirtualClock, VirtualLoop
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.testing import make_node, make_pod

SINCE = "2026-01-01T00:00:00Z"
FITS = {"feasible": 3, "total": 5}


def deleted(obj: Any) -> Any:
    return replace(obj, metadata=replace(obj.metadata, deletion_timestamp=SINCE))


def nominated(pod: Pod) -> Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name="w0"))


def waiting(reason: str, message: str = "") -> Pod:
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    pod = make_pod("p", node="w0")
    statuses = (ContainerStatus(name="main", state=state),)
    return replace(pod, status=replace(pod.status, phase="Pending", container_statuses=statuses))


def judged(pod: Pod, **around: Any) -> tuple[str, str, bool]:
    defaults: dict[str, Any] = {**FITS, "schedulers": ("default-scheduler",), "node": make_node("w0")}
    found = standing(pod, Surroundings(**{**defaults, **around}))
    return found.state, " ".join((found.headline, *found.facts)), found.ends_well


VICTIM = deleted(make_pod("victim", node="w0"))
STATES = [
    pytest.param(
        make_pod("p"), {}, "schedulable", "default/p can be scheduled: 3 of 5 nodes are feasible.", True, id="fits"
    ),
    pytest.param(
        make_pod("p"),
        {"feasible": 0},
        "pending",
        "default/p is pending: 0 of 5 nodes are feasible.",
        False,
        id="no node",
    ),
    pytest.param(
        make_pod("p", gates=["a", "b"]),
        {"held_back": ("waiting",)},
        "gated",
        "default/p is gated by the scheduling gates a, b. The scheduler does not try it until they are removed. "
        "Without them, 3 of 5 nodes would be feasible. "
        "Who set the gates is not recorded; a controller or a webhook usually removes them.",
        False,
        id="gates",
    ),
    pytest.param(
        make_pod("p"),
        {"held_back": ("the group has too few pods",)},
        "gated",
        "default/p is gated: the group has too few pods. The scheduler does not try it until that ends.",
        False,
        id="held back by a plugin",
    ),
    pytest.param(
        make_pod("p", scheduler="volcano"),
        {"signs": "No lease or event shows that volcano runs."},
        "otherScheduler",
        "default/p waits for the scheduler volcano; default-scheduler does not schedule it. No lease or event shows "
        "that volcano runs. 3 of 5 nodes would be feasible for the plugins that were asked here.",
        False,
        id="another scheduler",
    ),
    pytest.param(
        make_pod("p", scheduler="volcano"),
        {"schedulers": ()},
        "schedulable",
        "default/p can be scheduled: 3 of 5 nodes are feasible.",
        True,
        id="another scheduler, and a profile was named",
    ),
    pytest.param(
        nominated(make_pod("p", priority=9)),
        {"feasible": 0, "node_pods": (VICTIM, make_pod("stays", node="w0"))},
        "nominated",
        "default/p is nominated to w0 and waits for 1 victim to leave. "
        f"default/victim has been terminating since {SINCE}.",
        False,
        id="nominated",
    ),
    pytest.param(
        nominated(make_pod("p", priority=9)),
        {"node": deleted(make_node("w0"))},
        "nominated",
        "default/p is nominated to w0. No victim is left there; the next attempt decides. "
        f"Node w0 has been terminating since {SINCE}.",
        False,
        id="nominated to a node that is being deleted",
    ),
    pytest.param(
        deleted(make_pod("p")),
        {},
        "terminating",
        f"default/p has been terminating since {SINCE}; it will not be scheduled.",
        False,
        id="deleted before it got a node",
    ),
    pytest.param(
        waiting("ImagePullBackOff", "Back-off pulling image x."),
        {},
        "notRunning",
        "default/p is placed on w0 and does not run: container main: ImagePullBackOff: Back-off pulling image x.",
        True,
        id="an image that cannot be pulled",
    ),
    pytest.param(
        waiting("ContainerCreating"),
        {"node": None},
        "notRunning",
        "default/p is placed on w0; its containers do not run yet. Node w0 does not exist.",
        True,
        id="on a node that is gone",
    ),
]


@pytest.mark.parametrize(("pod", "around", "state", "text", "ends_well"), STATES)
def test_the_state_comes_first_and_decides_the_exit_code(pod, around, state, text, ends_well):
    assert judged(pod, **around) == (state, text, ends_well)


def signs(*objects: tuple[Any, Any]) -> str:
    loop = VirtualLoop(0)
    try:
        clock = VirtualClock(loop)
        store = Store(clock.wall, random.Random(0))
        client = LocalClient(store, clock)

        async def ask() -> str:
            for resource, obj in objects:
                await client.create(resource, obj)
            return await read_signs(client, make_pod("p", scheduler="volcano"))

        return loop.run_until_complete(ask())
    finally:
        loop.close()


LEASE = Lease(
    metadata=ObjectMeta(name="volcano", namespace="volcano-system"),
    spec=LeaseSpec(holder_identity="v-1", renew_time="2026-01-01T00:00:00.000000Z"),
)
EVENT = Event(
    metadata=ObjectMeta(name="e", namespace="default"),
    event_time="2026-01-01T00:00:00.000000Z",
    reporting_controller="volcano",
    reporting_instance="v",
    action="Scheduling",
    type="Warning",
    reason="Unschedulable",
    note="no queue",
    regarding=ObjectReference(kind="Pod", name="other", namespace="default", uid="u"),
)


def test_a_lease_an_event_or_nothing_shows_that_a_scheduler_runs():
    lease = "The lease volcano-system/volcano is held by v-1, renewed at 2026-01-01T00:00:00.000000Z."
    assert signs((LEASES, LEASE), (EVENTS, EVENT)) == lease
    event = "An event about Pod other shows that volcano has run: Unschedulable: no queue"
    assert signs((EVENTS, EVENT)) == event
    assert signs() == "No lease or event shows that volcano runs."
