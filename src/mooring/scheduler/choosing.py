"""From a pod to a node: PreFilter, Filter, extenders, Score. Steps 5 to 13 of kube-scheduler's cycle.

Reads the state of the cluster and changes nothing. Suspends only at extenders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from mooring.framework.extending import Extender, ExtenderError
from mooring.framework.nodes import BoolArray, Nodes
from mooring.framework.points import FilterPlugin, PreFilterPlugin, PreScorePlugin
from mooring.framework.status import SUCCESS, Code, Status
from mooring.runtime.buffers import Buffers
from mooring.runtime.dry_run import PodTrial, rivals
from mooring.runtime.evaluations import score_recalled
from mooring.runtime.filtering import outside, rotate, run_filters, run_pre_filter, sample_size
from mooring.runtime.filtering_rows import filter_rows
from mooring.runtime.profile import EXTENDER
from mooring.runtime.scoring import Ranker, ScoreBoard, Scoring, run_pre_score, run_scores
from mooring.runtime.timing import TimedScoring
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.recalling import Recaller, run_global_filters
from mooring.telemetry import logs
from mooring.telemetry.metrics import FILTER, PRE_FILTER, PRE_SCORE, SCORE

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
        if self._recaller is not None and self._recaller.recall(attempt):
            if self._decides_alone(attempt):
                return self._take_best(attempt)
            attempt.copy_recalled()
        status = await self._find_feasible(attempt)
        if not status.is_success:
            return status
        attempt.feasible = int(np.count_nonzero(attempt.ok))
        if self._recaller is not None:
            self._recaller.remember(attempt)
        if attempt.feasible == 0:
            return NO_FIT
        if attempt.feasible == 1:
            attempt.node = attempt.nodes.columns.node_names()[int(np.argmax(attempt.ok))]
            return SUCCESS
        return await self._score(attempt)

    async def _find_feasible(self, attempt: Attempt) -> Status:
        """Everything up to the extenders; refusals end up in `attempt.statuses`."""
        if attempt.recalled is not None:
            status = self._filter_recalled(attempt)
            if status is not None:
                return await self._extend(attempt) if status.is_success else status
            attempt.start_over()
        return await self._find_afresh(attempt)

    def _filter_recalled(self, attempt: Attempt) -> Status | None:
        """Run what is not remembered, on top of what is. None: this pod needs the long way after all."""
        plan = attempt.recalled.plan if attempt.recalled else None
        if plan is None:
            return None
        pre = run_pre_filter(
            attempt.profile, attempt.state, attempt.pod, attempt.nodes, plan.global_pre_filters
        )
        lap(attempt, PRE_FILTER, pre.status)
        if not pre.status.is_success or pre.node_names is not None:
            return None
        attempt.evaluated += len(attempt.nodes)
        status = self._beside_nominated(attempt, attempt.every.nodes, attempt.ok)
        status = run_global_filters(attempt) if status.is_success else status
        lap(attempt, FILTER, status)
        return status

    def _decides_alone(self, attempt: Attempt) -> bool:
        """Whether memory has the whole answer. Every tenth pod goes the longer way all the same: its record
        tells the ten best nodes, which for all of them would cost more than choosing."""
        found, services = attempt.recalled, attempt.profile.services
        if found is None or services.extenders or services.nominator.nodes() or not found.is_complete:
            return False
        self._warm_attempts += 1
        return self._warm_attempts % 10 != 1

    def _take_best(self, attempt: Attempt) -> Status:
        found = attempt.recalled
        assert found is not None
        attempt.evaluated, attempt.feasible = len(attempt.nodes), found.feasible
        attempt.share_recalled()
        row = found.best() if found.feasible else -1
        if row < 0:
            return NO_FIT
        attempt.node = attempt.nodes.columns.node_names()[row]
        return SUCCESS

    async def _find_afresh(self, attempt: Attempt) -> Status:
        meter = attempt.profile.meter
        plugins: Iterable[PreFilterPlugin] = attempt.profile.pre_filter
        if meter is not None and meter.sampled:
            plugins = meter.timed(plugins, "PreFilter")
        found = run_pre_filter(attempt.profile, attempt.state, attempt.pod, attempt.nodes, plugins)
        lap(attempt, PRE_FILTER, found.status)
        attempt.narrowed_by = found.narrowed_by
        if found.status.code is Code.ERROR:
            return found.status
        if not found.status.is_success:
            attempt.pre_filter_message = found.status.message
            attempt.refuse(attempt.ok.copy(), found.status)
            return SUCCESS
        if found.node_names is not None:
            self._narrow(attempt, found.node_names)
        if await self._nominated_fits(attempt):
            lap(attempt, FILTER, SUCCESS)
            return SUCCESS
        status = self._filter(attempt)
        lap(attempt, FILTER, status)
        return await self._extend(attempt) if status.is_success else status

    def _narrow(self, attempt: Attempt, names: frozenset[str]) -> None:
        attempt.refuse(attempt.ok & ~attempt.every.nodes.named(*names), outside(attempt.narrowed_by))

    async def _nominated_fits(self, attempt: Attempt) -> bool:
        """The node that the pod is nominated to is tried alone; if it fits nobody else is looked at."""
        name = attempt.pod.nominated_node_name
        if not name:
            return False
        trial = Attempt(attempt.info, attempt.profile, attempt.nodes, attempt.state)
        np.logical_and(attempt.ok, trial.every.nodes.named(name), out=trial.ok)
        if not trial.ok.any():
            return False
        trial.evaluated = 1
        status = self._filter_all(trial)
        if status.is_success:
            status = await self._extend(trial)
        if not status.is_success or not trial.ok.any():
            return False
        attempt.evaluated = 1
        attempt.refuse(attempt.ok & ~trial.ok, NOT_EXAMINED)
        return True

    def _filter(self, attempt: Attempt) -> Status:
        percentage, candidates = (
            attempt.profile.percentage_of_nodes_to_score,
            int(np.count_nonzero(attempt.ok)),
        )
        if percentage and candidates:
            wanted = sample_size(percentage, candidates)
            return self._sample(attempt, attempt.every.dense(attempt.ok), wanted)
        attempt.evaluated += candidates
        return self._filter_all(attempt)

    def _filter_all(self, attempt: Attempt) -> Status:
        """Every row that is in play."""
        status = self._beside_nominated(attempt, attempt.every.nodes, attempt.ok)
        if not status.is_success:
            return status
        meter = attempt.profile.meter
        plugins: Iterable[FilterPlugin] = attempt.profile.filter
        if meter is not None and meter.sampled:
            plugins = meter.timed(plugins, "Filter")
        return filter_rows(plugins, attempt.state, attempt.pod, attempt.every, attempt.statuses, attempt.ok)

    def _sample(self, attempt: Attempt, candidates: Nodes, wanted: int) -> Status:
        """Walk from `next_start` until more than `wanted` nodes fit; that one more is where the next attempt
        starts. A block is never larger than what is still missing, so no node beyond it is looked at. Among
        equals the first one met wins."""
        rows = rotate(candidates.rows, self.next_start % len(candidates))
        attempt.walk = rows
        attempt.ok[:] = False
        seen, kept = 0, 0
        while seen < len(rows) and kept <= wanted:
            block = Nodes(candidates.columns, rows[seen : seen + wanted + 1 - kept])
            fitting, status = self._filter_block(attempt, block)
            if not status.is_success:
                return status
            attempt.ok[fitting.rows] = True
            seen += len(block)
            kept += len(fitting)
        if kept > wanted:
            # The block ended with the node that was one too many.
            seen -= 1
            attempt.ok[rows[seen]] = False
        attempt.statuses.set_rows(rows[seen:], NOT_EXAMINED)
        attempt.evaluated += seen
        self.next_start = (self.next_start + seen) % len(attempt.nodes)
        return SUCCESS

    def _filter_block(self, attempt: Attempt, nodes: Nodes) -> tuple[Nodes, Status]:
        """Both passes: beside nominated pods where there are any, then as the nodes are."""
        ok = np.ones(len(nodes), dtype=np.bool_)
        status = self._beside_nominated(attempt, nodes, ok)
        if not status.is_success:
            return nodes, status
        left = nodes if ok.all() else nodes.where(ok)
        return run_filters(attempt.profile, attempt.state, attempt.pod, left, attempt.statuses)

    def _beside_nominated(self, attempt: Attempt, nodes: Nodes, ok: BoolArray) -> Status:
        """Nodes that others are nominated to must also fit the pod beside them."""
        profile, pod = attempt.profile, attempt.pod
        crowded = [name for name in profile.services.nominator.nodes() if rivals(profile, pod, name)]
        if not crowded:
            return SUCCESS
        for index in np.flatnonzero(nodes.named(*crowded) & ok).tolist():
            trial = PodTrial(profile, pod, attempt.state.clone(), SUCCESS, {})
            status = trial.filter_with_nominated(nodes[index].name)
            if status.code is Code.ERROR:
                return status
            if not status.is_success:
                attempt.statuses.set_row(int(nodes.rows[index]), status)
                ok[index] = False
        return SUCCESS

    async def _extend(self, attempt: Attempt) -> Status:
        """Filter extenders one after another, each on what the previous left."""
        for extender in attempt.profile.services.extenders:
            if not attempt.ok.any():
                break
            if extender.filters and extender.is_interested(attempt.pod):
                status = await _ask(extender, attempt, attempt.every.dense(attempt.ok))
                if not status.is_success:
                    return status
        return SUCCESS

    async def _score(self, attempt: Attempt) -> Status:
        profile, state, pod = attempt.profile, attempt.state, attempt.pod
        self._buffers.reset(len(attempt.ok))
        meter, recalled = profile.meter, attempt.recalled
        scoring = Scoring(state, pod, attempt.every, attempt.ok, self._buffers)
        plugins: Iterable[PreScorePlugin]
        plugins = profile.pre_score if recalled is None else recalled.plan.global_pre_scores
        if meter is not None and meter.sampled:
            plugins = meter.timed(plugins, "PreScore")
            scoring = TimedScoring(meter, state, pod, attempt.every, attempt.ok, self._buffers)
        status = run_pre_score(plugins, state, pod, scoring.dense)
        lap(attempt, PRE_SCORE, status)
        if not status.is_success:
            return status
        board, status = (
            run_scores(profile, scoring) if recalled is None else score_recalled(recalled, profile, scoring)
        )
        lap(attempt, SCORE, status)
        if not status.is_success:
            return status
        if attempt.walk is not None:
            board.tie_break = np.zeros(len(board.totals), dtype=np.int64)
            board.tie_break[attempt.walk] = -np.arange(len(attempt.walk))
        await _prioritize(attempt, board)
        attempt.board = board
        attempt.ranking = board.ranking(self._ranker)
        attempt.node = attempt.nodes.columns.node_names()[attempt.ranking[0]]
        if _log.enabled(10):
            _log_scores(attempt, board)
        return SUCCESS


def lap(attempt: Attempt, point: int, status: Status) -> None:
    """Tell the metrics that an extension point is over."""
    meter = attempt.profile.meter
    if meter is not None:
        if status is SUCCESS:
            meter.lap(point)
        else:
            meter.lap(point, status.code.label)


NO_FIT = Status.unschedulable("no node fits")
NOT_EXAMINED = Status.unresolvable()
"""For nodes that the search did not come to. Without a reason, so it is not counted in any message."""


async def _ask(extender: Extender, attempt: Attempt, nodes: Nodes) -> Status:
    """One extender's verdict. Whatever it answers can only narrow the nodes."""
    try:
        result = await extender.filter(attempt.pod, nodes)
        if invented := sorted(result.names - set(nodes.names)):
            raise ExtenderError(
                f'extender "{extender.name}" claims a filtered node "{invented[0]}" which is not found '
                f"in the input node list"
            )
    except ExtenderError as error:
        if extender.ignorable:
            _log.warning("Skipping extender that returned an error", extender=extender.name, error=str(error))
            return SUCCESS
        return Status.error(str(error), cause=error).by(EXTENDER)
    for name, row in zip(nodes.names, nodes.rows.tolist(), strict=True):
        if name in result.failed_and_unresolvable:
            status = Status.unresolvable(result.failed_and_unresolvable[name])
        elif name in result.failed:
            status = Status.unschedulable(result.failed[name])
        elif name not in result.names:
            status = Status.unresolvable()  # left out without a word
        else:
            continue
        attempt.statuses.set_row(row, status.by(EXTENDER))
        attempt.ok[row] = False
    return SUCCESS


