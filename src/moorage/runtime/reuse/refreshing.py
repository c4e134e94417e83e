"""Update a template's baseline: judge the rows that have changed since, one by one."""

from __future__ import annotations

import numpy as np

from moorage.api.failures import is_interruption
from moorage.api.pod import Pod
from moorage.framework.nodes import EveryRow, IntArray, NodeView
from moorage.framework.status import MAX_NODE_SCORE, MIN_NODE_SCORE, Code, Status
from moorage.runtime.filtering import filter_with
from moorage.runtime.reuse.template import NO_RANK, TemplateBaseline
from moorage.runtime.reuse.turns import Turns
from moorage.runtime.score_board import NEVER, ScoreStep

FEW_CHANGES = 16
"""After this many changes or fewer a baseline is updated separately, even if it takes turns."""
MAX_CHANGED_ROWS = 32
"""With more changed rows than this, starting from the node set is as fast as judging them one by one."""
MAX_CHANGES = 4 * MAX_CHANGED_ROWS
"""After more changes than this, too many rows have changed as a rule: they are not even listed."""


class Unusable(Exception):
    """A plugin failed on a changed row, so the baseline cannot be used."""


def refresh(found: TemplateBaseline, pod: Pod, every: EveryRow, turns: Turns) -> bool:
    """Update a baseline; `every` are the current rows. Return False if it cannot be used any more."""
    if every is not found.every or not found.plugins.fingerprint.holds():
        return False
    columns = every.nodes.columns
    if found.takes_turns and columns.version - found.version > FEW_CHANGES and turns.catch_up(columns):
        return _refresh_in_turn(found, pod, turns)
    if columns.version - found.version > MAX_CHANGES:
        return False
    if found.takes_turns:
        turns.tell_best_rows(found)
    elif found.shares_arrays:
        found.copy_arrays()
    version, node_version, changed = columns.changes_since(found.version)
    if len(changed) > MAX_CHANGED_ROWS:
        return False
    nodes_changed = node_version != found.node_version
    if nodes_changed:
        found.incremental = None
    try:
        for node in changed:
            if nodes_changed or not found.ok[node.row] or not _refresh_load(found, pod, node):
                _refresh_all(found, pod, node, nodes_changed, turns)
    except BaseException as error:
        if is_interruption(error):
            raise
        return False  # an attempt that starts from nothing meets that failure, and names plugin, point and node
    found.version, found.node_version = version, node_version
    return True


def _refresh_in_turn(found: TemplateBaseline, pod: Pod, turns: Turns) -> bool:
    """Do what remains after all members have been updated together."""
    rows = dict.fromkeys(turns.mark_current(found))
    if not rows:
        return True
    if len(rows) > MAX_CHANGED_ROWS:
        return False
    found.incremental = None
    try:
        for row in rows:
            _refresh_all(found, pod, found.every.nodes.columns.view(row), True, turns)
    except BaseException as error:
        if is_interruption(error):
            raise
        return False
    return True


def _refresh_all(found: TemplateBaseline, pod: Pod, node: NodeView, node_changed: bool, turns: Turns) -> None:
    """Judge a row with all local plugins."""
    status = _refresh_row(found, pod, node, node_changed)
    if found.takes_turns and status.plugin in found.plugins.row_readers:
        turns.end(unusual=True)  # the row may fit again later, which they would not notice


def _refresh_load(found: TemplateBaseline, pod: Pod, node: NodeView) -> bool:
    """Update a node that fitted and whose pods have changed. Only plugins that read pods are called, which is why a pod
    like the last one costs next to nothing. Return False if the node does not fit any more."""
    if found.quick is not None:
        judges, steps, others, total = found.quick
        for judge in judges:
            if judge(node) is not None:
                return False
        row = node.row
        if not isinstance(total, int):
            total = int(total[row])
        scores = []
        for prepared, raw, weight in steps:
            raw[row] = score = prepared(node)
            scores.append(score)
            total += score * weight
        if type(total) is int:
            if others:
                scores += [raw.item(row) for raw in others]
            found.best_rows.changed(row, row, total, scores, found.totals)
            found.totals[row] = total
            return True
    else:
        for plugin, prepared_filter in found.row_filters:
            refused = prepared_filter(node) if prepared_filter else plugin.filter(found.state, pod, node)
            if refused is not None:
                return False
    _put(found, node.row, _load_total(found, pod, node))
    return True


