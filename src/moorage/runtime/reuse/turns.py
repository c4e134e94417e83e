"""Templates whose pods take turns: their baselines are updated together.

Between two pods of one template, other templates' pods change one row each. Judging these rows again for each template
would cost as much as starting from nothing. So a changed row is judged for all templates at once, by plugins that
support it (`hot.ManyPodsFilterPlugin`, `hot.ManyPodsScorePlugin`).

Only the usual case is handled here: the pods of a node have changed, and it fits every template. A node that has itself
changed is left to each baseline. A node that does not fit ends the turns: the baselines then continue separately, as
current as they were, and turns begin again after a pause, which grows each time they did not last."""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np

from moorage.api.failures import is_interruption
from moorage.api.pod import Pod
from moorage.framework.hot import ManyPodsFilterPlugin, ManyPodsScorePlugin
from moorage.framework.nodes import Columns, EveryRow, FloatArray, IntArray, NodeView
from moorage.runtime.reuse.template import TemplateBaseline
from moorage.runtime.score_board import Ranker, ScoreStep
from moorage.telemetry import logs

_log = logs.get(__name__)

_MOST_BEHIND = 64
"""Changed rows that are judged for all after pods of one template, which took no turns."""
_MOST_CHANGES = 4 * _MOST_BEHIND
"""After more changes than this, too many rows have changed as a rule."""
_MOST_CHANGED_NODES = 1 << 16
"""Changes of nodes until turns begin anew, so that the list of them ends."""
_LOST = -(1 << 62)
"""The version of a baseline that is never used again."""
_CAPACITY = 32
"""Baselines that the arrays hold at first."""
_SHORT, _LONG = 512, 1 << 20
"""Changes of rows to wait after turns have ended, at least and at most."""

Amounts = tuple[int, ...]
Lines = TypeVar("Lines", IntArray, FloatArray)