async def _prioritize(attempt: Attempt, board: ScoreBoard) -> None:
    """Add the scores of prioritizing extenders; their errors count for nothing."""
    services = attempt.profile.services
    nodes = board.every.dense(board.feasible) if services.extenders else board.every.listed
    for extender in services.extenders:
        if not (extender.prioritizes and extender.is_interested(attempt.pod)):
            continue
        try:
            scores = checked_scores(await extender.prioritize(attempt.pod, nodes))
        except ExtenderError as error:
            _log.warning("Skipping scores of extender", extender=extender.name, error=str(error))
            continue
        for name, score in scores.items():
            row = nodes.columns.row_of(name)
            if 0 <= row < len(board.feasible) and board.feasible[row]:
                board.totals[row] += score * extender.weight * 10
        board.tie_break = np.array([services.random.getrandbits(32) for _ in board.totals], dtype=np.int64)


def checked_scores(scores: object) -> Mapping[str, int]:
    """Scores that can be added up. As upstream, nobody insists on 10 as the highest."""
    if not isinstance(scores, Mapping):
        raise ExtenderError(f"expected a score per node, got {scores!r}")
    for name, score in scores.items():
        if isinstance(score, bool) or not isinstance(score, int) or not 0 <= score <= MAX_EXTENDER_SCORE:
            raise ExtenderError(f'bad score for node "{name}": {score!r}')
    return scores


MAX_EXTENDER_SCORE = 2**31
"""Far beyond what is agreed (10), and far from where totals would wrap round."""


def _log_scores(attempt: Attempt, board: ScoreBoard) -> None:
    key = attempt.pod.key
    for node in board.every.dense(board.feasible):
        for column in board.columns:
            score = column.weighted(node.row)
            _log.info(
                10, "Plugin scored node for pod", pod=key, plugin=column.plugin, node=node.name, score=score
            )
        total = int(board.totals[node.row])
        _log.info(10, "Calculated node's final score for pod", pod=key, node=node.name, score=total)
