"""From a pod to a node: PreFilter, Filter, extenders, Score. Steps 5 to 13 of kube-scheduler's cycle.

Reads the state of the cluster and changes nothing. Suspends only at extenders.
"""

from __future__ import annotations

import numpy as np

from mooring.framework.extending import Extender, ExtenderError
from mooring.framework.nodes import BoolArray, IntArray, Nodes
from mooring.framework.status import SUCCESS, Code, Status
from mooring.runtime.dry_run import PodTrial, rivals
from mooring.runtime.filtering import rotate, run_filters, run_pre_filter, sample_size
from mooring.runtime.profile import EXTENDER
from mooring.runtime.scoring import ScoreBoard, run_pre_score, run_scores
from mooring.scheduler.attempt import Attempt
from mooring.telemetry import logs

_log = logs.get(__name__)


class NodeChooser:
    """Keeps the one thing that outlives an attempt: where the next search starts (compatible mode)."""

    def __init__(self) -> None:
        self.next_start = 0

    async def choose(self, attempt: Attempt) -> Status:
        """Success: `attempt.node` is chosen. A rejection: no node fits. Error: something broke."""
        status = await self._find_feasible(attempt)
        if not status.is_success:
            return status
        feasible = attempt.nodes.where(_survivors(attempt, attempt.nodes))
        attempt.feasible = len(feasible)
        if not len(feasible):
            return NO_FIT
        if len(feasible) == 1:
            attempt.node = feasible.names[0]
            return SUCCESS
        return await self._score(attempt, feasible)

    async def _find_feasible(self, attempt: Attempt) -> Status:
        """Everything up to the extenders; refusals end up in `attempt.statuses`."""
        found = run_pre_filter(attempt.profile, attempt.state, attempt.pod, attempt.nodes)
        attempt.narrowed_by = found.narrowed_by
        if found.status.code is Code.ERROR:
            return found.status
        if not found.status.is_success:
            attempt.pre_filter_message = found.status.message
            attempt.statuses.set_rows(attempt.nodes.rows, found.status)
            return SUCCESS
        candidates = self._narrow(attempt, found.node_names)
        if await self._nominated_fits(attempt, candidates):
            return SUCCESS
        status = self._filter(attempt, candidates)
        return await self._extend(attempt, candidates) if status.is_success else status

    def _narrow(self, attempt: Attempt, names: frozenset[str] | None) -> Nodes:
        if names is None:
            return attempt.nodes
        inside = attempt.nodes.named(*names)
        listed = " ".join(sorted(attempt.narrowed_by))
        outside = Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")
        attempt.statuses.set_rows(attempt.nodes.rows[~inside], outside)
        return attempt.nodes.where(inside)

    async def _nominated_fits(self, attempt: Attempt, candidates: Nodes) -> bool:
        """The node that the pod is nominated to is tried alone; if it fits nobody else is looked at."""
        name = attempt.pod.nominated_node_name
        if not name:
            return False
        alone = candidates.where(candidates.named(name))
        if not len(alone):
            return False
        trial = Attempt(attempt.info, attempt.profile, attempt.nodes, attempt.state)
        status = self._filter(trial, alone)
        if status.is_success:
            status = await self._extend(trial, alone)
        fits = status.is_success and bool(_survivors(trial, alone).all())
        if fits:
            attempt.evaluated = 1
            attempt.statuses.set_rows(attempt.nodes.rows[~attempt.nodes.named(name)], NOT_EXAMINED)
        return fits

    def _filter(self, attempt: Attempt, candidates: Nodes) -> Status:
        percentage = attempt.profile.percentage_of_nodes_to_score
        wanted = sample_size(percentage, len(candidates)) if percentage else len(candidates)
        if wanted >= len(candidates):
            attempt.evaluated += len(candidates)
            return self._filter_block(attempt, candidates)[1]
        return self._sample(attempt, candidates, wanted)

    def _sample(self, attempt: Attempt, candidates: Nodes, wanted: int) -> Status:
        """Walk from `next_start` until more than `wanted` nodes fit; that one more is where the next attempt
        starts. A block is never larger than what is still missing, so no node beyond it is looked at."""
        rows = rotate(candidates.rows, self.next_start % len(candidates))
        seen, kept = 0, 0
        last: IntArray = rows[:0]
        while seen < len(rows) and kept <= wanted:
            block = Nodes(candidates.columns, rows[seen : seen + wanted + 1 - kept])
            survivors, status = self._filter_block(attempt, block)
            if not status.is_success:
                return status
            seen += len(block)
            kept += len(survivors)
            last = survivors.rows
        if kept > wanted:
            seen -= 1
            attempt.statuses.set_rows(last[-1:], NOT_EXAMINED)
        attempt.statuses.set_rows(rows[seen:], NOT_EXAMINED)
        attempt.evaluated += seen
        self.next_start = (self.next_start + seen) % len(candidates)
        return SUCCESS

    def _filter_block(self, attempt: Attempt, nodes: Nodes) -> tuple[Nodes, Status]:
        """Both passes: beside nominated pods where there are any, then as the nodes are."""
        nodes, status = self._beside_nominated(attempt, nodes)
        if not status.is_success:
            return nodes, status
        return run_filters(attempt.profile, attempt.state, attempt.pod, nodes, attempt.statuses)

    def _beside_nominated(self, attempt: Attempt, nodes: Nodes) -> tuple[Nodes, Status]:
        profile, pod = attempt.profile, attempt.pod
        crowded = [name for name in profile.services.nominator.nodes() if rivals(profile, pod, name)]
        if not crowded:
            return nodes, SUCCESS
        refused = np.zeros(len(nodes), dtype=np.bool_)
        for index in np.flatnonzero(nodes.named(*crowded)).tolist():
            trial = PodTrial(profile, pod, attempt.state.clone(), SUCCESS, {})
            status = trial.filter_with_nominated(nodes.names[index])
            if status.code is Code.ERROR:
                return nodes, status
            if not status.is_success:
                attempt.statuses.set_row(int(nodes.rows[index]), status)
                refused[index] = True
        return nodes.where(~refused), SUCCESS

    async def _extend(self, attempt: Attempt, within: Nodes) -> Status:
        """Filter extenders one after another, each on what the previous left."""
        for extender in attempt.profile.services.extenders:
            nodes = within.where(_survivors(attempt, within))
            if not len(nodes):
                break
            if extender.filters and extender.is_interested(attempt.pod):
                status = await _ask(extender, attempt, nodes)
                if not status.is_success:
                    return status
        return SUCCESS

    async def _score(self, attempt: Attempt, feasible: Nodes) -> Status:
        profile, state, pod = attempt.profile, attempt.state, attempt.pod
        status = run_pre_score(profile, state, pod, feasible)
        if not status.is_success:
            return status
        board, status = run_scores(profile, state, pod, feasible)
        if not status.is_success:
            return status
        await _prioritize(attempt, board)
        attempt.board = board
        attempt.node = feasible.names[board.winner()]
        _log_scores(attempt, board)
        return SUCCESS