class Turns:
    """The baselines that take turns. They differ only in the amounts that their pods request."""

    def __init__(self) -> None:
        self._members: list[TemplateBaseline] = []
        self._former: list[TemplateBaseline] = []
        """Members of the last turns, which have ended."""
        self._changed_nodes: list[int] = []
        """Rows of which not only the pods have changed since turns began, in order."""
        self._every: EveryRow | None = None
        self._version = self._node_version = 0
        self._filters: list[tuple[ManyPodsFilterPlugin, list[int]]] = []
        """With the largest amounts of any member."""
        self._scores: list[tuple[ScoreStep, FloatArray, IntArray]] = []
        """With the amounts, a column for each member, and the raw scores, a line for each member; they are
        larger than they have to be."""
        self._totals: IntArray = np.zeros((0, 0), dtype=np.int64)
        self._ranker = Ranker()
        """What one member learns of the distance between its best rows holds for the others."""
        self._began = self._resume_at = 0
        self._pause = _SHORT

    def may_begin(self, version: int) -> bool:
        """Return whether baselines may join when the rows are of this version."""
        return version >= self._resume_at

    def join(self, found: TemplateBaseline, pod: Pod) -> None:
        """Let a current baseline take turns from now on, if it can. `pod` is one of the template."""
        if found.takes_turns or not self.may_begin(found.version):
            return
        try:
            amounts = _amounts(found, pod)
        except BaseException as error:
            if is_interruption(error):
                raise
            self._failed(error, found.version)
            return
        if amounts is None:
            return
        if self._members and (found.every is not self._every or found.version - self._version > _MOST_CHANGES):
            self.end()
        if self._members and not self._is_like(found):
            return
        if self._members and not self.catch_up(found.every.nodes.columns):
            return
        for_filters, for_scores = amounts
        if not self._members:
            self._begin(found, for_filters, for_scores)
        if len(self._members) == len(self._totals):
            self._grow(2 * len(self._totals))
        index = len(self._members)
        self._members.append(found)
        found.nodes_seen, found.ranker = len(self._changed_nodes), self._ranker
        for (_, largest), some in zip(self._filters, for_filters, strict=True):
            largest[:] = map(max, largest, some)
        for (_, columns, _), some in zip(self._scores, for_scores, strict=True):
            columns[:, index] = some
        self._totals[index] = found.totals
        refused = ~found.ok
        for step, _, raws in self._scores:
            raws[index] = found.raws[step.name]
            raws[index, refused] = 0  # plugins may have written anything there
        found.takes_turns = found.shares_arrays = True
        self._share(index)

    def catch_up(self, columns: Columns) -> bool:
        """Update all baselines. False means that turns have ended."""
        version, node_version, changed = columns.changes_since(self._version)
        if len(changed) > _MOST_BEHIND or len(self._changed_nodes) > _MOST_CHANGED_NODES:
            self.end()
            return False
        if node_version != self._node_version:
            self._changed_nodes += [node.row for node in changed]
            self._node_version = node_version
        try:
            usual = all(self._judge(node) for node in changed)
        except BaseException as error:
            if is_interruption(error):
                raise
            self._failed(error, version)
            return False
        if not usual:
            self.end(unusual=True)
            return False
        self._version = version
        return True

    def mark_current(self, found: TemplateBaseline) -> list[int]:
        """After `catch_up`, mark a member as current except for the returned rows. More than their pods has changed
        since the last call for it, so the member must judge them itself."""
        rows = self._changed_nodes[found.nodes_seen :]
        found.nodes_seen += len(rows)
        found.version, found.node_version = self._version, self._node_version
        found.best_rows.forget()
        return rows

    def tell_best_rows(self, found: TemplateBaseline) -> None:
        """Before a member is updated separately, make it forget its best rows if rows were judged for all members that
        the member has not seen."""
        if found.version < self._version:
            found.best_rows.forget()

    def leave(self, found: TemplateBaseline) -> None:
        """Remove a baseline that is not used any more. If it was a member, the last member takes its place; arrays of
        former members are not kept for it."""
        if found.takes_turns:
            last, place = self._members.pop(), found.place
            if last is not found:
                self._members[place] = last
                count = len(self._members)
                self._totals[place] = self._totals[count]
                for _, amounts, raws in self._scores:
                    amounts[:, place], raws[place] = amounts[:, count], raws[count]
                self._share(place)
        if found.shares_arrays:
            self._abandon(found)

    def end(self, *, unusual: bool = False) -> None:
        """Let every baseline continue separately. With `unusual`, turns do not begin again soon."""
        for found in self._members:
            found.takes_turns = False
            if found.nodes_seen == len(self._changed_nodes):
                found.version = max(found.version, self._version)
                found.node_version = self._node_version
            found.best_rows.forget()
        if unusual:
            lasted = self._version - self._began
            self._pause = _SHORT if lasted > 4 * self._pause else min(4 * self._pause, _LONG)
            self._resume_at = self._version + self._pause
        self._former += self._members
        self._members, self._filters, self._scores = [], [], []
        self._totals = _integers(0, 0)
        self._every = None

    def _failed(self, error: BaseException, version: int) -> None:
        _log.error("A plugin failed for many pods at once; calling it for each pod", error=error, stack=True)
        self.end(unusual=True)
        self._resume_at = version + self._pause

    def _is_like(self, found: TemplateBaseline) -> bool:
        """Return whether the same plugins judge changed rows."""
        filters = [plugin for plugin, _ in found.row_filters]
        steps = [step for step, _ in found.row_steps]
        return filters == [plugin for plugin, _ in self._filters] and steps == [s for s, _, _ in self._scores]

    def _begin(self, first: TemplateBaseline, for_filters: list[Amounts], for_scores: list[Amounts]) -> None:
        for found in self._former:
            if found.shares_arrays:  # not used since: it is not worth arrays of its own
                self._abandon(found)
        self._former, self._changed_nodes = [], []
        self._every = first.every
        self._version, self._node_version = first.version, first.node_version
        self._began = first.version
        self._totals = _integers(_CAPACITY, len(first.totals))
        self._filters = [
            (cast(ManyPodsFilterPlugin, plugin), list(some))
            for (plugin, _), some in zip(first.row_filters, for_filters, strict=True)
        ]
        self._scores = [
            (step, np.empty((len(some), _CAPACITY)), _integers(_CAPACITY, len(first.totals)))
            for (step, _), some in zip(first.row_steps, for_scores, strict=True)
        ]

    def _grow(self, capacity: int) -> None:
        self._totals = _longer(self._totals, capacity)
        self._scores = [
            (step, _longer(amounts.T, capacity).T.copy(), _longer(raws, capacity))
            for step, amounts, raws in self._scores
        ]
        for index in range(len(self._members)):
            self._share(index)

    def _share(self, index: int) -> None:
        """Make the baseline work on its lines of the shared arrays."""
        found = self._members[index]
        found.place = index
        found.totals = found.ordered = self._totals[index]
        for step, _, raws in self._scores:
            found.raws[step.name] = raws[index]
        found.check_complete()

    @staticmethod
    def _abandon(found: TemplateBaseline) -> None:
        found.takes_turns = found.shares_arrays = False
        found.version = _LOST
        found.totals = found.ordered = _integers(0)
        found.raws.clear()

    def _judge(self, node: NodeView) -> bool:
        """Judge one node for all templates. False means that something about it is unusual."""
        for plugin, largest in self._filters:
            if not plugin.fits_amounts(largest, node):
                return False
        row, count = node.row, len(self._members)
        gained: IntArray | None = None
        for step, amounts, raws in self._scores:
            scores = cast(ManyPodsScorePlugin, step.plugin).score_many(amounts[:, :count], node)
            if scores is None:
                return False
            raw = raws[:count, row]
            more: IntArray = scores - raw
            raw[:] = scores
            if step.weight != 1:
                more *= step.weight
            gained = more if gained is None else np.add(gained, more, out=more)
        if gained is not None:
            # Members that are refused for the node's own sake stay far below zero: what they gain in all is the
            # difference between two scores.
            total = self._totals[:count, row]
            total += gained
        return True


def _amounts(found: TemplateBaseline, pod: Pod) -> tuple[list[Amounts], list[Amounts]] | None:
    """Return the amounts of the template's pods that the filters and scores of changed rows need. None if one of them
    cannot judge pods together, or rejects a row now: it could fit later, unnoticed."""
    if not found.every.in_order:
        return None
    for_filters: list[Amounts] = []
    for plugin, _ in found.row_filters:
        refused = found.ranks == found.plugins.ranks[plugin.name]
        if not isinstance(plugin, ManyPodsFilterPlugin) or refused.any():
            return None
        some = plugin.filter_amounts(found.state, pod)
        if some is None:
            return None
        for_filters.append(some)
    for_scores: list[Amounts] = []
    for step, _ in found.row_steps:
        trusted = step.whole_table and step.is_summed
        if not isinstance(step.plugin, ManyPodsScorePlugin) or not trusted:
            return None
        some = step.plugin.score_amounts(found.state, pod)
        if some is None:
            return None
        for_scores.append(some)
    return for_filters, for_scores


def _integers(*shape: int) -> IntArray:
    return np.empty(shape, dtype=np.int64)


def _longer(lines: Lines, capacity: int) -> Lines:
    longer = np.empty((capacity, *lines.shape[1:]), dtype=lines.dtype)
    longer[: len(lines)] = lines
    return cast(Lines, longer)
