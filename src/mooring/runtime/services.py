"""What plugins reach of the scheduler around them: its services, background tasks, pods held back by Permit.

    Permit says Wait ──▶ waiting ──allow by every plugin──▶ Success, on to PreBind
                            │──reject, or the first timer──▶ Unschedulable
                            └──preempt, or removed─────────▶ Error / Unschedulable

The first decision about a waiting pod wins; whatever comes later changes nothing. `scheduler.assembly` fills
the services in; `handle` gives a plugin those that it has declared."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mooring.api.pod import Pod
from mooring.api.resources import Resource
from mooring.api.times import format_duration
from mooring.framework.counting import AffinityTerms, PodCounters
from mooring.framework.extending import Extender
from mooring.framework.handle import AssumeCache, Lister, Nominator
from mooring.framework.indexes import NodeIndex, NodeKeys, ObjectIndex, ObjectKeys, PodIndex, PodKeys
from mooring.framework.nodes import Nodes, NodeView
from mooring.framework.ports import ApiClient, Clock, EventRecorder, Timer
from mooring.framework.ranking import VictimColumns
from mooring.framework.status import MAX_PERMIT_TIMEOUT, SUCCESS, Code, Status
from mooring.framework.topology import Topology
from mooring.telemetry import logs


class DryRunRows(Protocol):
    """Some nodes in a dry run, numbered: copies of their rows to which pods are added and from which they are
    taken."""

    def add_pod(self, row: int, pod: Pod) -> None: ...

    def remove_pod(self, row: int, pod: Pod) -> None: ...

    def hide(self, victims: Sequence[Sequence[Pod]]) -> VictimColumns:
        """Take several pods from every row, before anything else; returns them with their requests."""
        ...

    def nodes(self) -> Nodes: ...

    def view(self, row: int) -> NodeView: ...


@dataclass(slots=True)
class Services:
    """The scheduler's side of the Handle. One per process, shared by all profiles and reloads."""

    client: ApiClient
    clock: Clock
    random: random.Random
    recorder: EventRecorder
    nominator: Nominator
    nodes: Callable[[], Nodes]
    """The live nodes, in snapshot order."""
    dry_run_rows: Callable[[Sequence[str]], DryRunRows]
    """Copies of the rows of these nodes."""
    lister: Callable[[Resource], Lister]
    assume_cache: Callable[[Resource], AssumeCache]
    pod_index: Callable[[str, PodKeys], PodIndex]
    node_index: Callable[[str, NodeKeys], NodeIndex]
    object_index: Callable[[str, Resource, ObjectKeys], ObjectIndex]
    topology: Callable[[str], Topology]
    pod_counters: Callable[[], PodCounters]
    affinity_terms: Callable[[], AffinityTerms]
    activate: Callable[[Iterable[Pod]], None]
    resort: Callable[[Iterable[str]], None]
    stop_binding: Callable[[str, str], bool]
    """Stops a pod in PreBind, for a reason; False when it is not there."""
    waiting: WaitingPods
    tasks: Tasks
    extenders: Sequence[Extender] = ()
    shared: dict[Hashable, Any] = field(default_factory=dict)


_log = logs.get(__name__)


class Tasks:
    """The tasks of one owner. `stop` cancels all of them and waits until they are gone."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, coro: Coroutine[Any, Any, Any], owner: str, name: str = "") -> asyncio.Task[Any]:
        """Run `coro`; what it raises is logged with the owner's name."""
        task = asyncio.get_running_loop().create_task(coro, name=f"{owner}:{name}" if name else owner)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("Background task failed", error=error, stack=True, task=task.get_name())

    def __len__(self) -> int:
        return len(self._tasks)

    async def stop(self) -> None:
        tasks = sorted(self._tasks, key=lambda task: task.get_name())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class HeldPod:
    """One waiting pod; implements `framework.handle.WaitingPod`."""

    def __init__(self, pod: Pod, node_name: str, timeouts: Mapping[str, float], clock: Clock) -> None:
        self.pod = pod
        self.node_name = node_name
        self._outcome: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._timers: dict[str, Timer] = {}
        for plugin, seconds in timeouts.items():
            self._timers[plugin] = clock.call_later(seconds, self._time_out, plugin, seconds)

    def pending_plugins(self) -> Collection[str]:
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> None:
        self._decide(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        return self._decide(Status(Code.ERROR, (f"waiting on permit for pod: {message}",), plugin))

    def _time_out(self, plugin: str, seconds: float) -> None:
        self.reject(
            plugin, f"rejected due to timeout after waiting {format_duration(seconds)} at plugin {plugin}"
        )

    def _decide(self, status: Status) -> bool:
        if self._outcome.done():
            return False
        for timer in self._timers.values():
            timer.cancel()
        self._outcome.set_result(status)
        return True

    async def outcome(self) -> Status:
        return await self._outcome


class WaitingPods:
    """All waiting pods of the process, by UID; visible to the plugins of every profile."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, HeldPod] = {}

    def hold(self, pod: Pod, node_name: str, timeouts: Mapping[str, float]) -> HeldPod:
        held = HeldPod(pod, node_name, timeouts, self._clock)
        self._held[pod.uid] = held
        return held

    def release(self, uid: str) -> None:
        self._held.pop(uid, None)

    def get(self, uid: str) -> HeldPod | None:
        return self._held.get(uid)

    def __iter__(self) -> Iterator[HeldPod]:
        return iter(list(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    def reject(self, uid: str, message: str = "removed") -> bool:
        """Reject a pod that was deleted, say; False when it does not wait."""
        held = self._held.get(uid)
        if held is not None:
            held.reject("", message)
        return held is not None


def permit_timeout(seconds: float | None) -> float:
    """The wait that a plugin gets: at most 15 minutes, never negative."""
    return MAX_PERMIT_TIMEOUT if seconds is None else min(max(seconds, 0.0), MAX_PERMIT_TIMEOUT)
