"""What the pods of a Job add up to, and what is to become of the Job, its status and its pods. Pure.

A finished pod counts exactly once, however often it is looked at and whoever deletes it. It carries a
finalizer until it has been counted:

    finished ──▶ its UID in status.uncountedTerminatedPods ──▶ finalizer gone ──▶ in the count, UID gone
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from moorage.api.resources import Unstructured
from moorage.api.times import parse_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.kinds import (
    is_finished,
    is_ready,
    is_terminating,
    is_true,
    phase,
    restarts,
    with_condition,
)
from moorage.embedded.controllers.ownership import generate_name, pod_from

Raw = dict[str, Any]

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_DEFAULT_BACKOFF_LIMIT = 6
Verdict = tuple[str, str, str]
"""Complete or Failed, with its reason and message."""


@dataclass(slots=True)
class JobCounts:
    """The pods of one Job."""

    active: list[Unstructured] = field(default_factory=list)
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    """Of all time, those that are not counted yet included."""
    failed: int = 0
    uncounted_succeeded: list[str] = field(default_factory=list)
    uncounted_failed: list[str] = field(default_factory=list)
    to_release: list[Unstructured] = field(default_factory=list)
    """Pods whose finalizer may go once the status is written."""
    indexes: set[int] = field(default_factory=set)
    """Completed indexes."""
    newly_failed: int = 0


def has_failed(pod: Unstructured) -> bool:
    return phase(pod) == "Failed" or (is_terminating(pod) and phase(pod) != "Succeeded")


def count(job: Unstructured, pods: Iterable[Unstructured], ignored: Collection[str] = ()) -> JobCounts:
    """`ignored` are UIDs of pods that the controller itself deleted: stopping them is no failure."""
    status = job.raw.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    was_succeeded, was_failed = set(uncounted.get("succeeded") or ()), set(uncounted.get("failed") or ())
    counts = JobCounts(
        succeeded=int(status.get("succeeded") or 0),
        failed=int(status.get("failed") or 0),
        indexes=parse_indexes(status.get("completedIndexes") or ""),
    )
    held = set()
    for pod in pods:
        if FINALIZER in pod.metadata.finalizers:
            held.add(pod.uid)
        if not is_finished(pod) and not is_terminating(pod):
            counts.active.append(pod)
            counts.ready += is_ready(pod)
            continue
        counts.terminating += is_terminating(pod) and not is_finished(pod)
        if FINALIZER not in pod.metadata.finalizers:
            continue
        counts.to_release.append(pod)
        if has_failed(pod) and pod.uid in ignored:
            continue
        if has_failed(pod):
            counts.newly_failed += pod.uid not in was_failed
            counts.uncounted_failed.append(pod.uid)
        elif is_indexed(job):
            index = index_of(pod)
            if index is not None:
                counts.indexes.add(index)
        else:
            counts.uncounted_succeeded.append(pod.uid)
    # Those that were waiting and have let go of their finalizer, or are gone, join the lasting count.
    counts.failed += len(was_failed - held) + len(counts.uncounted_failed)
    if is_indexed(job):
        counts.succeeded = len(counts.indexes)
    else:
        counts.succeeded += len(was_succeeded - held) + len(counts.uncounted_succeeded)
    return counts


def is_indexed(job: Unstructured) -> bool:
    return (job.raw.get("spec") or {}).get("completionMode") == "Indexed"


def index_of(pod: Unstructured) -> int | None:
    text = pod.annotations.get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def parse_indexes(text: str) -> set[int]:
    """`0-2,5` as numbers."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Numbers as `0-2,5`; two neighbours are written apart, as upstream does."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)


def missing_indexes(job: Unstructured, counts: JobCounts) -> list[int]:
    """Indexes that are neither completed nor being worked on, lowest first."""
    total = int((job.raw.get("spec") or {}).get("completions") or 0)
    taken = {index_of(pod) for pod in counts.active} | counts.indexes
    return [index for index in range(total) if index not in taken]


def is_over(job: Unstructured) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def is_suspended(job: Unstructured) -> bool:
    return bool(job.raw["spec"].get("suspend"))


def wanted_active(job: Unstructured, counts: JobCounts) -> int:
    """How many pods should run now."""
    spec = job.raw["spec"]
    parallelism = spec.get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    if spec.get("completions") is None:
        # A work queue: once one pod has succeeded, the others finish and none is added.
        return min(len(counts.active), parallelism) if counts.succeeded else parallelism
    return max(0, min(parallelism, int(spec["completions"]) - counts.succeeded))


def judge(job: Unstructured, counts: JobCounts, wall: float) -> Verdict | None:
    """Whether the Job is over, and how."""
    spec = job.raw["spec"]
    limit = spec.get("backoffLimit")
    limit = _DEFAULT_BACKOFF_LIMIT if limit is None else int(limit)
    if counts.failed > limit or _restarted_too_often(spec, counts, limit):
        return ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    remaining = seconds_remaining(job, wall)
    if remaining is not None and remaining <= 0 and not is_suspended(job):
        return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    if spec.get("completions") is None:
        done = counts.succeeded > 0 and not counts.active
    else:
        done = counts.succeeded >= int(spec["completions"])
    if done:
        return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _restarted_too_often(spec: Raw, counts: JobCounts, limit: int) -> bool:
    if ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    total = sum(restarts(pod) for pod in counts.active)
    return total > 0 if limit == 0 else total >= limit


def seconds_remaining(job: Unstructured | None, wall: float) -> float | None:
    """Until activeDeadlineSeconds are over; None without such a limit."""
    if job is None or is_suspended(job) or is_over(job):
        return None
    limit = job.raw["spec"].get("activeDeadlineSeconds")
    started = parse_time((job.raw.get("status") or {}).get("startTime"))
    return None if limit is None or started is None else started + float(limit) - wall


def finished_at(job: Unstructured, wall: float) -> float:
    for found in (job.raw.get("status") or {}).get("conditions") or ():
        if found.get("type") in ("Complete", "Failed") and found.get("status") == "True":
            return parse_time(found.get("lastTransitionTime")) or wall
    return wall


def status_of(job: Unstructured, counts: JobCounts, verdict: Verdict | None, now: str) -> Raw:
    """The Job's status; the counts exclude pods whose UIDs still wait in uncountedTerminatedPods."""
    before = job.raw.get("status") or {}
    status: Raw = {}
    if before.get("startTime") or not is_suspended(job):
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
    if is_suspended(job):
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
    wanted = "True" if is_suspended(job) else "False"
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
