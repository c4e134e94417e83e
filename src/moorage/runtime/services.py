"""The scheduler's services for plugins: API clients, background tasks, and pods that wait in Permit.

The client of the scheduler and its plugins is fenced: right before each write it checks whether this replica leads.
Reading is always allowed: a replica that has lost the lease may still have to find out what became of a bind that it
had sent. Each plugin's client is also guarded: it permits only the calls that the plugin's `needs` declare.

    Permit says Wait ──▶ waiting ──allow by every plugin──▶ Success, on to PreBind
                            │──reject, or the first timer──▶ Unschedulable
                            └──preempt, or removed─────────▶ Error / Unschedulable

The first decision about a waiting pod wins; later ones change nothing. `scheduler.assembly` provides the services;
`building` gives a plugin those that it has declared."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.api.errors import NotSent
from moorage.api.pod import Pod
from moorage.api.resources import Resource
from moorage.api.times import format_duration
from moorage.framework.access import Access
from moorage.framework.events import ClusterEvent
from moorage.framework.handle import Lister, Nominator, OnChange
from moorage.framework.nodes import Nodes
from moorage.framework.ports import ApiClient, Clock, DelegatingClient, EventRecorder, Extender, Timer
from moorage.framework.status import MAX_PERMIT_TIMEOUT, SUCCESS, Code, Status
from moorage.state.cluster import ChangeWatcher, ClusterState
from moorage.state.indexes import Indexes, ObjectIndexes
from moorage.state.overlay import OverlayRows
from moorage.telemetry import logs


@dataclass(slots=True)
class Services:
    """The scheduler's side of the Handle, shared by all profiles of a generation."""

    client: ApiClient
    clock: Clock
    random: random.Random
    recorder: EventRecorder
    nominator: Nominator
    nodes: Callable[[], Nodes]
    """The live nodes, in snapshot order."""
    dry_run_rows: Callable[[Sequence[str]], OverlayRows]
    """Copies of the rows of these nodes."""
    lister: Callable[[Resource], Lister]
    cluster: ClusterState
    indexes: Indexes
    object_indexes: ObjectIndexes
    activate: Callable[[Iterable[Pod], str], None]
    """Pods, and the plugin that wants them active."""
    wake: Callable[[ClusterEvent, Any, Any], None]
    on_change: Callable[[str, Resource, OnChange], ChangeWatcher]
    """Plugin, kind and callback."""
    resort: Callable[[Iterable[str]], None]
    stop_binding: Callable[[str, str], bool]
    """Stops a pod in PreBind, for a reason; False when it is not there."""
    waiting: WaitingPods
    extenders: Sequence[Extender] = ()
    shared: dict[Hashable, Any] = field(default_factory=dict)


_log = logs.get(__name__)

LATE_SECONDS = 1.0
"""Seconds after which a cancelled task that still runs is logged."""


OnFailure = Callable[[str, BaseException], None]
"""`on_failure(owner, error)`."""


