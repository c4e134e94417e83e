"""What preemption writes: the condition and the deletion of a victim, and the end of a nomination.

Every write names the UID that it is meant for, so that a pod recreated under the same name is left alone.
"""

from __future__ import annotations

from typing import Any

from mooring.api.errors import Conflict, NotFound, NotSent, ServerError, TooManyRequests
from mooring.api.pod import Pod, PodCondition
from mooring.api.resources import PODS
from mooring.api.times import format_time
from mooring.framework.handle import Handle
from mooring.framework.preemption.policy import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER

RETRIES = 4
FIRST_DELAY = 0.01
"""Seconds; five times as long after each attempt."""


class VictimWriter:
    """Errors pass through, unless they say that the pod is gone."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def delete(self, victim: Pod, scheduler: str) -> bool:
        """Mark the pod as a target of disruption and delete it. False when it is gone already."""
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
        """Empty `status.nominatedNodeName`, if the API server has it."""
        if not pod.nominated_node_name:
            return
        try:
            await self._patch(pod, {"nominatedNodeName": None})
        except NotFound:
            pass
        except Conflict:
            if await self._is_there(pod):
                raise

    async def _is_there(self, pod: Pod) -> bool:
        """Whether the name still belongs to this very pod."""
        try:
            current = await self._handle.client.get(PODS, pod.name, pod.namespace)
        except NotFound:
            return False
        return isinstance(current, Pod) and current.uid == pod.uid

    async def _patch(self, pod: Pod, status: dict[str, Any]) -> None:
        """A patch of the status, tried again when the server asks for it or fails."""
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        for attempt in range(RETRIES):
            try:
                await self._handle.client.patch(
                    PODS, pod.name, patch, namespace=pod.namespace, subresource="status"
                )
                return
            except (Conflict, ServerError, TooManyRequests, NotSent):
                if attempt == RETRIES - 1:
                    raise
                await self._handle.clock.sleep(FIRST_DELAY * 5**attempt)


def disruption_target(victim: Pod, scheduler: str, wall: float) -> dict[str, Any]:
    """The condition that tells why the pod goes; empty when it says so already."""
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
