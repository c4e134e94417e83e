"""Eviction of the victims in the background, while the preemptor waits. Follows
pkg/scheduler/framework/preemption/executor.go.

    start ─▶ all victims but the last, at once ─▶ the last one ─▶ done
                     │ one failed                     │ failed
                     └────────────────────────────────┴─▶ the preemptor is tried again at once

Until then PreEnqueue holds the preemptor back, because it would only preempt once more: a victim that was stopped in
memory is on its node until its binding task has ended, and a deleted one until the watch reports it. Each victim that
leaves wakes the preemptor, and the last one lets it through. The watch may report a deletion before the API server has
answered the request. A wake-up that came too early is repeated at the end.
Every write names the UID of its pod, so that a pod recreated under the same name is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from moorage.api.errors import ApiError, Conflict, NotFound, NotSent, ServerError, TooManyRequests, TransportError
from moorage.api.pod import Pod, PodCondition
from moorage.api.resources import PODS
from moorage.api.times import format_time
from moorage.framework.handle import Handle
from moorage.framework.preemption import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, Candidate
from moorage.telemetry import logs
from moorage.telemetry.metrics import METRICS, SchedulerMetrics

_log = logs.get(__name__)
RETRIES = 4
FIRST_DELAY = 0.01
"""Seconds before the first retry; five times as long before each further one."""
MAX_LOOKS = 100
"""How often the state is asked whether it knows what was done to the victims."""


Victim = tuple[str, Pod]
"""A node, and a pod that is evicted from it."""


class _Run:
    """One running preemption."""

    __slots__ = ("last_in_memory", "passed", "reached_last", "unseen", "victims")

    def __init__(self, victims: Sequence[Victim]) -> None:
        self.victims = victims
        self.unseen = list(victims)
        """Victims that the state may still know as they were."""
        self.reached_last = False
        """Whether all victims but the last have been dealt with."""
        self.last_in_memory = False
        """Whether the last victim was stopped before it was bound, so that no deletion will wake the preemptor."""
        self.passed = False
        """Whether the preemptor has been let through before the end."""


class Evictor:
    """The running preemptions of one plugin."""

    def __init__(self, plugin: str, handle: Handle) -> None:
        self._plugin = plugin
        self._handle = handle
        self._writer = VictimWriter(handle)
        self._runs: dict[str, _Run] = {}
        """By the UID of the preemptor."""

    def is_running(self, pod: Pod) -> bool:
        """Return whether victims of a pod are still being evicted."""
        run = self._runs.get(pod.uid)
        if run is None:
            return False
        if not run.reached_last or not self._is_seen(run) or self._ends_with_activation(run):
            return True
        run.passed = True
        return False

    def _ends_with_activation(self, run: _Run) -> bool:
        """Return whether the end of the run tries the preemptor at once, without its backoff."""
        return run.last_in_memory and self._handle.behaviour.victims_in_memory_activate

    def _is_seen(self, run: _Run) -> bool:
        """Return whether the state knows what was done to each victim. No victim is checked again once it does."""
        while run.unseen:
            if self._is_untouched(run.unseen[-1]):
                return False
            del run.unseen[-1]
        return True

    def _is_untouched(self, victim: Victim) -> bool:
        """Return whether the state knows the victim as it was, so that the preemptor would evict it once more."""
        current = self._current(victim[1])
        return not current.is_terminating if current is not None and current.is_assigned else self._remains(victim)

    def _current(self, pod: Pod) -> Pod | None:
        current = self._handle.lister(PODS).get(pod.name, pod.namespace)
        return current if isinstance(current, Pod) and current.uid == pod.uid else None

    def start(self, pod: Pod, *candidates: Candidate, siblings: Sequence[Pod] = ()) -> None:
        """Start to evict the victims of one or several nodes; see `Preemption.evict`."""
        victims = [(c.node_name, v) for c in candidates for v in c.victims if not v.is_terminating]
        if not victims:
            return
        nominated = (p for c in candidates for p in self._handle.nominator.nominated_on(c.node_name))
        outranked = [*{p.uid: p for p in nominated if p.priority < pod.priority}.values()]
        for other in outranked:
            self._handle.nominator.forget(other.uid)
        self._runs[pod.uid] = run = _Run(victims)
        self._handle.spawn(self._run(run, (pod, *siblings), outranked), f"preemption for {pod.key}")

    async def _run(self, run: _Run, waiting: Sequence[Pod], outranked: Sequence[Pod]) -> None:
        pod, succeeded = waiting[0], False
        try:
            succeeded = await self._evict(run, pod, outranked)
            if succeeded:
                await self._wait_until_seen(run)
        finally:
            if self._runs.get(pod.uid) is run:
                del self._runs[pod.uid]
            if not succeeded or self._must_activate(run):
                self._handle.activate(waiting)
            _log.info(2, "Preemption finished", preemptor=pod.key, node=run.victims[0][0], succeeded=succeeded)

    def _must_activate(self, run: _Run) -> bool:
        """Return whether no event is sure to wake the preemptor. A victim that still has to leave will, and up to 1.36
        the end of a victim in memory does."""
        if run.passed or any(map(self._remains, run.victims)):
            return False
        return self._ends_with_activation(run) or not run.last_in_memory

    async def _evict(self, run: _Run, pod: Pod, outranked: Sequence[Pod]) -> bool:
        """Evict all victims, and measure how long it takes. Return False if one could not be evicted."""
        succeeded, began = False, self._handle.clock.now()
        try:
            await self._take_nominations(outranked)
            succeeded = await self._preempt_all(run, pod)
        finally:
            metrics: SchedulerMetrics | None = self._handle.shared(METRICS, lambda: None)
            if metrics is not None:
                metrics.preempted(self._handle.clock.now() - began, "success" if succeeded else "error")
        return succeeded

    async def _wait_until_seen(self, run: _Run) -> None:
        """Wait until the state knows what was done to the victims. A preemptor that is tried before would evict them a
        second time; it would even delete a victim that was stopped in memory and is pending again."""
        for _ in range(MAX_LOOKS):
            if self._is_seen(run):
                return
            await self._handle.clock.sleep(FIRST_DELAY)

    def _remains(self, victim: Victim) -> bool:
        node = self._handle.node(victim[0])
        return node is not None and any(victim[1].uid == there.uid for there in node.pods)

    async def nominate(self, nominations: Iterable[tuple[Pod, str]]) -> None:
        """Write `status.nominatedNodeName` of pods that are not in their attempt; failures are logged."""
        for pod, node_name in nominations:
            try:
                await self._writer.nominate(pod, node_name)
            except (ApiError, TransportError) as error:
                _log.error("Cannot nominate", error=error, pod=pod.key, node=node_name)

    async def _take_nominations(self, pods: Sequence[Pod]) -> None:
        """Clear the nominations of pods of lower priority, which may not fit any more, and try them again."""
        for other in pods:
            try:
                await self._writer.clear_nomination(other)
            except (ApiError, TransportError) as error:
                _log.error("Cannot clear a nomination", error=error, pod=other.key)
        if pods:
            self._handle.activate(pods)

    async def _preempt_all(self, run: _Run, pod: Pod) -> bool:
        *others, last = run.victims
        done = await asyncio.gather(*(self._preempt(pod, *victim) for victim in others))
        if not all(done):
            return False
        run.reached_last = True
        return await self._preempt(pod, *last, run)

    async def _preempt(self, pod: Pod, node_name: str, victim: Pod, run: _Run | None = None) -> bool:
        """Stop the victim if it is not bound yet, otherwise delete it. Return False if that failed. `run` is given for
        the last victim."""
        note = f"Preempted by pod {pod.uid} on node {node_name}"
        if self._stop_in_memory(victim):
            self._record_event(pod, victim, f"{note} (in kube-scheduler memory).")
            if run is not None:
                run.last_in_memory = True
            return True
        current = self._current(victim)
        if current is not None and not current.is_assigned and not self._remains((node_name, victim)):
            return True  # its binding failed meanwhile: it is a pending pod, which takes no space
        try:
            if await self._writer.delete(victim, pod.scheduler_name):
                self._record_event(pod, victim, note)
        except (ApiError, TransportError) as error:
            _log.error("Cannot preempt", error=error, victim=victim.key, preemptor=pod.key, node=node_name)
            return False
        return True

    def _stop_in_memory(self, victim: Pod) -> bool:
        """Return whether the victim was waiting in Permit or PreBind, and stop it there instead of deleting it."""
        waiting = self._handle.waiting_pod(victim.uid)
        if waiting is not None and waiting.preempt(self._plugin, "preempted"):
            return True
        return self._handle.stop_binding(victim.uid, f"preempted by {self._plugin}")

    def _record_event(self, pod: Pod, victim: Pod, note: str) -> None:
        self._handle.recorder.event(
            victim,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=note,
            related=pod,
            controller=self._handle.profile_name,
        )


class VictimWriter:
    """Writes to victims and nominated pods. Raises API errors, except those that say that the pod is gone."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def delete(self, victim: Pod, scheduler: str) -> bool:
        """Add the DisruptionTarget condition and delete the pod. Return False if it is gone already."""
        try:
            condition = disruption_target(victim, scheduler, self._handle.clock.wall())
            if condition:
                await self._patch(victim, {"conditions": [condition]})
            await self._handle.client.delete(PODS, victim.name, namespace=victim.namespace, uid=victim.uid)
        except NotFound:
            return False
        except Conflict:
            if await self._is_there(victim):
                raise
            return False
        return True

    async def clear_nomination(self, pod: Pod) -> None:
        """Clear `status.nominatedNodeName` if it is set on the API server."""
        if not pod.nominated_node_name:
            return
        try:
            await self._patch(pod, {"nominatedNodeName": None})
        except NotFound:
            pass
        except Conflict:
            if await self._is_there(pod):
                raise

    async def nominate(self, pod: Pod, node_name: str) -> None:
        try:
            await self._patch(pod, {"nominatedNodeName": node_name})
        except NotFound:
            return

    async def _is_there(self, pod: Pod) -> bool:
        """Return whether the name still belongs to the same pod."""
        try:
            current = await self._handle.client.get(PODS, pod.name, pod.namespace)
        except NotFound:
            return False
        return isinstance(current, Pod) and current.uid == pod.uid

    async def _patch(self, pod: Pod, status: dict[str, Any]) -> None:
        """Patch the status; retry on conflicts, server errors and throttling."""
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        for attempt in range(RETRIES):
            try:
                await self._handle.client.patch(PODS, pod.name, patch, namespace=pod.namespace, subresource="status")
                return
            except (Conflict, ServerError, TooManyRequests, NotSent):
                if attempt == RETRIES - 1:
                    raise
                await self._handle.clock.sleep(FIRST_DELAY * 5**attempt)


def disruption_target(victim: Pod, scheduler: str, wall: float) -> dict[str, Any]:
    """Return the DisruptionTarget condition; empty if the pod has it already."""
    message = f"{scheduler}: preempting to accommodate a higher priority pod"
    generation = victim.metadata.generation
    found = (condition for condition in victim.status.conditions if condition.type == DISRUPTION_TARGET)
    current = next(found, PodCondition())
    says = (current.status, current.reason, current.message, current.observed_generation)
    if says == ("True", PREEMPTION_BY_SCHEDULER, message, generation):
        return {}
    since = current.last_transition_time if current.status == "True" else None
    return {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": PREEMPTION_BY_SCHEDULER,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": since or format_time(wall),
        **({"observedGeneration": generation} if generation else {}),
    }
