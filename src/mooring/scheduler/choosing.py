"""From a pod to a node: PreFilter, Filter, extenders, Score. Steps 5 to 13 of kube-scheduler's cycle.

Reads the state of the cluster and changes nothing. Suspends only at extenders.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mooring.framework.extension_points import FILTER, PRE_FILTER, PRE_SCORE, SCORE
from mooring.framework.points import FilterPlugin, PreScorePlugin
from mooring.framework.status import SUCCESS, Code, Status
from mooring.runtime.buffers import Buffers
from mooring.runtime.evaluations import Evaluation
from mooring.runtime.filtering_rows import filter_rows
from mooring.runtime.pre_filtering import outside, run_pre_filter
from mooring.runtime.ranking import Ranker
from mooring.runtime.score_board import ScoreBoard
from mooring.runtime.score_following import follow
from mooring.runtime.scoring import Scoring, run_pre_score, run_scores
from mooring.runtime.scoring_on import score_on_ground, score_recalled
from mooring.runtime.timing import TimedScoring
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.extending import ask_extenders, prioritize
from mooring.scheduler.recalling import Recaller, leave_memory, run_global_filters
from mooring.scheduler.sampling import NOT_EXAMINED, beside_nominated, sample, sample_size
from mooring.telemetry import logs

_log = logs.get(__name__)


class NodeChooser:
    """Keeps what outlives an attempt: evaluations by signature, and where the next search starts
    (compatible mode)."""

    def __init__(self, recaller: Recaller | None = None) -> None:
        self.next_start = 0
        self._recaller = recaller
        """None: nothing is remembered, every attempt is evaluated afresh."""
        self._warm_attempts = 0
        self._buffers = Buffers()
        self._ranker = Ranker()

    async def choose(self, attempt: Attempt) -> Status:
        """Success: `attempt.node` is chosen. A rejection: no node fits. Error: something broke."""
        status = self.remembered(attempt)
        return await self.search(attempt) if status is None else status

    def remembered(self, attempt: Attempt) -> Status | None:
        """The choice where memory has the whole answer. Otherwise None, and `search` goes on from what is
        remembered."""
        if self._recaller is None:
            return None
        found = self._recaller.recall(attempt)
        if found is None or not (found.is_complete or found.followers is not None):
            return None
        services = attempt.profile.services
        if services.extenders or services.nominator.nodes():
            return None
        # The record of every tenth pod tells the ten best nodes; for all of them that would cost more than
        # choosing.
        self._warm_attempts += 1
        if self._warm_attempts % 10 == 1:
            return self._remembered_in_full(attempt, found)
        attempt.state = found.state.child(asked=not found.is_complete)
        row = found.best() if found.is_complete else _followed(attempt, found)
        if row is None:
            found.followers = None
            return None
        attempt.evaluated, attempt.feasible = len(attempt.nodes.rows), found.feasible
        # As it is: nothing in this attempt refuses a node any more.
        attempt.statuses, attempt.ok = found.statuses, found.ok
        if row < 0:
            return NO_FIT
        attempt.node = attempt.nodes.columns.node_names()[row]
        return SUCCESS

    def _remembered_in_full(self, attempt: Attempt, found: Evaluation) -> Status | None:
        """The same with all scores. None: a choice by the longer way makes them known."""
        board = found.board() if found.is_complete and found.feasible > 1 else None
        if board is None:
            return None
        attempt.state = found.state.child(asked=False)
        attempt.evaluated, attempt.feasible = len(attempt.nodes.rows), found.feasible
        attempt.statuses, attempt.ok = found.statuses, found.ok
        self._take_best(attempt, board)
        return SUCCESS

    async def search(self, attempt: Attempt) -> Status:
        """The choice where plugins have to be asked."""
        status = await self._find_feasible(attempt)
        if status is not SUCCESS:
            return status
        base = attempt.recalled or attempt.ground
        if base is not None and attempt.statuses.is_lent:
            attempt.feasible = base.feasible  # nothing was refused beyond what is remembered
        else:
            attempt.feasible = int(np.count_nonzero(attempt.ok))
        if self._recaller is not None:
            self._recaller.remember(attempt)
        if attempt.feasible == 0:
            return NO_FIT
        if attempt.feasible == 1:
            attempt.node = attempt.nodes.columns.node_names()[int(np.argmax(attempt.ok))]
            return SUCCESS
        status = await self._score(attempt)
        found = attempt.recalled
        if found is not None and found.patience >= 0 and found.followers is None and status is SUCCESS:
            follow(found, attempt.state, attempt.pod, attempt.statuses)
        return status

    async def _find_feasible(self, attempt: Attempt) -> Status:
        """Everything up to the extenders; refusals end up in `attempt.statuses`."""
        found = attempt.recalled or attempt.ground
        plugins = attempt.profile.pre_filter
        if found is not None:
            attempt.stand_on(found)
            plugins = found.left.pre_filters
        else:
            attempt.begin()
        meter = attempt.profile.meter
        asked = meter.timed(plugins, PRE_FILTER) if meter is not None and meter.sampled else plugins
        pre = run_pre_filter(attempt.profile, attempt.state, attempt.pod, attempt.nodes, asked)
        if meter is not None:
            lap(attempt, PRE_FILTER, pre.status)
        attempt.narrowed_by = pre.narrowed_by
        if found is not None and (pre.status is not SUCCESS or pre.node_names is not None):
            # Rare: what is said about the pod as a whole goes before what memory says about nodes.
            leave_memory(attempt, plugins, pre.status)
        if pre.status.code is Code.ERROR:
            return pre.status
        if not pre.status.is_success:
            attempt.pre_filter_message = pre.status.message
            attempt.refuse(attempt.ok.copy(), pre.status)
            return SUCCESS
        if pre.node_names is not None:
            self._narrow(attempt, pre.node_names)
        if attempt.pod.status.nominated_node_name and await self._nominated_fits(attempt):
            lap(attempt, FILTER, SUCCESS)
            return SUCCESS
        status = self._filter(attempt)
        if meter is not None:
            lap(attempt, FILTER, status)
        if status.is_success and attempt.profile.services.extenders:
            return await ask_extenders(attempt)
        return status

    def _narrow(self, attempt: Attempt, names: frozenset[str]) -> None:
        attempt.refuse(attempt.ok & ~attempt.every.nodes.named(*names), outside(attempt.narrowed_by))

    async def _nominated_fits(self, attempt: Attempt) -> bool:
        """The node that the pod is nominated to is tried alone; if it fits nobody else is looked at."""
        name = attempt.pod.nominated_node_name
        trial = Attempt(attempt.info, attempt.profile, attempt.nodes)
        trial.begin()
        trial.state = attempt.state
        np.logical_and(attempt.ok, trial.every.nodes.named(name), out=trial.ok)
        if not trial.ok.any():
            return False
        trial.evaluated = 1
        status = self._filter_all(trial)
        if status.is_success:
            status = await ask_extenders(trial)
        if not status.is_success or not trial.ok.any():
            return False
        attempt.evaluated = 1
        attempt.refuse(attempt.ok & ~trial.ok, NOT_EXAMINED)
        return True

    def _filter(self, attempt: Attempt) -> Status:
        found = attempt.recalled or attempt.ground
        candidates = len(attempt.nodes.rows) if found is not None else int(np.count_nonzero(attempt.ok))
        percentage = attempt.profile.percentage_of_nodes_to_score
        if percentage and candidates and found is None:
            wanted = sample_size(percentage, candidates)
            status, self.next_start = sample(attempt, wanted, self.next_start)
            return status
        attempt.evaluated += candidates
        return self._filter_all(attempt)

    def _filter_all(self, attempt: Attempt) -> Status:
        """Every row that is in play."""
        status = beside_nominated(attempt, attempt.every.nodes, attempt.ok)
        if status is not SUCCESS:
            return status
        if attempt.recalled is not None:
            return run_global_filters(attempt, attempt.recalled)
        ground = attempt.ground
        plugins: Iterable[FilterPlugin] = attempt.profile.filter if ground is None else ground.left.filters
        meter = attempt.profile.meter
        if meter is not None and meter.sampled:
            plugins = meter.timed(plugins, FILTER)
        return filter_rows(plugins, attempt.state, attempt.pod, attempt.every, attempt.statuses, attempt.ok)

    async def _score(self, attempt: Attempt) -> Status:
        profile = attempt.profile
        self._buffers.reset(len(attempt.ok))
        scoring = Scoring(attempt.state, attempt.pod, attempt.every, attempt.ok, self._buffers)
        meter, ground, recalled = profile.meter, attempt.ground, attempt.recalled
        base = recalled or ground
        plugins: Iterable[PreScorePlugin] = profile.pre_score if base is None else base.left.pre_scores
        if meter is not None:
            meter.skip()
            if meter.sampled:
                plugins = meter.timed(plugins, PRE_SCORE)
                scoring = TimedScoring(
                    meter, attempt.state, attempt.pod, attempt.every, attempt.ok, self._buffers
                )
        status = run_pre_score(plugins, attempt.state, attempt.pod, scoring.dense)
        if meter is not None:
            lap(attempt, PRE_SCORE, status)
        if status is not SUCCESS:
            return status
        if recalled is not None:
            board, status = score_recalled(recalled, scoring, self._buffers, attempt.feasible)
        elif ground is not None:
            board, status = score_on_ground(ground, scoring, self._buffers, attempt.feasible)
        else:
            board, status = run_scores(profile, scoring)
        if meter is not None:
            lap(attempt, SCORE, status)
        if status is not SUCCESS:
            return status
        if attempt.walk is not None:
            board.tie_break = np.zeros(len(board.totals), dtype=np.int64)
            board.tie_break[attempt.walk] = -np.arange(len(attempt.walk))
        if profile.services.extenders:
            await prioritize(attempt, board)
        self._take_best(attempt, board)
        return SUCCESS

    def _take_best(self, attempt: Attempt, board: ScoreBoard) -> None:
        attempt.board = board
        ranking = attempt.ranking = board.ranking(self._ranker)
        attempt.node = attempt.nodes.columns.node_names()[ranking[0]]
        if _log.enabled(10):
            _log_scores(attempt, board)


def _followed(attempt: Attempt, found: Evaluation) -> int | None:
    """The choice where everybody who is not remembered follows its scores; None when they have to be asked
    after all."""
    pre_filters, followers = found.left.pre_filters, found.followers
    if pre_filters:
        pre = run_pre_filter(attempt.profile, attempt.state, attempt.pod, attempt.nodes, pre_filters)
        if pre.status is not SUCCESS or pre.node_names is not None:
            return None
    skipped = attempt.state.skip_filter
    for plugin in found.left.filters:
        if plugin.name not in skipped:
            return None
    return followers.best(found) if followers is not None else None


def lap(attempt: Attempt, point: str, status: Status) -> None:
    """Tell the metrics that an extension point is over."""
    meter = attempt.profile.meter
    if meter is not None:
        if status is SUCCESS:
            meter.lap(point)
        else:
            meter.lap(point, status.code.label)


NO_FIT = Status.unschedulable("no node fits")


def _log_scores(attempt: Attempt, board: ScoreBoard) -> None:
    key = attempt.pod.key
    for node in board.every.dense(board.feasible):
        for column in board.columns:
            score = column.weighted(node.row)
            _log.info(
                10,
                "Plugin scored node for pod",
                pod=key,
                plugin=column.step.name,
                node=node.name,
                score=score,
            )
        total = int(board.totals[node.row])
        _log.info(10, "Calculated node's final score for pod", pod=key, node=node.name, score=total)
