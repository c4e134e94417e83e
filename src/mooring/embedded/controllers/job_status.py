"""What is to become of a Job, its status and its pods. Pure."""

from __future__ import annotations

from typing import Any

from mooring.api.resources import Unstructured
from mooring.api.times import parse_time
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.job_counts import FINALIZER, INDEX, Counts, format_indexes
from mooring.embedded.controllers.pod_states import is_true, restarts, with_condition
from mooring.embedded.controllers.templates import generate_name, pod_from

Raw = dict[str, Any]

_DEFAULT_BACKOFF_LIMIT = 6
Verdict = tuple[str, str, str]
"""Complete or Failed, with its reason and message."""


def is_over(job: Unstructured) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def is_suspended(job: Unstructured) -> bool:
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
    left = seconds_left(job, wall)
    if left is not None and left <= 0 and not is_suspended(job):
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


def seconds_left(job: Unstructured | None, wall: float) -> float | None:
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


def status_of(job: Unstructured, counts: Counts, verdict: Verdict | None, now: str) -> Raw:
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
