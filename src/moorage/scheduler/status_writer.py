"""Writes the scheduler's view into pods: the PodScheduled condition and nominatedNodeName.

One patch under way per pod; what comes meanwhile replaces what waits, so a pod never has a backlog. Writes
are retried on conflicts and outages and given up when the pod is gone. The cycle never waits for them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.api.errors import (
    ApiError,
    Conflict,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
)
from moorage.api.pod import Pod, PodCondition
from moorage.api.resources import PODS
from moorage.api.times import format_time
from moorage.framework.ports import ApiClient, Clock
from moorage.runtime.services import Tasks
from moorage.telemetry import logs

_log = logs.get(__name__)

POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
RETRIES = 10
"""With growing pauses, about two minutes: a status that stays wrong misleads more than people."""
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """What the pod's status should say. `None` leaves that part alone."""

    pod: Pod
    reason: str | None = None
    """Reason of PodScheduled=False."""
    message: str = ""
    nominated_node: str | None = None


class PodStatusWriter:
    def __init__(self, client: ApiClient, clock: Clock, tasks: Tasks) -> None:
        self._client = client
        self._clock = clock
        self._tasks = tasks
        self._waiting: dict[str, StatusUpdate | None] = {}
        """UID → what to write after the patch under way; None: nothing yet."""
        self._sent: dict[str, str] = {}
        """UID → the nomination that was sent last, the newest pods only."""

    def submit(self, update: StatusUpdate) -> None:
        """Write soon. Nothing is sent when the pod already says so."""
        uid = update.pod.uid
        if uid in self._waiting:
            self._waiting[uid] = merge(self._waiting[uid], update)
        elif patch := self._patch_for(update):
            self._waiting[uid] = None
            self._tasks.spawn(self._write(uid, update, patch), "status", update.pod.key)

    def _patch_for(self, update: StatusUpdate) -> dict[str, Any]:
        """What to send. A nomination is compared with what was sent last as well: the object may not show it
        yet, and would show it for ever if it were not taken back."""
        pod, sent = update.pod, self._sent.get(update.pod.uid)
        if sent is not None and sent != pod.nominated_node_name == update.nominated_node:
            status = msgspec.structs.replace(pod.status, nominated_node_name=sent)
            update = dataclasses.replace(update, pod=msgspec.structs.replace(pod, status=status))
        return patch_for(update, self._clock.wall())

    def _note(self, pod: Pod, patch: dict[str, Any]) -> None:
        """Remember a nomination that is being sent, whatever becomes of it."""
        if "nominatedNodeName" in patch["status"]:
            self._sent.pop(pod.uid, None)
            self._sent[pod.uid] = patch["status"]["nominatedNodeName"] or ""
            if len(self._sent) > REMEMBERED:
                del self._sent[next(iter(self._sent))]

    async def announce(self, pod: Pod, node: str) -> None:
        """Publish where the pod is going, before it gets there: after the binding it would be untrue.
        One try; a failure costs nothing but the news."""
        if pod.nominated_node_name == node:
            return
        patch = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        self._note(pod, patch)
        try:
            await self._client.patch(PODS, pod.name, patch, namespace=pod.namespace, subresource="status")
        except (ApiError, TransportError) as error:
            _log.warning("Cannot announce the nominated node", pod=pod.key, node=node, err=str(error))

    async def _write(self, uid: str, update: StatusUpdate, patch: dict[str, Any]) -> None:
        try:
            while True:
                self._note(update.pod, patch)
                updated = await self._send(update.pod, patch)
                following = self._waiting[uid]
                self._waiting[uid] = None
                if following is None:
                    return
                current = following.pod if updated is None else updated
                update = StatusUpdate(current, following.reason, following.message, following.nominated_node)
                if not (patch := self._patch_for(update)):
                    return
        finally:
            del self._waiting[uid]

    async def _send(self, pod: Pod, patch: dict[str, Any]) -> Pod | None:
        """The pod after the patch; None when it could not be written."""
        for attempt in range(RETRIES):
            try:
                updated: Pod = await self._client.patch(
                    PODS, pod.name, patch, namespace=pod.namespace, subresource="status"
                )
                return updated
            except (NotFound, Invalid):
                return None  # gone, or the API server knows better
            except (Conflict, ServerError, TooManyRequests, TransportError) as error:
                delay = getattr(error, "retry_after", None) or 0.1 * 2**attempt
                await self._clock.sleep(min(delay, 60.0))
            except ApiError as error:
                _log.error("Failed updating pod", error=error, pod=pod.key)
                return None
        _log.error("Gave up updating pod", pod=pod.key, attempts=RETRIES)
        return None


def merge(first: StatusUpdate | None, second: StatusUpdate) -> StatusUpdate:
    """The later update, with what only the earlier one had to say."""
    if first is None:
        return second
    reason, message = (
        (first.reason, first.message) if second.reason is None else (second.reason, second.message)
    )
    nominated = first.nominated_node if second.nominated_node is None else second.nominated_node
    return StatusUpdate(second.pod, reason, message, nominated)


def patch_for(update: StatusUpdate, wall: float) -> dict[str, Any]:
    """A strategic merge patch of pods/status; empty when nothing would change."""
    status: dict[str, Any] = {}
    if update.reason is not None and (condition := changed_condition(update, wall)):
        status["conditions"] = [condition]
    if update.nominated_node is not None and update.nominated_node != update.pod.nominated_node_name:
        status["nominatedNodeName"] = update.nominated_node or None
    return {"metadata": {"uid": update.pod.uid}, "status": status} if status else {}


def changed_condition(update: StatusUpdate, wall: float) -> dict[str, Any]:
    """The PodScheduled condition as it should be; empty when the pod has just that."""
    current = next((c for c in update.pod.status.conditions if c.type == POD_SCHEDULED), PodCondition())
    generation = update.pod.metadata.generation
    same = (current.status, current.reason, current.message, current.observed_generation)
    if same == ("False", update.reason, update.message, generation):
        return {}
    since = current.last_transition_time if current.status == "False" else format_time(wall)
    return {
        "type": POD_SCHEDULED,
        "status": "False",
        "reason": update.reason,
        "message": update.message,
        "lastProbeTime": None,
        "lastTransitionTime": since,
        **({"observedGeneration": generation} if generation else {}),
    }
