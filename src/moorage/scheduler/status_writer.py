"""Writes the PodScheduled condition and nominatedNodeName to the status of pods.

At most one patch per pod is in progress. A newer update replaces one that is waiting, so a pod never builds
up a backlog. Writes are retried after conflicts and outages, and dropped if the pod is gone. The scheduling
cycle never waits for them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.api.errors import ApiError, Conflict, NotFound, ServerError, TooManyRequests, TransportError
from moorage.api.plain_text import fit
from moorage.api.pod import Pod, PodCondition
from moorage.api.resources import PODS
from moorage.api.times import backoff, format_time
from moorage.framework.ports import ApiClient, Clock
from moorage.runtime.services import Tasks
from moorage.telemetry import logs

_log = logs.get(__name__)

POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
RETRIES = 10
"""Number of tries. With growing delays they take about two minutes, because controllers also rely on the status."""
REMEMBERED = 10_000
MESSAGE_BYTES = 32 * 1024
"""The limit of messages in conditions (metav1.Condition). Messages contain what plugins wrote."""


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """The intended status of a pod. None leaves a part unchanged."""

    pod: Pod
    reason: str | None = None
    """Reason of the condition PodScheduled=False."""
    message: str = ""
    nominated_node: str | None = None


class PodStatusWriter:
    """Writes status updates in background tasks."""

    def __init__(self, client: ApiClient, clock: Clock, tasks: Tasks) -> None:
        self._client = client
        self._clock = clock
        self._tasks = tasks
        self._waiting: dict[str, StatusUpdate | None] = {}
        """UID → the update to write after the patch in progress, or None if there is none."""
        self._sent: dict[str, str] = {}
        """UID → the nomination that was last sent, for the most recent pods."""

    def submit(self, update: StatusUpdate) -> None:
        """Write an update in the background, unless the pod already has this status."""
        update = dataclasses.replace(update, message=fit(update.message, MESSAGE_BYTES))
        uid = update.pod.uid
        if uid in self._waiting:
            self._waiting[uid] = merge(self._waiting[uid], update)
        elif patch := self._patch_for(update):
            self._waiting[uid] = None
            self._tasks.spawn(self._write(uid, update, patch), "status", update.pod.key)

    def _patch_for(self, update: StatusUpdate) -> dict[str, Any]:
        """Return the patch to send.

        The nomination is compared with the last one sent as well: the object may not show that one yet, and
        would show it forever if it were not cleared.
        """
        pod, sent = update.pod, self._sent.get(update.pod.uid)
        if sent is not None and sent != pod.nominated_node_name == update.nominated_node:
            status = msgspec.structs.replace(pod.status, nominated_node_name=sent)
            update = dataclasses.replace(update, pod=msgspec.structs.replace(pod, status=status))
        return patch_for(update, self._clock.wall())

    def _note(self, pod: Pod, patch: dict[str, Any]) -> None:
        """Remember a nomination that is being sent, whether or not the write succeeds."""
        if "nominatedNodeName" in patch["status"]:
            self._sent.pop(pod.uid, None)
            self._sent[pod.uid] = patch["status"]["nominatedNodeName"] or ""
            if len(self._sent) > REMEMBERED:
                del self._sent[next(iter(self._sent))]

    async def announce(self, pod: Pod, node: str) -> None:
        """Set nominatedNodeName before the pod is bound. Tries once, because a failure only hides the expected node."""
        if pod.nominated_node_name == node:
            return
        patch = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        self._note(pod, patch)
        try:
            await self._client.patch(PODS, pod.name, patch, namespace=pod.namespace, subresource="status")
        except (ApiError, TransportError) as error:
            _log.warning("Cannot set nominatedNodeName", pod=pod.key, node=node, err=str(error))

    async def _write(self, uid: str, update: StatusUpdate, patch: dict[str, Any]) -> None:
        try:
            while True:
                self._note(update.pod, patch)
                if update.reason is not None:
                    about = {"conditionType": POD_SCHEDULED, "conditionStatus": "False"}
                    _log.info(3, "Updating pod condition", pod=update.pod, **about, conditionReason=update.reason)
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
        """Send a patch. Return the patched pod, or None if it could not be written."""
        for attempt in range(1, RETRIES + 1):
            try:
                updated: Pod = await self._client.patch(
                    PODS, pod.name, patch, namespace=pod.namespace, subresource="status"
                )
                return updated
            except NotFound:
                return None  # the pod is gone
            except (Conflict, ServerError, TooManyRequests, TransportError) as error:
                delay = getattr(error, "retry_after", None) or backoff(attempt, 0.1, 60.0)
                await self._clock.sleep(min(delay, 60.0))
            except ApiError as error:
                _log.error("Failed updating pod", error=error, pod=pod.key)
                return None
        _log.error("Gave up updating pod", pod=pod.key, attempts=RETRIES)
        return None


def merge(first: StatusUpdate | None, second: StatusUpdate) -> StatusUpdate:
    """Return the second update, completed with the parts that only the first one sets."""
    if first is None:
        return second
    reason, message = (first.reason, first.message) if second.reason is None else (second.reason, second.message)
    nominated = first.nominated_node if second.nominated_node is None else second.nominated_node
    return StatusUpdate(second.pod, reason, message, nominated)


def patch_for(update: StatusUpdate, wall: float) -> dict[str, Any]:
    """Return a strategic merge patch of pods/status, or an empty one if nothing changes."""
    status: dict[str, Any] = {}
    if update.reason is not None and (condition := changed_condition(update, wall)):
        status["conditions"] = [condition]
    if update.nominated_node is not None and update.nominated_node != update.pod.nominated_node_name:
        status["nominatedNodeName"] = update.nominated_node or None
    return {"metadata": {"uid": update.pod.uid}, "status": status} if status else {}


def changed_condition(update: StatusUpdate, wall: float) -> dict[str, Any]:
    """Return the new PodScheduled condition, or an empty one if the pod already has it."""
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
