"""Compute the status of PodGroup objects from their pods, on the leader. Follows pkg/controllers/podgroup_controller.go
of scheduler-plugins.

Ended pods are in no informer, so when a pod of a group is gone, the group is counted by a request to the API server;
everything else comes from the informers. The status does not influence scheduling."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from moorage.api.errors import NotFound
from moorage.api.pod import Pod
from moorage.api.resources import PODS, Unstructured
from moorage.api.times import format_time
from moorage.contrib.coscheduling.groups import LABEL, PODGROUPS, GroupObject, Groups
from moorage.framework.handle import Handle
from moorage.framework.ports import PatchType

PENDING, SCHEDULING, RUNNING = "Pending", "Scheduling", "Running"
FINISHED, FAILED = "Finished", "Failed"
_PAUSE = 0.2
"""Seconds in which changes of one group are gathered into one write."""


class Ended(NamedTuple):
    """The number of pods of a group that have ended."""

    succeeded: int = 0
    failed: int = 0


class _Work:
    """Groups whose status may have changed; the controllers of all profiles share it."""

    def __init__(self) -> None:
        self.keys: dict[str, bool] = {}
        """Group → whether its ended pods have to be counted again."""
        self.ended: dict[str, Ended] = {}
        self.arrived = asyncio.Event()


class StatusController:
    def __init__(self, handle: Handle, groups: Groups) -> None:
        self._handle = handle
        self._groups = groups
        self._objects = handle.lister(PODGROUPS)
        self._work: _Work = handle.shared("Coscheduling.status", _Work)

    def changed(self, key: str, *, ended: bool = False) -> None:
        """Check the group's status soon. With `ended`, one of its pods is gone."""
        self._work.keys[key] = ended or self._work.keys.get(key, False)
        self._work.arrived.set()

    async def run(self) -> None:
        """Write until cancelled. A failure is raised, and that group comes first when the runtime restarts this
        task."""
        while True:
            await self._work.arrived.wait()
            await self._handle.clock.sleep(_PAUSE)
            self._work.arrived.clear()
            while self._work.keys:
                key = next(iter(self._work.keys))
                recount = self._work.keys.pop(key)
                try:
                    await self._reconcile(key, recount)
                except BaseException:
                    self.changed(key, ended=recount)
                    raise

    async def _reconcile(self, key: str, recount: bool) -> None:
        namespace, _, name = key.partition("/")
        obj = self._objects.get(name, namespace)
        if obj is None:
            self._work.ended.pop(key, None)
            return
        if obj.get("status", "phase") in (FINISHED, FAILED):
            return
        if recount or key not in self._work.ended:
            seen = recount or obj.get("status", "phase")  # a new group has no pods that ended
            self._work.ended[key] = await self._count_ended(namespace, name) if seen else Ended()
        waits_for = self._groups.waits_for(key)
        new = status(obj, self._groups.members(key), self._work.ended[key], waits_for)
        if new.get("phase") == SCHEDULING and not obj.get("status", "scheduleStartTime"):
            new["scheduleStartTime"] = format_time(self._handle.clock.wall())
        old: Mapping[str, Any] = obj.get("status", default={})
        changes = {field: value for field, value in new.items() if old.get(field) != value}
        if changes:
            try:
                await self._handle.client.patch(
                    PODGROUPS, name, {"status": changes}, namespace=namespace, subresource="status",
                    patch_type=PatchType.MERGE,
                )  # fmt: skip
            except NotFound:
                return

    async def _count_ended(self, namespace: str, name: str) -> Ended:
        found = await self._handle.client.list(PODS, namespace=namespace, label_selector=f"{LABEL}={name}")
        phases = Counter(pod.status.phase for pod in found.items)
        return Ended(phases["Succeeded"], phases["Failed"])


def status(obj: Unstructured, members: Iterable[Pod], ended: Ended, waits_for: str) -> dict[str, Any]:
    """Return the status of a group with these pods that have not ended. Finished and Failed are final, so callers skip
    such groups."""
    pods, wanted = [*members], GroupObject(obj).min_member
    running = sum(pod.status.phase == "Running" for pod in pods)
    existing = len(pods) + ended.succeeded + ended.failed
    if ended.succeeded >= wanted > 0:
        phase = FINISHED
    elif ended.failed and ended.failed + running + ended.succeeded >= wanted:
        phase = FAILED
    elif existing < wanted:
        phase = PENDING
    elif running + ended.succeeded >= wanted:
        phase = RUNNING
    else:
        phase = SCHEDULING
    found: dict[str, Any] = {
        "phase": phase, "running": running, "succeeded": ended.succeeded, "failed": ended.failed,
    }  # fmt: skip
    found["message"] = _message(phase, waits_for, existing, wanted)
    if phase != PENDING and pods and (owners := _owners(pods[0])):
        found["occupiedBy"] = owners
    return found


def _message(phase: str, waits_for: str, existing: int, wanted: int) -> str:
    if phase == PENDING:
        return f"{wanted - existing} more pods"
    return waits_for if phase == SCHEDULING else ""


def _owners(pod: Pod) -> str:
    return ",".join(sorted(f"{pod.namespace}/{owner.name}" for owner in pod.metadata.owner_references))
