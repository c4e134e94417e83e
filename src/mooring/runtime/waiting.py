"""Pods held back by Permit plugins.

    Permit says Wait ──▶ waiting ──allow by every plugin──▶ Success, on to PreBind
                            │──reject, or the first timer──▶ Unschedulable
                            └──preempt, or removed─────────▶ Error / Unschedulable

The first decision wins; whatever comes later changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping

from mooring.api.pod import Pod
from mooring.api.times import format_duration
from mooring.framework.ports import Clock, Timer
from mooring.framework.status import MAX_PERMIT_TIMEOUT, SUCCESS, Code, Status


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
            plugin,
            f"rejected due to timeout after waiting {format_duration(seconds)} at plugin {plugin}",
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
