"""Chooses a node for a pod: PreFilter, Filter, extenders, PreScore and Score.

It follows schedulePod in pkg/scheduler/schedule_one.go. It reads the state of the cluster and changes
nothing. It suspends only while it waits for extenders.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from moorage.framework.points import FILTER, PRE_FILTER, PRE_SCORE, SCORE, FilterPlugin, PreScorePlugin
from moorage.framework.status import SUCCESS, Code, Status
from moorage.runtime.attempt import Attempt, Baseline
from moorage.runtime.pre_filtering import outside, run_pre_filter
from moorage.runtime.reuse.cache import NoReuse, leave_baseline
from moorage.runtime.score_board import Buffers, Ranker, ScoreBoard
from moorage.runtime.scoring import Scoring, TimedScoring, run_pre_score
from moorage.scheduler.extending import any_decides, ask_extenders, prioritize
from moorage.scheduler.failing import NO_NODES
from moorage.scheduler.sampling import NOT_EXAMINED, beside_nominated, sample, sample_size
from moorage.telemetry import logs

_log = logs.get(__name__)


class NodeChooser:
    """Chooses nodes. Between attempts it keeps the baselines and the start of the next search (compatible mode)."""

    def __init__(self, reuse: NoReuse | None = None) -> None:
        self.next_start = 0
        self.reuse = NoReuse() if reuse is None else reuse
        self.logs_scores = False
        """Whether the scores of all nodes are logged; then a baseline never decides alone."""
        self._buffers = Buffers()
        self._ranker = Ranker()

    def look_at_verbosity(self) -> None:
        """Find out whether scores are logged. The cycle calls it once a second; asking for every pod costs too much."""
        self.logs_scores = _log.enabled(10)

    async def choose(self, attempt: Attempt) -> Status:
        """Choose a node for the attempt.

        On success, `attempt.node` is set. A rejection means that no node fits, an Error that something failed.
        """
        baseline = attempt.baseline = self.reuse.find(attempt)
        if baseline.by_template and not self.logs_scores:
            status = self._decide(attempt, baseline)
            if status is not None:
                return status
        return await self._search(attempt)

    def _decide(self, attempt: Attempt, baseline: Baseline) -> Status | None:
        """Choose a node from the baseline without calling a plugin. Return None if plugins must be called."""
        services = attempt.profile.services
        if services.nominator.nodes() or (services.extenders and any_decides(attempt)):
            return None
        row = baseline.best_row(attempt)
        if row is None:
            return None
        attempt.evaluated, attempt.feasible = len(attempt.nodes.rows), baseline.feasible
        # Not copied, because this attempt rejects no more nodes.
        attempt.statuses, attempt.ok = baseline.statuses, baseline.ok
        if row < 0:
            return NO_FIT
        attempt.node = attempt.nodes.columns.node_names()[row]
        return SUCCESS

    async def _search(self, attempt: Attempt) -> Status:
        """Choose a node by calling the plugins that the baseline does not cover."""
        if not len(attempt.nodes.rows):
            return EMPTY_CLUSTER
        status = await self._find_feasible(attempt)
        if status is not SUCCESS:
            return status
        if attempt.statuses.is_lent:
            attempt.feasible = attempt.baseline.feasible  # no node was rejected besides those that the baseline rejects
        else:
            attempt.feasible = int(np.count_nonzero(attempt.ok))
        if attempt.feasible == 0:
            return NO_FIT
        if attempt.feasible == 1:
            attempt.node = attempt.nodes.columns.node_names()[int(np.argmax(attempt.ok))]
            return SUCCESS
        status = await self._score(attempt)
        if status is SUCCESS:
            attempt.baseline.scored(attempt)
        return status

    async def _find_feasible(self, attempt: Attempt) -> Status:
        """Run PreFilter, Filter and the filtering extenders. Rejections are stored in `attempt.statuses`."""
        baseline = attempt.baseline
        baseline.begin(attempt)
        if attempt.stopwatch is not None:
            attempt.state.stopwatch = attempt.stopwatch.begin(attempt.started, attempt.info.slow_attempts)
        plugins = baseline.remaining.pre_filters
        meter = attempt.profile.meter
        asked = meter.timed(plugins, PRE_FILTER) if meter is not None and meter.sampled else plugins
        pre = run_pre_filter(attempt.profile, attempt.state, attempt.pod, attempt.nodes, asked)
        if meter is not None:
            lap(attempt, PRE_FILTER, pre.status)
        attempt.narrowed_by = pre.narrowed_by
        if (pre.status is not SUCCESS or pre.node_names is not None) and not baseline.is_empty:
            leave_baseline(attempt, plugins, pre.status)
        if pre.status.code is Code.ERROR:
            return pre.status
        if not pre.status.is_success:
            attempt.pre_filter_message = pre.status.message
            attempt.refuse(attempt.ok.copy(), pre.status)
            return SUCCESS
        if pre.node_names is not None:
            self._narrow(attempt, pre.node_names)
        else:
            self.reuse.keep(attempt)
        if attempt.pod.status.nominated_node_name and await self._nominated_fits(attempt):
            lap(attempt, FILTER, SUCCESS)
            return SUCCESS
        status = self._filter(attempt)
        if meter is not None:
            lap(attempt, FILTER, status)
        if status.is_success and attempt.profile.services.extenders:
            status = await ask_extenders(attempt)
            attempt.waited()
        return status

    def _narrow(self, attempt: Attempt, names: frozenset[str]) -> None:
        attempt.refuse(attempt.ok & ~attempt.every.nodes.named(*names), outside(attempt.narrowed_by))

    async def _nominated_fits(self, attempt: Attempt) -> bool:
        """Try only the node to which the pod is nominated. If it fits, no other node is tried."""
        name = attempt.pod.nominated_node_name
        trial = Attempt(attempt.info, attempt.profile, attempt.nodes)
        trial.baseline, trial.state = attempt.baseline, attempt.state
        trial.forget_refusals()
        np.logical_and(attempt.ok, trial.every.nodes.named(name), out=trial.ok)
        if not trial.ok.any():
            return False
        trial.evaluated = 1
        status = self._filter_all(trial)
        if status.is_success:
            status = await ask_extenders(trial)
            attempt.waited()
        attempt.extenders = trial.extenders
        if not status.is_success or not trial.ok.any():
            return False
        attempt.evaluated = 1
        attempt.refuse(attempt.ok & ~trial.ok, NOT_EXAMINED)
        return True

    def _filter(self, attempt: Attempt) -> Status:
        if not attempt.baseline.is_empty:
            attempt.evaluated += len(attempt.nodes.rows)
            return self._filter_all(attempt)
        candidates = int(np.count_nonzero(attempt.ok))
        percentage = attempt.profile.percentage_of_nodes_to_score
        if percentage and candidates:
            wanted = sample_size(percentage, candidates)
            status, self.next_start = sample(attempt, wanted, self.next_start)
            return status
        attempt.evaluated += candidates
        return self._filter_all(attempt)

    def _filter_all(self, attempt: Attempt) -> Status:
        """Filter all rows that are still feasible."""
        if attempt.profile.services.nominator.nodes():
            status = beside_nominated(attempt, attempt.every.nodes, attempt.ok)
            if status is not SUCCESS:
                return status
        filters: Iterable[FilterPlugin] = attempt.baseline.remaining.filters
        meter = attempt.profile.meter
        if meter is not None and meter.sampled:
            filters = meter.timed(filters, FILTER)
        return attempt.baseline.filter(attempt, filters)

    async def _score(self, attempt: Attempt) -> Status:
        profile, baseline = attempt.profile, attempt.baseline
        self._buffers.reset(len(attempt.ok))
        scoring = Scoring(attempt.state, attempt.pod, attempt.every, attempt.ok, self._buffers)
        meter = profile.meter
        plugins: Iterable[PreScorePlugin] = baseline.remaining.pre_scores
        if meter is not None:
            meter.skip()
            if meter.sampled:
                plugins = meter.timed(plugins, PRE_SCORE)
                scoring = TimedScoring(meter, attempt.state, attempt.pod, attempt.every, attempt.ok, self._buffers)
        status = run_pre_score(plugins, attempt.state, attempt.pod, scoring.dense)
        if meter is not None:
            lap(attempt, PRE_SCORE, status)
        if status is not SUCCESS:
            return status
        board, status = baseline.score(scoring, self._buffers, attempt.feasible)
        if meter is not None:
            lap(attempt, SCORE, status)
        if status is not SUCCESS:
            return status
        if attempt.walk is not None:
            board.tie_break = np.zeros(len(board.totals), dtype=np.int64)
            board.tie_break[attempt.walk] = -np.arange(len(attempt.walk))
        if profile.services.extenders:
            await prioritize(attempt, board)
            attempt.waited()
        self._take_best(attempt, board)
        return SUCCESS

    def _take_best(self, attempt: Attempt, board: ScoreBoard) -> None:
        attempt.board = board
        ranking = attempt.ranking = board.ranking(self._ranker)
        attempt.node = attempt.nodes.columns.node_names()[int(ranking[0])]
        if self.logs_scores:
            _log_scores(attempt, board)


def lap(attempt: Attempt, point: str, status: Status) -> None:
    """Record the duration of an extension point that has finished."""
    meter = attempt.profile.meter
    if meter is not None:
        if status is SUCCESS:
            meter.lap(point)
        else:
            meter.lap(point, status.code.label)


NO_FIT = Status.unschedulable("no node fits")
EMPTY_CLUSTER = Status.unschedulable(NO_NODES)
"""In a cluster without nodes, no plugin is called."""


def _log_scores(attempt: Attempt, board: ScoreBoard) -> None:
    key = attempt.pod.key
    for node in board.every.dense(board.feasible):
        for column in board.columns:
            score = column.weighted(node.row)
            _log.info(10, "Plugin scored node for pod", pod=key, plugin=column.step.name, node=node.name, score=score)
        total = int(board.totals[node.row])
        _log.info(10, "Calculated node's final score for pod", pod=key, node=node.name, score=total)