NO_FIT = Status.unschedulable("no node fits")
NOT_EXAMINED = Status.unresolvable()
"""For nodes that the search did not come to. Without a reason, so it is not counted in any message."""


def _survivors(attempt: Attempt, within: Nodes) -> BoolArray:
    """Which of the nodes nobody has refused so far."""
    kept: BoolArray = within.take(attempt.statuses.ids) == 0
    return kept


async def _ask(extender: Extender, attempt: Attempt, nodes: Nodes) -> Status:
    """One extender's verdict. Whatever it answers can only narrow the nodes."""
    try:
        result = await extender.filter(attempt.pod, nodes)
    except ExtenderError as error:
        if extender.ignorable:
            _log.warning("Skipping extender that returned an error", extender=extender.name, error=str(error))
            return SUCCESS
        return Status.error(str(error), cause=error).by(EXTENDER)
    columns = nodes.columns
    for name, row in zip(nodes.names, nodes.rows.tolist(), strict=True):
        if name in result.failed_and_unresolvable:
            attempt.statuses.set_row(
                row, Status.unresolvable(result.failed_and_unresolvable[name]).by(EXTENDER)
            )
        elif name in result.failed or name not in result.names:
            attempt.statuses.set_row(row, Status.unschedulable(result.failed.get(name, "")).by(EXTENDER))
    unknown = sorted(name for name in result.names if columns.row_of(name) < 0)
    if unknown and not extender.ignorable:
        return Status.error(
            f'extender {extender.name!r} claims a filtered node "{unknown[0]}" which is not found'
        ).by(EXTENDER)
    return SUCCESS


async def _prioritize(attempt: Attempt, board: ScoreBoard) -> None:
    """Add the scores of prioritizing extenders; their errors count for nothing."""
    services = attempt.profile.services
    index = {name: i for i, name in enumerate(board.nodes.names)}
    for extender in services.extenders:
        if not (extender.prioritizes and extender.is_interested(attempt.pod)):
            continue
        try:
            scores = await extender.prioritize(attempt.pod, board.nodes)
        except ExtenderError as error:
            _log.warning("Skipping scores of extender", extender=extender.name, error=str(error))
            continue
        for name, score in scores.items():
            if name in index:
                board.totals[index[name]] += score * extender.weight * 10
        draws = [services.random.getrandbits(32) for _ in index]
        board.tie_break = np.array(draws, dtype=np.int64)


def _log_scores(attempt: Attempt, board: ScoreBoard) -> None:
    if not _log.enabled(10):
        return
    for i, name in enumerate(board.nodes.names):
        for column in board.columns:
            score = int(column.normalized[i]) * column.weight
            _log.info(
                10,
                "Plugin scored node for pod",
                pod=attempt.pod.key,
                plugin=column.plugin,
                node=name,
                score=score,
            )
        _log.info(
            10,
            "Calculated node's final score for pod",
            pod=attempt.pod.key,
            node=name,
            score=int(board.totals[i]),
        )
