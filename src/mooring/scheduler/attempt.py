"""One attempt to schedule one pod: what it has found so far, and how it ended."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import BoolArray, EveryRow, IntArray, Nodes
from mooring.framework.queued import QueuedPod
from mooring.framework.record import ERROR, SCHEDULED, UNSCHEDULABLE, DecisionRecord, NodeEpoch, RefusalCount
from mooring.framework.status import Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.evaluations import Evaluation
from mooring.runtime.profile import Profile
from mooring.runtime.scoring import ScoreBoard


class Outcome(enum.Enum):
    """How an attempt ended; the values are the results that records and metrics use."""

    SCHEDULED = SCHEDULED
    UNSCHEDULABLE = UNSCHEDULABLE
    ERROR = ERROR


@dataclass(slots=True)
class Attempt:
    """Carried through the cycle. Everything after `nodes` is filled in on the way."""

    info: QueuedPod
    profile: Profile
    nodes: Nodes
    """All nodes of the snapshot."""
    state: CycleState = field(default_factory=CycleState)
    every: EveryRow = field(init=False)
    _statuses: NodeStatuses | None = None
    _ok: BoolArray | None = None
    recalled: Evaluation | None = None
    """The evaluation that this attempt stands on; None when everything was evaluated afresh."""
    ranking: list[int] = field(default_factory=list)
    """The best rows, the winner first; empty when nothing was scored."""
    board: ScoreBoard | None = None
    node: str = ""
    """The chosen node."""
    evaluated: int = 0
    feasible: int = 0
    pre_filter_message: str = ""
    post_filter_message: str = ""
    victims: tuple[Pod, ...] = ()
    """Pods that PostFilter sends away."""
    walk: IntArray | None = None
    """Compatible mode: the rows of the candidates in the order in which they are looked at."""
    started: float = 0.0
    """When the cycle began."""
    narrowed_by: tuple[str, ...] = ()
    """PreFilter plugins that narrowed the nodes; rejectors when nothing fits."""

    def __post_init__(self) -> None:
        self.every = self.nodes.columns.every_row()

    @property
    def statuses(self) -> NodeStatuses:
        """Why nodes were refused; made when somebody asks, since memory may bring its own."""
        if self._statuses is None:
            self._statuses = NodeStatuses(self.nodes)
        return self._statuses

    @property
    def ok(self) -> BoolArray:
        """Row → still in play; in the end, feasible."""
        if self._ok is None:
            self._ok = self.every.alive.copy()
        return self._ok

    @property
    def pod(self) -> Pod:
        return self.info.pod

    def copy_recalled(self) -> None:
        """Stand on what is remembered, with copies: this attempt will refuse more."""
        if self.recalled is not None:
            self._statuses, self._ok = self.recalled.statuses.copy(), self.recalled.ok.copy()

    def share_recalled(self) -> None:
        """Stand on what is remembered as it is: nothing in this attempt refuses a node any more."""
        if self.recalled is not None:
            self._statuses, self._ok = self.recalled.statuses, self.recalled.ok

    def start_over(self) -> None:
        """Forget what memory said; the attempt goes on as if there were none."""
        self.recalled, self.evaluated = None, 0
        self.state, self._statuses, self._ok = CycleState(), None, None

    def refuse(self, rows: BoolArray, status: Status) -> None:
        """Take rows out of the game."""
        self.statuses.set_where(rows, status)
        np.logical_and(self.ok, ~rows, out=self.ok)

    def rejectors(self) -> tuple[frozenset[str], frozenset[str]]:
        """Who refused the pod: (by Unschedulable or Unresolvable, by Pending)."""
        refused, pending = self.statuses.rejectors()
        return refused | frozenset(self.narrowed_by), pending


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


def fill_record(record: DecisionRecord, attempt: Attempt, epoch: NodeEpoch) -> None:
    """Copy what the attempt found; small arrays only, names stay in the shared epoch."""
    record.total_nodes = len(attempt.nodes)
    record.evaluated_nodes = attempt.evaluated
    record.feasible_nodes = attempt.feasible
    record.pre_filter = attempt.pre_filter_message
    record.post_filter = attempt.post_filter_message
    record.node = attempt.node
    record.victims = tuple(victim.key for victim in attempt.victims)
    record.woken_by = attempt.info.woken_by
    record.woken_hint = attempt.info.woken_hint
    record.epoch = epoch
    record.refusals, record.reason_ids = _refusals(attempt)
    if attempt.board is not None and attempt.node:
        record.top = attempt.board.top(attempt.ranking)
        record.margin = attempt.board.margin(attempt.ranking)


Told = tuple[tuple[RefusalCount, ...], npt.NDArray[np.unsignedinteger[Any]] | None]


def _refusals(attempt: Attempt) -> Told:
    """The refusals and one small id per row; shared by attempts that stand on the same memory."""
    found, statuses = attempt.recalled, attempt.statuses
    if found is None or statuses is not found.statuses:
        return _told(statuses)
    if found.told is None:
        found.told = _told(statuses)
    return found.told


def _told(statuses: NodeStatuses) -> Told:
    verdicts = statuses.verdicts
    if len(verdicts) == 1:
        return (), None
    refusals = tuple(
        RefusalCount(verdict.plugin, verdict.code.label, verdict.reasons, statuses.counts[i])
        for i, verdict in enumerate(verdicts)
        if i
    )
    return refusals, statuses.ids.astype(np.uint8 if len(verdicts) < 256 else np.uint16)
