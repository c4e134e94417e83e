"""What the pods of a Job add up to. Pure.

A finished pod counts exactly once, however often it is looked at and whoever deletes it. It carries a
finalizer until it has been counted:

    finished ──▶ its UID in status.uncountedTerminatedPods ──▶ finalizer gone ──▶ in the count, UID gone
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from mooring.api.resources import Unstructured
from mooring.embedded.controllers.pod_states import is_finished, is_ready, is_terminating, phase

Raw = dict[str, Any]

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class Counts:
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


def count(job: Unstructured, pods: Iterable[Unstructured], ignored: Collection[str] = ()) -> Counts:
    """`ignored` are UIDs of pods that the controller itself deleted: stopping them is no failure."""
    status = job.raw.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    was_succeeded, was_failed = set(uncounted.get("succeeded") or ()), set(uncounted.get("failed") or ())
    counts = Counts(
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


def missing_indexes(job: Unstructured, counts: Counts) -> list[int]:
    """Indexes that are neither completed nor being worked on, lowest first."""
    total = int((job.raw.get("spec") or {}).get("completions") or 0)
    taken = {index_of(pod) for pod in counts.active} | counts.indexes
    return [index for index in range(total) if index not in taken]
