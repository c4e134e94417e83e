"""A queue with a clock that stands still and plugins with prepared answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Container, Pod, PodSchedulingGate, PodSpec, PodStatus, ResourceRequirements
from moorage.api.taints import Toleration
from moorage.framework.events import NODE, POD, ActionType, ClusterEvent, QueuedPod, QueueingHint, Registration
from moorage.framework.ports import Timer
from moorage.framework.status import Status
from moorage.queue import SchedulingQueue

NODE_ADD = ClusterEvent(NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(NODE, ActionType.DELETE)
NODE_LABEL = ClusterEvent(NODE, ActionType.UPDATE_NODE_LABEL)
POD_ALL = ClusterEvent(POD, ActionType.ALL)

START = 1000.0


class FakeClock:
    """Time that moves when the test moves it."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        raise AssertionError("the queue must not sleep")

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        raise AssertionError("the queue must not set timers")


class Hint:
    """A queueing hint with a prepared answer, which remembers the pods it was asked about."""

    def __init__(self, answer: QueueingHint | Exception | Callable[..., QueueingHint]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def __call__(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        self.asked.append(pod.name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, QueueingHint) else self.answer(pod, old, new)


class FakeHooks:
    """The plugins of all profiles: registrations as a table, gates that tests open and close."""

    def __init__(self) -> None:
        self.table: Mapping[str, Sequence[Registration]] = {}
        self.gates: dict[str, str] = {}
        """Pod name to the plugin that holds it back."""
        self.gate_calls: list[tuple[str, str]] = []
        self.signatures: Callable[[Pod], Hashable] = lambda pod: pod.labels.get("app", pod.name)

    def pre_enqueue(self, pod: Pod, first: str = "") -> Status | None:
        self.gate_calls.append((pod.name, first))
        plugin = self.gates.get(pod.name)
        return Status.unresolvable("the gate is closed").by(plugin) if plugin else None

    def registrations(self, pod: Pod) -> Mapping[str, Sequence[Registration]]:
        return self.table

    def signature(self, pod: Pod) -> Hashable:
        return self.signatures(pod)


class World:
    """A queue and everything around it."""

    def __init__(self, flush_after: float | None = 300.0, **options: Any) -> None:
        self.clock = FakeClock()
        self.hooks = FakeHooks()
        self.incoming: list[tuple[str, str]] = []
        self.flush_after = flush_after
        self.queue = SchedulingQueue(
            clock=self.clock,
            hooks=self.hooks,
            flush_after=flush_after,
            on_incoming=lambda queue, event: self.incoming.append((queue, event)),
            **options,
        )

    def register(self, **plugins: Sequence[Registration]) -> None:
        self.hooks.table = plugins

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self.queue.add(pod)

    def pop(self) -> QueuedPod:
        info = self.queue.pop()
        assert info is not None
        self.queue.pending.validate()
        return info

    def popped(self, pod: Pod) -> QueuedPod:
        """Add a pod and begin its attempt."""
        self.queue.add(pod)
        info = self.pop()
        assert info.uid == pod.uid
        return info

    def refuse(self, pod: Pod, *plugins: str, pending: Sequence[str] = ()) -> QueuedPod:
        """Add a pod, try it, and have it refused by these plugins."""
        info = self.popped(pod)
        self.queue.requeue(info, unschedulable_plugins=frozenset(plugins), pending_plugins=frozenset(pending))
        self.queue.pending.validate()
        return info

    def fail(self, pod: Pod) -> QueuedPod:
        """Add a pod, try it, and have the attempt break."""
        info = self.popped(pod)
        self.queue.requeue(info)
        self.queue.pending.validate()
        return info

    def place(self, pod: Pod) -> str | None:
        self.queue.pending.validate()
        location = self.queue.pending.where(pod.uid)
        return location.place if location else None

    def pop_names(self) -> list[str]:
        """Pop until nothing is left; every attempt succeeds."""
        names = []
        while (info := self.queue.pop()) is not None:
            names.append(info.pod.name)
            self.queue.done(info.uid)
        self.queue.pending.validate()
        return names

    def wait(self, seconds: float) -> int:
        """Let time pass as the scheduler does: tick at every deadline on the way."""
        end, moved = self.clock.time + seconds, 0
        while (deadline := self.queue.next_deadline()) is not None and deadline <= end:
            assert deadline > self.clock.time or moved == 0, "a deadline in the past was not worked off"
            self.clock.time = max(self.clock.time, deadline)
            moved += self.queue.tick()
        self.clock.time = end
        moved += self.queue.tick()
        self.queue.pending.validate()
        return moved


def on(event: ClusterEvent, hint: Hint | None = None, per_pod: bool = False) -> Registration:
    return Registration(event, hint, per_pod)


def yes() -> Hint:
    return Hint(QueueingHint.QUEUE)


def no() -> Hint:
    return Hint(QueueingHint.SKIP)


def a_pod(
    name: str,
    *,
    uid: str = "",
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    version: str = "1",
    nominated: str = "",
    node: str = "",
    gates: int = 0,
    tolerations: int = 0,
    cpu: str = "",
    profile: str = "",
) -> Pod:
    requests = ResourceRequirements(requests=msgspec.convert({"cpu": cpu}, dict[str, str])) if cpu else None
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace="ns", uid=uid or f"uid-{name}", labels=dict(labels or {}), resource_version=version
        ),
        spec=PodSpec(
            node_name=node,
            scheduler_name=profile,
            priority=priority,
            containers=(Container(name="c", resources=requests),) if requests else (),
            scheduling_gates=tuple(PodSchedulingGate(name=f"gate-{i}") for i in range(gates)),
            tolerations=tuple(Toleration(key=f"key-{i}") for i in range(tolerations)),
        ),
        status=PodStatus(nominated_node_name=nominated),
    )


def changed(pod: Pod, version: str = "2", **fields: Any) -> Pod:
    """Return a later version of the pod: `labels` go to the metadata, `nominated` to the status, the rest to the
    spec."""
    metadata = msgspec.structs.replace(pod.metadata, resource_version=version, labels=fields.pop("labels", pod.labels))
    status = msgspec.structs.replace(pod.status, nominated_node_name=fields.pop("nominated", pod.nominated_node_name))
    spec = msgspec.structs.replace(pod.spec, **fields)
    return msgspec.structs.replace(pod, metadata=metadata, status=status, spec=spec)
