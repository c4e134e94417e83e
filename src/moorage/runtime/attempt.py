"""One attempt to schedule one pod, and the baseline that it starts from.

A baseline is what is known before the first plugin runs: the plugins that remain to be called, the cycle state of the
others, the rows that they leave, and the sum of their scores. There are three:

    NothingKnown       every plugin is called for every node
    NodeSetBaseline    known per node set: results of plugins that depend on nodes only
    TemplateBaseline   known per template: results of plugins per row for the last pod like this one

The latter two are in runtime/reuse. All lead to the same decision; tests/runtime/reuse compares them in random
clusters.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod
from moorage.framework.nodes import BoolArray, EveryRow, IntArray, Nodes
from moorage.framework.points import FilterPlugin, PreFilterPlugin, PreScorePlugin
from moorage.framework.status import Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.filtering import filter_rows
from moorage.runtime.profile import Profile
from moorage.runtime.record import Diagnosis, ExtenderVerdict
from moorage.runtime.score_board import Buffers, ScoreBoard, ScoreStep
from moorage.runtime.scoring import Scoring, add_scores
from moorage.runtime.stopwatch import AttemptStopwatch
from moorage.runtime.top_scores import KeptTop

_NO_ROWS: BoolArray = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class RemainingPlugins:
    """The plugins that a baseline does not answer for, in configured order."""

    pre_filters: tuple[PreFilterPlugin, ...] = ()
    filters: tuple[FilterPlugin, ...] = ()
    pre_scores: tuple[PreScorePlugin, ...] = ()
    scores: tuple[ScoreStep, ...] = ()

    @classmethod
    def of(cls, profile: Profile, known: Collection[str] = (), late: Collection[str] = ()) -> RemainingPlugins:
        """Return all plugins but the known ones; the filters in `late` are called again."""
        return cls(
            tuple(p for p in profile.pre_filter if p.name not in known),
            tuple(p for p in profile.filter if p.name not in known or p.name in late),
            tuple(p for p in profile.pre_score if p.name not in known),
            tuple(step for step in profile.score_steps if step.name not in known),
        )

    def __bool__(self) -> bool:
        return bool(self.filters or self.pre_filters or self.pre_scores or self.scores)


class Baseline(abc.ABC):
    """The starting point of an attempt. Attempts share its contents: they read them and copy what they change."""

    is_empty: ClassVar[bool] = False
    """Whether nothing is known."""
    by_template: ClassVar[bool] = False
    """Whether it was kept for the last pod with the same signature."""

    remaining: RemainingPlugins
    state: CycleState
    """PreFilter and PreScore results of the plugins that it answers for; never written again."""
    statuses: NodeStatuses
    """Whom these plugins refuse, and why."""
    ok: BoolArray
    """Rows that none of them refuses."""
    feasible: int
    """Number of these rows."""
    diagnosis: Diagnosis | None
    """What records say of the nodes, once an attempt that refused nothing more was recorded."""

    def begin(self, attempt: Attempt) -> None:
        """Give the attempt its own state, statuses and mask where it changes them."""
        attempt.state = self.state.child()
        attempt.statuses, attempt.ok = self.statuses.copy(), self.ok.copy()

    def best_row(self, attempt: Attempt) -> int | None:
        """Return the row that wins without scoring any node again, the first in snapshot order among equals; -1 if no
        node fits. Sets `attempt.state`. None means that the remaining plugins must be called."""
        return None

    def top(self) -> KeptTop | None:
        """Return the best rows with their scores, for the record of an attempt that `best_row` has decided."""
        return None

    def filter(self, attempt: Attempt, filters: Iterable[FilterPlugin]) -> Status:
        """Run the remaining filters, which the caller may have wrapped for timing, on every row in play."""
        return filter_rows(filters, attempt.state, attempt.pod, attempt.every, attempt.statuses, attempt.ok)

    @abc.abstractmethod
    def score(self, scoring: Scoring, buffers: Buffers, feasible: int) -> tuple[ScoreBoard, Status]:
        """Return the scores of all plugins after PreScore, for this number of feasible rows."""

    def scored(self, attempt: Attempt) -> None:
        """Record that scores on top of this baseline decided the attempt."""
        return


class NothingKnown(Baseline):
    """Every plugin of a profile remains to be called."""

    is_empty = True

    def __init__(self, profile: Profile | None = None) -> None:
        self.remaining = RemainingPlugins() if profile is None else RemainingPlugins.of(profile)
        self.state = CycleState()
        self.statuses = NodeStatuses.empty()
        self.ok = _NO_ROWS
        self.feasible = 0
        self.diagnosis = None

    def begin(self, attempt: Attempt) -> None:
        attempt.state = CycleState()
        attempt.forget_refusals()

    def score(self, scoring: Scoring, buffers: Buffers, feasible: int) -> tuple[ScoreBoard, Status]:
        board = ScoreBoard(scoring.every, scoring.feasible, scoring.zeros())
        if not self.remaining.scores:
            board.totals += 1  # every node is as good as any other
        return board, add_scores(board, scoring, self.remaining.scores)


class Attempt:
    """Carried through the cycle and filled in on the way. Fields with a default cost nothing to create."""

    state: CycleState = CycleState()
    statuses: NodeStatuses = NodeStatuses.empty()
    """Why nodes were refused."""
    baseline: Baseline = NothingKnown()
    ranking: IntArray | None = None
    """The best rows, the winner first; None when nothing was scored."""
    board: ScoreBoard | None = None
    node: str = ""
    """The chosen node."""
    evaluated: int = 0
    feasible: int = 0
    pre_filter_message: str = ""
    post_filter_message: str = ""
    victims: tuple[Pod, ...] = ()
    """Pods that PostFilter deletes."""
    extenders: tuple[ExtenderVerdict, ...] = ()
    """The verdicts of the extenders that were called."""
    walk: IntArray | None = None
    """Compatible mode: the rows of the candidates in the order in which they are evaluated."""
    narrowed_by: tuple[str, ...] = ()
    """PreFilter plugins that narrowed the nodes; rejectors when nothing fits."""
    stopwatch: AttemptStopwatch | None = None
    """Ends the attempt if it takes too long; None in questions, which may take their time."""

    def __init__(
        self, info: QueuedPod, profile: Profile, nodes: Nodes, started: float = 0.0, every: EveryRow | None = None
    ) -> None:
        self.info = info
        self.profile = profile
        self.nodes = nodes
        """All nodes of the snapshot."""
        self.pod = info.pod
        """The pod as it was popped."""
        self.started = started
        """When the cycle began."""
        self.every: EveryRow = nodes.columns.every_row() if every is None else every
        self.ok: BoolArray = self.every.alive
        """Row → still in play; in the end, feasible."""

    def forget_refusals(self) -> None:
        """Put every node in play again; the results of PreFilter stay."""
        self.statuses, self.ok = NodeStatuses(self.nodes), self.every.alive.copy()

    def waited(self) -> None:
        """Leave the time since the last plugin call out of the time that the attempt may take."""
        if self.stopwatch is not None:
            self.stopwatch.wait()

    def refuse(self, rows: BoolArray, status: Status) -> None:
        """Take rows out of play."""
        self.statuses.set_where(rows, status)
        np.logical_and(self.ok, ~rows, out=self.ok)

    def rejectors(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the plugins that rejected the pod: (with Unschedulable or Unresolvable, with Pending)."""
        refused, pending = self.statuses.rejectors()
        return refused | frozenset(self.narrowed_by), pending