def _put(found: TemplateBaseline, row: int, total: int) -> None:
    ordered, position = found.ordered, row
    if ordered is not found.totals:
        position = int(found.every.positions[row])
    scores = [raw.item(row) for raw in found.varying]
    found.best_rows.changed(position, row, total, scores, ordered)
    found.totals[row] = ordered[position] = total


def _load_total(found: TemplateBaseline, pod: Pod, node: NodeView) -> int:
    """Return the total of a row whose pods have changed, if not all plugins are prepared."""
    fixed = found.fixed
    total = fixed if isinstance(fixed, int) else int(fixed[node.row])
    for step, _ in found.row_steps:
        score = _rescore(found, pod, node, step)
        if step.is_summed:
            total += score * step.weight
    return total


def _rescore(found: TemplateBaseline, pod: Pod, node: NodeView, step: ScoreStep) -> int:
    score = step.plugin.score(found.state, pod, node)
    if type(score) is not int:
        if isinstance(score, Status):
            raise Unusable
        score = int(score)
    if step.is_summed and not step.whole_table and not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
        raise Unusable
    raw = found.raws[step.name]
    if not isinstance(raw, int):
        raw[node.row] = score
    elif raw != score:
        column = found.raws[step.name] = np.full(len(found.ok), raw, dtype=np.int64)
        column[node.row] = score
        found.incremental = None
        found.check_complete()
    return score


def _refresh_row(found: TemplateBaseline, pod: Pod, node: NodeView, node_changed: bool) -> Status:
    """Judge one row with all local plugins and return the result of the filters."""
    row = node.row
    status = filter_with(found.plugins.filters, found.state, pod, node)
    if status.code is Code.ERROR:
        raise Unusable
    was_ok = bool(found.ok[row])
    _set_verdict(found, row, status, was_ok)
    total = NEVER
    if status.is_success:
        # A row that was refused may never have been scored by plugins that see feasible nodes only.
        total = _total(found, pod, node, anew=node_changed or not was_ok)
    _put(found, row, total)
    return status


def _set_verdict(found: TemplateBaseline, row: int, status: Status, was_ok: bool) -> None:
    if status.is_success != was_ok:
        found.incremental = None
        if found.normalizers:
            found.check_complete()
    if status.is_success:
        if not was_ok:
            found.statuses.clear_row(row)
            found.ok[row], found.ranks[row] = True, NO_RANK
            found.feasible, found.diagnosis = found.feasible + 1, None
        return
    found.statuses.set_row(row, status)
    found.ok[row], found.ranks[row] = False, found.plugins.ranks[status.plugin]
    found.feasible, found.diagnosis = found.feasible - was_ok, None


def _total(found: TemplateBaseline, pod: Pod, node: NodeView, anew: bool) -> int:
    """Return the sum for one row; plugins that depend on the node only are called only if necessary."""
    fixed, moving = found.plugins.start, 0
    for step in found.steps:
        reads_row = step.name in found.plugins.row_readers
        if anew or reads_row:
            score = _rescore(found, pod, node, step)
        else:
            raw = found.raws[step.name]
            score = raw if isinstance(raw, int) else int(raw[node.row])
        if step.is_summed:
            if reads_row:
                moving += score * step.weight
            else:
                fixed += score * step.weight
    if isinstance(found.fixed, int):
        if fixed != found.fixed:
            column: IntArray = np.full(len(found.ok), found.fixed, dtype=np.int64)
            column[node.row] = fixed
            found.fixed = column
            found.check_complete()
    else:
        found.fixed[node.row] = fixed
    return fixed + moving