class Tasks:
    """Tasks of several owners. `stop` cancels all of them and waits until they have ended."""

    def __init__(self, parent: Tasks | None = None) -> None:
        self._parent = parent
        self._tasks: set[asyncio.Task[Any]] = set()
        self.on_failure: OnFailure | None = None
        """Called with the exceptions of tasks; None: they are only logged."""

    def spawn(self, coro: Coroutine[Any, Any, Any], owner: str, name: str = "") -> asyncio.Task[Any]:
        """Run `coro`; exceptions are logged with the owner's name."""
        if self._parent is not None:
            task = self._parent.spawn(coro, owner, name)
        else:
            task = asyncio.get_running_loop().create_task(coro, name=f"{owner}:{name}" if name else owner)
            task.add_done_callback(functools.partial(self._ended, owner))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def branch(self) -> Tasks:
        """Return a subset of these tasks that can be stopped separately."""
        return Tasks(self)

    def now(self) -> set[asyncio.Task[Any]]:
        """Return the tasks that have not ended."""
        return set(self._tasks)

    def move_to(self, parent: Tasks) -> None:
        """Make this a subset of other tasks, with all tasks that it has."""
        for task in self._tasks:
            if self._parent is not None:
                self._parent._tasks.discard(task)
            parent._tasks.add(task)
            task.add_done_callback(parent._tasks.discard)
        self._parent = parent

    def _ended(self, owner: str, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("Background task failed", error=error, stack=True, task=task.get_name())
            self.failed(owner, error)

    def failed(self, owner: str, error: BaseException) -> None:
        """Report a failure, also for a task that continues after it."""
        if self._parent is not None:
            self._parent.failed(owner, error)
        elif self.on_failure is not None:
            self.on_failure(owner, error)

    def __len__(self) -> int:
        return len(self._tasks)

    async def stop(self) -> None:
        tasks = sorted(self._tasks, key=lambda task: task.get_name())
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        await asyncio.wait(tasks, timeout=LATE_SECONDS)
        for task in tasks:
            if not task.done():
                _log.warning(
                    "Waiting for a cancelled task that keeps running", task=task.get_name(), at=_place(task.get_coro())
                )
        await asyncio.gather(*tasks, return_exceptions=True)


def _place(coro: Any) -> str:
    """Return the file and line at which a coroutine waits: that of the innermost one outside asyncio."""
    place = ""
    while (frame := getattr(coro, "cr_frame", None)) is not None:
        if not frame.f_globals.get("__name__", "").startswith("asyncio"):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        coro = coro.cr_await
    return place


class HeldPod:
    """One waiting pod; implements `framework.handle.WaitingPod`."""

    def __init__(self, pod: Pod, node_name: str, timeouts: Mapping[str, float], clock: Clock) -> None:
        self.pod = pod
        self.node_name = node_name
        self._outcome: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self.timeout = min(timeouts.values())
        """Seconds until the first timer."""
        self.until = clock.now() + self.timeout
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
        self.reject(plugin, f"rejected due to timeout after waiting {format_duration(seconds)} at plugin {plugin}")

    def _decide(self, status: Status) -> bool:
        if self._outcome.done():
            return False
        for timer in self._timers.values():
            timer.cancel()
        self._outcome.set_result(status)
        return True

    @property
    def decision(self) -> Status | None:
        """Return the decision about the pod; None while it waits. Its task may not have noticed yet."""
        return self._outcome.result() if self._outcome.done() else None

    async def outcome(self) -> Status:
        return await self._outcome


class WaitingPods:
    """All waiting pods of the process, by UID, visible to the plugins of every profile. Pods that were allowed or
    rejected are not returned, so that plugins do not count them."""

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
        held = self._held.get(uid)
        return held if held is not None and held.decision is None else None

    def __iter__(self) -> Iterator[HeldPod]:
        return iter([held for held in self._held.values() if held.decision is None])

    def __len__(self) -> int:
        return len(self._held)

    def reject(self, uid: str, message: str = "removed") -> bool:
        """Reject a pod, for example because it was deleted; False if it is not waiting."""
        held = self._held.get(uid)
        if held is not None:
            held.reject("", message)
        return held is not None


def permit_timeout(seconds: float | None) -> float:
    """Return the timeout of a plugin: at most 15 minutes, never negative."""
    return MAX_PERMIT_TIMEOUT if seconds is None else min(max(seconds, 0.0), MAX_PERMIT_TIMEOUT)


MayWrite = Callable[[], bool]

READS = frozenset(("get", "list", "watch"))
NOT_LEADING = "not sent: this replica no longer holds the lease"


def always() -> bool:
    """Always lead, for a scheduler without replicas."""
    return True


class FencedClient(DelegatingClient):
    """Raises NotSent for a write without the lease."""

    def __init__(self, client: ApiClient, may_write: MayWrite) -> None:
        super().__init__(client)
        self._may_write = may_write

    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        if verb not in READS and not self._may_write():
            raise NotSent(NOT_LEADING)


class GuardedClient(DelegatingClient):
    """Permits the declared calls only. The same declarations become RBAC rules, so a call that passes here is also
    authorised on the cluster."""

    def __init__(self, client: ApiClient, plugin: str, needs: Sequence[Access]) -> None:
        super().__init__(client)
        self._plugin = plugin
        self._allowed = {(need.resource, need.subresource, verb) for need in needs for verb in need.verbs}

    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        if (resource, subresource, verb) not in self._allowed:
            raise undeclared(self._plugin, Access(resource, (verb,), subresource))


def undeclared(plugin: str, access: Access) -> PermissionError:
    """Return the error for a kind or verb that is not among the plugin's `needs`, with the line to add."""
    verbs = "".join(f"{verb!r}, " for verb in access.verbs).rstrip()
    what = f"{access.resource}/{access.subresource}" if access.subresource else str(access.resource)
    sub = f', subresource="{access.subresource}"' if access.subresource else ""
    return PermissionError(
        f"plugin {plugin!r} uses {what} ({', '.join(access.verbs)}) without declaring it: "
        f"add Access(<{access.resource.kind}>, ({verbs}){sub}) to its `needs`"
    )
