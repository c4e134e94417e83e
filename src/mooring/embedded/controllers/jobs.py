"""Jobs: pods until enough of them have succeeded, or too many have failed.

Left out: podFailurePolicy, successPolicy and limits per index.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mooring.api.resources import Unstructured
from mooring.api.times import format_time, parse_time
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.controller import Controller, World, own_key
from mooring.embedded.controllers.job_counts import (
    FINALIZER,
    INDEX,
    Counts,
    count,
    format_indexes,
    is_indexed,
    missing_indexes,
)
from mooring.embedded.controllers.pod_states import (
    is_finished,
    is_terminating,
    is_true,
    restarts,
    with_condition,
)
from mooring.embedded.controllers.replicas import BURST
from mooring.embedded.controllers.templates import generate_name, pod_from

Raw = dict[str, Any]

PAUSES = (10.0, 600.0)
"""The first and the longest pause before a failed pod is replaced, in seconds."""
_DEFAULT_BACKOFF_LIMIT = 6
Verdict = tuple[str, str, str]
"""Complete or Failed, with its reason and message."""


class Jobs(Controller):
    """The controller of Jobs."""

    name = "job-controller"

    def __init__(self, world: World) -> None:
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
        if verdict is not None or _is_suspended(job):
            await self._stop(job, counts)
        else:
            again = await self._scale(job, counts)
        # The end is told only when every pod is in the counts that stay.
        uncounted = bool(counts.uncounted_succeeded or counts.uncounted_failed)
        await self._report(job.key, counts, None if uncounted else verdict)
        await self._release(counts.to_release)
        if uncounted:
            return 0.0
        deadline = _seconds_left(self.jobs.get(key), wall)
        return min((t for t in (again, deadline) if t is not None), default=None)

    def _note_failures(self, job: Unstructured, counts: Counts) -> None:
        failures, _ = self._failures.get(job.uid, (0, 0.0))
        if counts.newly_failed:
            self._failures[job.uid] = (failures + counts.newly_failed, self.clock.now())
        elif counts.uncounted_succeeded:
            self._failures.pop(job.uid, None)

    async def _scale(self, job: Unstructured, counts: Counts) -> float | None:
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
        return last + min(PAUSES[0] * 2.0 ** min(failures - 1, 20), PAUSES[1]) - self.clock.now()

    async def _create(self, job: Unstructured, counts: Counts, number: int) -> None:
        indexes: list[int | None] = [None] * number
        if is_indexed(job):
            indexes = list(missing_indexes(job, counts)[:number])
        for index in indexes:
            pod = await self.writer.create(kinds.PODS, pod_for(job, index))
            counts.active.append(pod)
            self.event(job, "SuccessfulCreate", f"Created pod: {pod.name}")

    async def _stop(self, job: Unstructured, counts: Counts) -> None:
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

    async def _report(self, key: str, counts: Counts, verdict: Verdict | None) -> None:
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
        elif _is_suspended(job) and not before:
            self.event(job, "Suspended", "Job suspended")
        elif before and not _is_suspended(job):
            self.event(job, "Resumed", "Job resumed")

    async def _expire(self, job: Unstructured) -> float | None:
        """Deletes a finished Job after ttlSecondsAfterFinished; gives the seconds that are left."""
        ttl = job.raw["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        left = _finished_at(job, self.clock.wall()) + float(ttl) - self.clock.wall()
        if left > 0:
            return left
        await self.writer.delete(kinds.JOBS, job)
        return None


def is_over(job: Unstructured) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _is_suspended(job: Unstructured) -> bool:
    return bool(job.raw["spec"].get("suspend"))


def wanted_active(job: Unstructured, counts: Counts) -> int:
    """How many pods should run now."""
    spec = job.raw["spec"]
    parallelism = spec.get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    if spec.get("completions") is None:
        # A work queue: once one pod has succeeded, the others finish and none is added.
        return min(len(counts.active), parallelism) if counts.succeeded else parallelism
    return max(0, min(parallelism, int(spec["completions"]) - counts.succeeded))


def judge(job: Unstructured, counts: Counts, wall: float) -> Verdict | None:
    """Whether the Job is over, and how."""
    spec = job.raw["spec"]
    limit = spec.get("backoffLimit")
    limit = _DEFAULT_BACKOFF_LIMIT if limit is None else int(limit)
    if counts.failed > limit or _restarted_too_often(spec, counts, limit):
        return ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = _seconds_left(job, wall)
    if left is not None and left <= 0 and not _is_suspended(job):
        return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    if spec.get("completions") is None:
        done = counts.succeeded > 0 and not counts.active
    else:
        done = counts.succeeded >= int(spec["completions"])
    if done:
        return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _restarted_too_often(spec: Raw, counts: Counts, limit: int) -> bool:
    if ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    total = sum(restarts(pod) for pod in counts.active)
    return total > 0 if limit == 0 else total >= limit


def _seconds_left(job: Unstructured | None, wall: float) -> float | None:
    """Until activeDeadlineSeconds are over; None without such a limit."""
    if job is None or _is_suspended(job) or is_over(job):
        return None
    limit = job.raw["spec"].get("activeDeadlineSeconds")
    started = parse_time((job.raw.get("status") or {}).get("startTime"))
    return None if limit is None or started is None else started + float(limit) - wall


def _finished_at(job: Unstructured, wall: float) -> float:
    for found in (job.raw.get("status") or {}).get("conditions") or ():
        if found.get("type") in ("Complete", "Failed") and found.get("status") == "True":
            return parse_time(found.get("lastTransitionTime")) or wall
    return wall


def status_of(job: Unstructured, counts: Counts, verdict: Verdict | None, now: str) -> Raw:
    """The Job's status; the counts exclude pods whose UIDs still wait in uncountedTerminatedPods."""
    before = job.raw.get("status") or {}
    status: Raw = {}
    if before.get("startTime") or not _is_suspended(job):
        status["startTime"] = before.get("startTime") or now
    succeeded = counts.succeeded - len(counts.uncounted_succeeded)
    numbers = {
        "active": len(counts.active),
        "ready": counts.ready if counts.active else 0,
        "terminating": counts.terminating,
        "succeeded": succeeded,
        "failed": counts.failed - len(counts.uncounted_failed),
    }
    status.update({name: value for name, value in numbers.items() if value})
    uncounted = {"succeeded": sorted(counts.uncounted_succeeded), "failed": sorted(counts.uncounted_failed)}
    status["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
    if counts.indexes:
        status["completedIndexes"] = format_indexes(counts.indexes)
    conditions = _conditions(job, verdict, now)
    if conditions:
        status["conditions"] = conditions
    if verdict is not None and verdict[0] == "Complete":
        status["completionTime"] = now
    if _is_suspended(job):
        status.pop("startTime", None)
    return status


def _conditions(job: Unstructured, verdict: Verdict | None, now: str) -> list[Raw]:
    conditions: list[Raw] = list((job.raw.get("status") or {}).get("conditions") or ())
    if verdict is not None:
        kind, reason, message = verdict
        early = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        for name in (early, kind):
            new = {"type": name, "status": "True", "reason": reason, "message": message, "lastProbeTime": now}
            conditions = with_condition(conditions, new, now)
        return conditions
    known = next((c for c in conditions if c.get("type") == "Suspended"), None)
    wanted = "True" if _is_suspended(job) else "False"
    if (known is None and wanted == "True") or (known is not None and known.get("status") != wanted):
        word = "Suspended" if wanted == "True" else "Resumed"
        new = {"type": "Suspended", "status": wanted, "reason": f"Job{word}", "lastProbeTime": now}
        conditions = with_condition(conditions, {**new, "message": f"Job {word.lower()}"}, now)
    return conditions


def pod_for(job: Unstructured, index: int | None) -> Raw:
    """A pod of the Job; with an index, one that knows it."""
    labels = {
        "batch.kubernetes.io/controller-uid": job.uid,
        "batch.kubernetes.io/job-name": job.name,
        "controller-uid": job.uid,
        "job-name": job.name,
    }
    annotations: dict[str, str] = {}
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
    template = job.raw["spec"].get("template") or {}
    raw = pod_from(template, kinds.JOBS, job, labels=labels, annotations=annotations)
    raw["metadata"]["finalizers"] = [*(raw["metadata"].get("finalizers") or ()), FINALIZER]
    spec = {**raw["spec"]}
    spec.setdefault("restartPolicy", "Never")
    if index is not None:
        raw["metadata"]["generateName"] = generate_name(f"{job.name}-{index}")
        spec["hostname"] = f"{job.name}-{index}"
        spec["containers"] = [_with_index(c, index) for c in spec.get("containers") or ()]
    return {**raw, "spec": spec}


def _with_index(container: Raw, index: int) -> Raw:
    variable = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
    others = [e for e in container.get("env") or () if e.get("name") != variable["name"]]
    return {**container, "env": [*others, variable]}
