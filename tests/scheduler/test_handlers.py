"""Every kind of change leads to the right instructions, in order, with stores and cache already up to
date."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, SERVICES
from moorage.api.versions import DEFAULT_BEHAVIOUR
from moorage.app.clock import SystemClock
from moorage.framework import events
from moorage.framework.events import ActionType, ClusterEvent, EventResource
from moorage.framework.ports import Change
from moorage.queue.pod_events import PodEvents
from moorage.runtime.services import WaitingPods
from moorage.scheduler.handlers import Handlers
from moorage.scheduler.instructions import Enqueue, Instruction, Remove, UpdateQueued, Wake
from moorage.state.cache import ClusterCache
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import bound_to
from moorage.state.stores import Stores
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_service

OTHER = "another-scheduler"


class World:
    """Handlers over real stores and a real cache."""

    def __init__(self) -> None:
        self.stores, self.cache = Stores(), ClusterCache(NodeTable())
        self.waiting = WaitingPods(SystemClock())
        self.foreign: list[Pod] = []
        self.handlers = Handlers(
            self.stores, self.cache, self.waiting, lambda pod: pod.scheduler_name != OTHER, self.foreign.append
        )

    def apply(self, resource: Any, old: Any, new: Any, initial: bool = False) -> list[Instruction]:
        return self.handlers.apply(Change(resource, old, new, initial))


def changed(pod: Pod, **options: Any) -> Pod:
    """A later version of a pod: same UID, other fields."""
    new = make_pod(pod.name, **options)
    meta = msgspec.structs.replace(new.metadata, uid=pod.uid)
    return msgspec.structs.replace(new, metadata=meta)


P = make_pod("p")
BOUND = changed(P, node="a")
DONE = changed(P, node="a", phase="Succeeded")
LABELLED = changed(P, labels={"app": "x"})
BOUND_LABELLED = changed(P, node="a", labels={"app": "x"})
FOREIGN = make_pod("f", scheduler=OTHER)
NODE = make_node("a")
CORDONED = make_node("a", unschedulable=True)
POD_EVENTS = PodEvents(DEFAULT_BEHAVIOUR)
LABEL = POD_EVENTS.waiting(ActionType.UPDATE_POD_LABEL)


@dataclass(frozen=True)
class Case:
    resource: Any
    old: Any
    new: Any
    expected: list[Instruction]
    before: Callable[[World], object] = lambda world: None


def seen(*pods: Pod) -> Callable[[World], object]:
    return lambda world: [world.apply(PODS, None, pod, initial=True) for pod in pods]


def assumed(world: World) -> None:
    world.apply(PODS, None, P)
    world.cache.assume(P, "a")


CASES = {
    "a pending pod": Case(
        PODS, None, P, [Enqueue(P), Wake(POD_EVENTS.add, None, P, besides=P.uid)]
    ),
    "a pending pod of another scheduler": Case(PODS, None, FOREIGN, []),
    "a finished pod": Case(PODS, None, DONE, []),
    "a bound pod": Case(PODS, None, BOUND, [Wake(events.ASSIGNED_POD_ADD, None, BOUND)]),
    "a pending pod changes": Case(
        PODS, LABELLED, changed(P, labels={"app": "x"}, cpu="1"),
        [UpdateQueued(LABELLED, changed(P, labels={"app": "x"}, cpu="1"))], seen(LABELLED),
    ),
    "a pending pod gets labels": Case(
        PODS, P, LABELLED, [UpdateQueued(P, LABELLED), Wake(LABEL, P, LABELLED, besides=P.uid)], seen(P)
    ),
    "a pending pod of another scheduler changes": Case(
        PODS, FOREIGN, changed(FOREIGN, scheduler=OTHER, cpu="1"), [], seen(FOREIGN)
    ),
    "a pending pod is deleted": Case(PODS, P, None, [Remove(P)], seen(P)),
    "a pending pod is deleted on its way to a node": Case(
        PODS, P, None, [Remove(P), Wake(events.ASSIGNED_POD_DELETE, bound_to(P, "a"))], assumed
    ),
    "our bind is confirmed": Case(
        PODS, P, BOUND, [Remove(BOUND), Wake(events.ASSIGNED_POD_ADD, None, BOUND)], assumed
    ),
    "our pod is bound elsewhere": Case(
        PODS, P, changed(P, node="b"),
        [
            Remove(changed(P, node="b")),
            Wake(events.ASSIGNED_POD_ADD, None, changed(P, node="b")),
            Wake(events.ASSIGNED_POD_DELETE, changed(P, node="b")),
        ],
        assumed,
    ),
    "a bound pod gets labels": Case(
        PODS, BOUND, BOUND_LABELLED,
        [Wake(ClusterEvent(events.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL), BOUND, BOUND_LABELLED)],
        seen(BOUND),
    ),
    "a bound pod finishes": Case(PODS, BOUND, DONE, [Wake(events.ASSIGNED_POD_DELETE, BOUND)], seen(BOUND)),
    "a bound pod is deleted": Case(PODS, BOUND, None, [Wake(events.ASSIGNED_POD_DELETE, BOUND)], seen(BOUND)),
    "a node": Case(NODES, None, NODE, [Wake(events.NODE_ADD, None, NODE)]),
    "a node is cordoned": Case(
        NODES, NODE, CORDONED,
        [Wake(ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT), NODE, CORDONED)],
        lambda world: world.apply(NODES, None, NODE),
    ),
    "a heartbeat": Case(NODES, NODE, NODE, [], lambda world: world.apply(NODES, None, NODE)),
    "a node goes": Case(
        NODES, NODE, None, [Wake(events.NODE_DELETE, NODE)], lambda world: world.apply(NODES, None, NODE)
    ),
    "any other object": Case(
        SERVICES, None, make_service("s"),
        [Wake(ClusterEvent(EventResource(str(SERVICES)), ActionType.ADD), None, make_service("s"))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_instructions(case):
    world = World()
    case.before(world)
    assert world.apply(case.resource, case.old, case.new) == case.expected
    world.cache.validate()


def test_stores_and_cache_are_up_to_date_before_any_instruction_is_executed():
    world = World()
    world.apply(NODES, None, NODE)
    world.apply(PODS, None, BOUND)
    assert [pod.name for pod in world.stores.lister(PODS).list()] == ["p"]
    assert [pod.uid for pod in world.cache.pods_on("a")] == [P.uid]
    assert isinstance(world.stores.lister(NODES).get("a"), Node)


@pytest.mark.parametrize(
    ("before", "new", "initial", "expected"),
    [
        pytest.param(seen(), BOUND, False, ["p"], id="bound by another scheduler"),
        pytest.param(seen(), BOUND, True, [], id="in the first listing"),
        pytest.param(assumed, BOUND, False, [], id="bound by us"),
        pytest.param(assumed, changed(P, node="b"), False, ["p"], id="bound elsewhere"),
    ],
)
def test_pods_that_another_scheduler_bound_are_reported(before, new, initial, expected):
    world = World()
    before(world)
    world.apply(PODS, P if world.cache.is_assumed(P.uid) else None, new, initial)
    assert [pod.name for pod in world.foreign] == expected
