"""One attempt to schedule one pod: what it has found so far, and how it ended."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import BoolArray, EveryRow, IntArray, Nodes
from mooring.framework.queued import QueuedPod
from mooring.framework.record import (
    ERROR,
    SCHEDULED,
    UNSCHEDULABLE,
    DecisionRecord,
    NodeEpoch,
    RefusalCount,
    Survey,
)
from mooring.framework.status import Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.evaluations import Evaluation
from mooring.runtime.ground import Ground
from mooring.runtime.profile import Profile
from mooring.runtime.score_board import ScoreBoard

NO_STATE = CycleState()
"""In the place of a state before anything has begun; nobody writes it."""
NO_STATUSES = NodeStatuses.empty()
"""The same for refusals."""


class Outcome(enum.Enum):
    """How an attempt ended; the values are the results that records and metrics use."""

    SCHEDULED = SCHEDULED
    UNSCHEDULABLE = UNSCHEDULABLE
    ERROR = ERROR


class Attempt:
    """Carried through the cycle and filled in on the way. What has its default costs nothing to make."""

    state: CycleState = NO_STATE
    statuses: NodeStatuses = NO_STATUSES
    """Why nodes were refused."""
    recalled: Evaluation | None = None
    """The evaluation that this attempt stands on, if any."""
    ground: Ground | None = None
    """What it stands on otherwise; None for both when every plugin is asked about every node."""
    ranking: list[int] | None = None
    """The best rows, the winner first; None when nothing was scored."""
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
    narrowed_by: tuple[str, ...] = ()
    """PreFilter plugins that narrowed the nodes; rejectors when nothing fits."""

    def __init__(
        self,
        info: QueuedPod,
        profile: Profile,
        nodes: Nodes,
        started: float = 0.0,
        every: EveryRow | None = None,
    ) -> None:
        self.info = info
        self.profile = profile
        self.nodes = nodes
        """All nodes of the snapshot."""
        self.pod = info.pod
        """As it was when it was popped."""
        self.started = started
        """When the cycle began."""
        self.every: EveryRow = nodes.columns.every_row() if every is None else every
        self.ok: BoolArray = self.every.alive
        """Row → still in play; in the end, feasible."""

    def begin(self) -> None:
        """Start from nothing."""
        self.state = CycleState()
        self.statuses, self.ok = NodeStatuses(self.nodes), self.every.alive.copy()

    def stand_on(self, found: Evaluation | Ground) -> None:
        """Start from what is remembered; what this attempt refuses beyond is its own."""
        self.state = found.state.child()
        self.statuses, self.ok = found.statuses.copy(), found.ok.copy()

    def leave_memory(self) -> None:
        """Go on as if there were no memory of any node; what PreFilter prepared stays."""
        self.recalled = self.ground = None
        self.statuses, self.ok = NodeStatuses(self.nodes), self.every.alive.copy()

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
    found, statuses = attempt.recalled or attempt.ground, attempt.statuses
    if found is None:
        record.survey = _survey(attempt, epoch())
    elif statuses is found.statuses or (statuses.is_lent and attempt.feasible == found.feasible):
        # Shared by all attempts that refuse nothing beyond what they stand on, and did not break.
        if found.told is None:
            found.told = _survey(attempt, epoch(), keep=True)
        record.survey = found.told
    else:
        record.survey = _survey(attempt, epoch(), keep=statuses.is_lent)
    if attempt.board is not None and attempt.node and attempt.ranking is not None:
        record.top = attempt.board.top(attempt.ranking)
        record.margin = attempt.board.margin(attempt.ranking)
    return record


def _survey(attempt: Attempt, epoch: NodeEpoch, keep: bool = False) -> Survey:
    """What the attempt saw. `keep`: its statuses belong to memory, which changes; records do not."""
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
    return Survey(len(attempt.nodes.rows), attempt.evaluated, attempt.feasible, refusals, ids, epoch)
