"""Jobs: pods until enough of them have succeeded, or too many have failed.

Left out: podFailurePolicy, successPolicy and limits per index.
"""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.resources import Unstructured
from moorage.api.times import backoff, format_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.job_status import (
    FINALIZER,
    JobCounts,
    Verdict,
    count,
    finished_at,
    is_indexed,
    is_over,
    is_suspended,
    judge,
    missing_indexes,
    pod_for,
    seconds_remaining,
    status_of,
    wanted_active,
)
from moorage.embedded.controllers.kinds import is_finished, is_terminating, is_true
from moorage.embedded.controllers.replica_sets import BURST

PAUSES = (10.0, 600.0)
"""The first and the longest pause before a failed pod is replaced, in seconds."""


class Jobs(Controller):
    """The controller of Jobs."""

    name = "job-controller"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.jobs = self.watch(kinds.JOBS, own_key)
        self.pods = self.watch(kinds.PODS, self._keys_of)
        self.pods.handlers.append(self._forget)
        self._deleted: set[str] = set()
        """UIDs of pods that were deleted here."""
        self._failures: dict[str, tuple[int, float]] = {}
        """UID → failures in a row and the time of the last, for the pause before the next try."""

    def _keys_of(self, pod: Unstructured) -> Iterable[str]:
        return [f"{pod.namespace}/{o.name}" for o in pod.metadata.owner_references if o.kind == "Job"]

    def _forget(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None and old is not None:
            self._deleted.discard(old.uid)

    async def reconcile(self, key: str) -> float | None:
        job = self.jobs.get(key)
        if job is None:
            await self._release_orphans(key)
            return None
        pods = self.pods.owned_by(job)
        if is_terminating(job):
            await self._release(pods)
            return None
        if is_over(job):
            await self._release([pod for pod in pods if is_finished(pod) or is_terminating(pod)])
            return await self._expire(job)
        counts = count(job, pods, self._deleted)
        self._note_failures(job, counts)
        wall = self.clock.wall()
        verdict = judge(job, counts, wall)
        again: float | None = None
        if verdict is not None or is_suspended(job):
            await self._stop(job, counts)
        else:
            again = await self._scale(job, counts)
        # The end is reported only when every pod is in the counts that stay.
        uncounted = bool(counts.uncounted_succeeded or counts.uncounted_failed)
        await self._report(job.key, counts, None if uncounted else verdict)
        await self._release(counts.to_release)
        if uncounted:
            return 0.0
        deadline = seconds_remaining(self.jobs.get(key), wall)
        return min((t for t in (again, deadline) if t is not None), default=None)

    def _note_failures(self, job: Unstructured, counts: JobCounts) -> None:
        failures, _ = self._failures.get(job.uid, (0, 0.0))
        if counts.newly_failed:
            self._failures[job.uid] = (failures + counts.newly_failed, self.clock.now())
        elif counts.uncounted_succeeded:
            self._failures.pop(job.uid, None)

    async def _scale(self, job: Unstructured, counts: JobCounts) -> float | None:
        """Makes or removes pods; gives the seconds to wait when a pause is due."""
        wanted = wanted_active(job, counts)
        surplus = len(counts.active) - wanted
        if surplus > 0:
            ordered = sorted(counts.active, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.name))
            for pod in ordered[wanted:]:
                await self._delete(job, pod)
            counts.active = ordered[:wanted]
        elif surplus < 0:
            wait = self._pause(job)
            if wait > 0:
                return wait
            await self._create(job, counts, min(-surplus, BURST))
            return 0.0 if -surplus > BURST else None
        return None

    def _pause(self, job: Unstructured) -> float:
        failures, last = self._failures.get(job.uid, (0, 0.0))
        if not failures:
            return 0.0
        return last + backoff(failures, *PAUSES) - self.clock.now()

    async def _create(self, job: Unstructured, counts: JobCounts, number: int) -> None:
        indexes: list[int | None] = [None] * number
        if is_indexed(job):
            indexes = list(missing_indexes(job, counts)[:number])
        for index in indexes:
            pod = await self.writer.create(kinds.PODS, pod_for(job, index))
            counts.active.append(pod)
            self.event(job, "SuccessfulCreate", f"Created pod: {pod.name}")

    async def _stop(self, job: Unstructured, counts: JobCounts) -> None:
        for pod in counts.active:
            await self._delete(job, pod)
        counts.active = []

    async def _delete(self, job: Unstructured, pod: Unstructured) -> None:
        self._deleted.add(pod.uid)
        await self.writer.delete(kinds.PODS, pod)
        self.event(job, "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def _release(self, pods: Iterable[Unstructured]) -> None:
        """Takes the tracking finalizer away."""
        for pod in pods:
            pod = self.pods.get(pod.key) or pod
            if FINALIZER in pod.metadata.finalizers:
                kept = [name for name in pod.metadata.finalizers if name != FINALIZER]
                await self.writer.patch(kinds.PODS, pod, {"metadata": {"finalizers": kept or None}})

    async def _release_orphans(self, key: str) -> None:
        """Pods whose Job is gone need not wait to be counted."""
        namespace, _, name = key.partition("/")
        for pod in self.pods.in_namespace(namespace):
            if any(o.kind == "Job" and o.name == name for o in pod.metadata.owner_references):
                await self._release([pod])

    async def _report(self, key: str, counts: JobCounts, verdict: Verdict | None) -> None:
        job = self.jobs.get(key)
        if job is None:
            return
        now = format_time(self.clock.wall())
        before = is_true(job, "Suspended")
        status = status_of(job, counts, verdict, now)
        job = await self.writer.update_status(kinds.JOBS, job, status)
        if verdict is not None:
            kind, reason, message = verdict
            if kind == "Complete":
                self.event(job, "Completed", "Job completed")
            else:
                self.warn(job, reason, message)
        elif is_suspended(job) and not before:
            self.event(job, "Suspended", "Job suspended")
        elif before and not is_suspended(job):
            self.event(job, "Resumed", "Job resumed")

    async def _expire(self, job: Unstructured) -> float | None:
        """Deletes a finished Job after ttlSecondsAfterFinished; gives the seconds that are left."""
        ttl = job.raw["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        remaining = finished_at(job, self.clock.wall()) + float(ttl) - self.clock.wall()
        if remaining > 0:
            return remaining
        await self.writer.delete(kinds.JOBS, job)
        return None
