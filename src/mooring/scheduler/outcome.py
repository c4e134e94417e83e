"""How an attempt ended, and the decision record that is made of it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mooring.framework.record import (
    ERROR,
    SCHEDULED,
    UNSCHEDULABLE,
    DecisionRecord,
    Diagnosis,
    NodeEpoch,
    RefusalCount,
)
from mooring.framework.status import Status
from mooring.runtime.attempt import Attempt


class Outcome(enum.Enum):
    """How an attempt ended; the values are the results that records and metrics use."""

    SCHEDULED = SCHEDULED
    UNSCHEDULABLE = UNSCHEDULABLE
    ERROR = ERROR


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt, or its binding, ended without a bound pod."""

    outcome: Outcome
    message: str
    plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = None
    """None leaves the pod's nomination alone, "" clears it."""
    status: Status | None = None
    """The plugin's answer behind it, where a single one decided."""


def make_record(
    attempt: Attempt, wall: float, duration: float, epoch: Callable[[], NodeEpoch]
) -> DecisionRecord:
    """What the attempt found; small arrays only, names stay in the shared epoch."""
    info, meta = attempt.info, attempt.pod.metadata
    record = DecisionRecord(
        f"{meta.namespace}/{meta.name}", meta.uid, attempt.profile.name, info.attempts, wall
    )
    record.duration = duration
    record.node = attempt.node
    if not attempt.node:
        record.pre_filter = attempt.pre_filter_message
        record.post_filter = attempt.post_filter_message
        record.victims = tuple([victim.key for victim in attempt.victims])
    if info.woken_by:
        record.woken_by = info.woken_by
        record.woken_hint = info.woken_hint
    baseline, statuses = attempt.baseline, attempt.statuses
    if statuses is baseline.statuses or (statuses.is_lent and attempt.feasible == baseline.feasible):
        # Shared by all attempts that refuse nothing beyond what their baseline does, and did not break.
        if baseline.diagnosis is None:
            baseline.diagnosis = _diagnosis(attempt, epoch(), keep=True)
        record.diagnosis = baseline.diagnosis
    else:
        record.diagnosis = _diagnosis(attempt, epoch(), keep=statuses.is_lent)
    if attempt.board is not None and attempt.node and attempt.ranking is not None:
        record.top = attempt.board.top(attempt.ranking)
        record.margin = attempt.board.margin(attempt.ranking)
    return record


def _diagnosis(attempt: Attempt, epoch: NodeEpoch, keep: bool = False) -> Diagnosis:
    """What the attempt found out. `keep`: its statuses belong to a baseline, which changes; records do
    not."""
    statuses = attempt.statuses
    refusals: tuple[RefusalCount, ...] = ()
    ids: npt.NDArray[np.unsignedinteger[Any]] | None = None
    if len(statuses.verdicts) > 1:
        refusals = tuple(
            RefusalCount(verdict.plugin, verdict.code.label, verdict.reasons, statuses.counts[i])
            for i, verdict in enumerate(statuses.verdicts)
            if i
        )
        ids = statuses.ids.copy() if keep else statuses.ids
    return Diagnosis(len(attempt.nodes.rows), attempt.evaluated, attempt.feasible, refusals, ids, epoch)
