"""Evaluations that are kept: what the plugins said of all rows for the last pod of one signature.

Most pods have twins. For the second pod of a signature on, only the rows that have changed since are judged
again, one by one in scalar Python; then the next best row is taken. A plugin takes part when it says what its
answer depends on (`reads`) and that is its own row: the node, and what runs there. All other plugins run anew
for every pod, on top of what is remembered.

    remembered:  verdict of the local filters per row · raw scores of the local score plugins · their sum
    anew:        changed rows · filters and scores that look at pods anywhere · the choice

Nothing here decides differently from a fresh evaluation; `tests/runtime/test_evaluations.py` compares them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mooring.api.pod import Pod
from mooring.api.resources import Resource
from mooring.framework.access import NODE, NODE_COUNT, ROW, Kind, Version
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import writes
from mooring.framework.nodes import BoolArray, EveryRow, IntArray, NodeView
from mooring.framework.points import FilterPlugin, Plugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from mooring.framework.record import RefusalCount
from mooring.framework.status import SUCCESS, Code, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.filtering import filter_with
from mooring.runtime.filtering_rows import filter_rows
from mooring.runtime.profile import Profile
from mooring.runtime.scoring import Column, ScoreBoard, Scores, Scoring, add_normalized, run_pre_score

MOST_BYTES = 64 * 1024 * 1024
MOST_CHANGED = 64
"""More changed rows than this are judged faster all at once."""
NEVER = 1 << 14
"""Rank of a row that no local filter refuses."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A score plugin that answers from memory."""

    plugin: ScorePlugin
    weight: int
    is_summed: bool
    """Its raw score counts as it is, so that rows can be added up one by one."""
    reads_row: bool
    """Its score may change with the pods of the node; otherwise only with the node itself."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which plugins answer from memory for one signature, and which run every time."""

    local_filters: tuple[FilterPlugin, ...]
    global_filters: tuple[FilterPlugin, ...]
    ranks: dict[str, int]
    """Filter plugin → its place in the configured order."""
    global_pre_filters: tuple[PreFilterPlugin, ...]
    local_pre_scores: tuple[PreScorePlugin, ...]
    global_pre_scores: tuple[PreScorePlugin, ...]
    scorers: tuple[Scorer, ...]
    """The local score plugins."""
    global_scores: tuple[ScorePlugin, ...]
    fingerprint: Callable[[], object]
    """What the local answers depend on beside rows; a change makes the memory worthless."""

    @property
    def is_complete(self) -> bool:
        """Whether everything comes from memory."""
        return not (
            self.global_filters or self.global_pre_filters or self.global_pre_scores or self.global_scores
        )


def make_plan(profile: Profile, pod: Pod, version_of: Callable[[Resource], int]) -> Plan:
    """Sort the plugins of a profile for pods like this one."""
    local, row_readers, kinds, versions = set[str](), set[str](), set[Resource](), set[Version]()
    for plugin in profile.plugins.values():
        # Without a `sign` of its own nobody knows what the plugin reads of the pod.
        signs = writes(plugin, "sign") and plugin.sign(pod) is not None
        reads = plugin.reads(pod) if signs and writes(plugin, "reads") else None
        if reads is None or not all(_is_local(read) for read in reads):
            continue
        local.add(plugin.name)
        if ROW in reads:
            row_readers.add(plugin.name)
        kinds |= {read.resource for read in reads if isinstance(read, Kind)}
        versions |= {read for read in reads if isinstance(read, Version)}

    def is_local(plugin: Plugin) -> bool:
        return plugin.name in local

    watched, counted = tuple(kinds), tuple(versions)

    def fingerprint() -> object:
        return [version_of(kind) for kind in watched], [version.value for version in counted]

    return Plan(
        tuple(filter(is_local, profile.filter)),
        tuple(p for p in profile.filter if not is_local(p)),
        {plugin.name: rank for rank, plugin in enumerate(profile.filter)},
        tuple(p for p in profile.pre_filter if not is_local(p)),
        tuple(filter(is_local, profile.pre_score)),
        tuple(p for p in profile.pre_score if not is_local(p)),
        tuple(
            Scorer(p, profile.weights.get(p.name, 1), is_summed(p), p.name in row_readers)
            for p in profile.score
            if is_local(p)
        ),
        tuple(p for p in profile.score if not is_local(p)),
        fingerprint,
    )


def _is_local(read: object) -> bool:
    # NODE_COUNT is local too: memory does not outlive a change of the set of nodes.
    return read in (NODE, ROW, NODE_COUNT) or isinstance(read, Kind | Version)


@dataclass(slots=True)
class Evaluation:
    """What is remembered for one signature."""

    plan: Plan
    every: EveryRow
    state: CycleState
    """PreFilter and PreScore results of the local plugins."""
    generation: int
    node_generation: int
    fingerprint: object
    statuses: NodeStatuses
    """Verdicts of the local filters."""
    ok: BoolArray
    """Rows that no local filter refuses."""
    ranks: npt.NDArray[np.int16]
    """Row → place of the local filter that refuses it."""
    raws: dict[str, Scores] = field(default_factory=dict)
    """Local score plugin → raw scores."""
    base: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Weighted sum of the local scores that need no normalisation."""
    ordered: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The same in snapshot order, -1 where the node is refused: its highest entry is the next choice when
    nothing else counts."""
    feasible: int = 0
    """Number of rows that are not refused."""
    told: tuple[tuple[RefusalCount, ...], Any] | None = None
    """The refusals as records tell them; None when they have changed."""

    @property
    def is_complete(self) -> bool:
        """Whether `ordered` alone decides: every plugin answers from memory, and those scores that are
        normalised are the same for all nodes."""
        return self.plan.is_complete and all(
            scorer.is_summed or isinstance(self.raws.get(scorer.plugin.name, 0), int)
            for scorer in self.plan.scorers
        )

    def best(self) -> int:
        """The row of the highest total, the first in snapshot order among equals; -1 when none fits."""
        index = int(self.ordered.argmax())
        return int(self.every.listed.rows[index]) if self.ordered[index] >= 0 else -1

    @property
    def nbytes(self) -> int:
        raws = sum(raw.nbytes for raw in self.raws.values() if not isinstance(raw, int))
        own = (self.statuses.ids, self.ok, self.ranks, self.base, self.ordered)
        return sum(array.nbytes for array in own) + raws


def is_summed(plugin: ScorePlugin) -> bool:
    """Whether a raw score counts as it is, so that rows can be added up one by one."""
    changed = writes(plugin, "normalize_nodes") or writes(plugin, "normalize_scores")
    return plugin.normalization is None and not changed


class Evaluator:
    """Builds and refreshes evaluations for one profile."""

    def __init__(self, profile: Profile, version_of: Callable[[Resource], int]) -> None:
        self._profile = profile
        self._version_of = version_of

    def build(self, pod: Pod, state: CycleState, every: EveryRow) -> Evaluation | None:
        """Remember what the local plugins say of all rows. `state` is that of a finished attempt. None when
        a plugin fails: then there is nothing to remember."""
        plan = make_plan(self._profile, pod, self._version_of)
        ok, statuses = every.alive.copy(), NodeStatuses(every.listed)
        status = filter_rows(plan.local_filters, state, pod, every, statuses, ok)
        if not status.is_success:
            return None
        rank_of = np.array(
            [plan.ranks.get(verdict.plugin, NEVER) for verdict in statuses.verdicts], dtype=np.int16
        )
        columns = every.nodes.columns
        found = Evaluation(
            plan,
            every,
            state,
            columns.generation,
            columns.node_generation,
            plan.fingerprint(),
            statuses,
            ok,
            rank_of[statuses.ids[: len(ok)]],
        )
        return found if self._score_all(found, pod) else None

    def _score_all(self, found: Evaluation, pod: Pod) -> bool:
        found.base = np.zeros(len(found.ok), dtype=np.int64)
        scoring = Scoring(found.state, pod, found.every, found.ok)
        if not run_pre_score(found.plan.local_pre_scores, found.state, pod, scoring.dense).is_success:
            return False
        for scorer in found.plan.scorers:
            name = scorer.plugin.name
            if name in found.state.skip_score:
                continue
            raw, status = scoring.score(scorer.plugin)
            if not status.is_success:
                return False
            found.raws[name] = _one_for_all(raw, found.ok)
            if scorer.is_summed:
                found.base += raw * scorer.weight
        order = found.every.listed.rows
        found.ordered = np.where(found.ok, found.base, -1).take(order)
        found.feasible = int(np.count_nonzero(found.ok))
        return True

    def refresh(self, found: Evaluation, pod: Pod, changed: list[int], generation: int) -> bool:
        """Judge the changed rows again. False when a plugin failed: the evaluation is not to be used."""
        columns, alive = found.every.nodes.columns, found.every.alive
        nodes_changed = columns.node_generation != found.node_generation
        for row in changed:
            is_node = row < len(alive) and alive[row]
            if is_node and not self._refresh_row(found, pod, columns.view(row), nodes_changed):
                return False
        found.generation, found.node_generation = generation, columns.node_generation
        return True

    def _refresh_row(self, found: Evaluation, pod: Pod, node: NodeView, node_changed: bool) -> bool:
        row = node.row
        status = filter_with(found.plan.local_filters, found.state, pod, node)
        if status.code is Code.ERROR:
            return False
        was_ok = bool(found.ok[row])
        self._set_verdict(found, row, status, was_ok)
        total = -1
        if status.is_success:
            # A row that was refused may never have been scored by plugins that see feasible nodes only.
            scored = self._rescore_row(found, pod, node, node_changed or not was_ok)
            if scored is None:
                return False
            total = scored
        found.ordered[found.every.positions[row]] = total
        return True

    def _set_verdict(self, found: Evaluation, row: int, status: Status, was_ok: bool) -> None:
        if status.is_success:
            if not was_ok:
                found.statuses.clear_row(row)
                found.ok[row], found.ranks[row] = True, NEVER
                found.feasible, found.told = found.feasible + 1, None
            return
        found.statuses.set_row(row, status)
        found.ok[row], found.ranks[row] = False, found.plan.ranks[status.plugin]
        found.feasible, found.told = found.feasible - was_ok, None

    def _rescore_row(self, found: Evaluation, pod: Pod, node: NodeView, anew: bool) -> int | None:
        """The sum for one row; plugins that depend on the node alone are asked only when they have to. None
        when a plugin failed."""
        row, base, raws = node.row, 0, found.raws
        for scorer in found.plan.scorers:
            name = scorer.plugin.name
            raw = raws.get(name)
            if raw is None:
                continue
            if anew or scorer.reads_row:
                score = scorer.plugin.score(found.state, pod, node)
                if isinstance(score, Status):
                    return None
                score = int(score)
                if isinstance(raw, int):
                    if raw != score:
                        raw = raws[name] = np.full(len(found.ok), raw, dtype=np.int64)
                        raw[row] = score
                else:
                    raw[row] = score
            else:
                score = raw if isinstance(raw, int) else int(raw[row])
            if scorer.is_summed:
                base += score * scorer.weight
        found.base[row] = base
        return base

    def recall(self, found: Evaluation, pod: Pod) -> bool:
        """Bring a remembered evaluation up to date. False: build it anew."""
        columns = found.every.nodes.columns
        if columns.every_row() is not found.every or found.plan.fingerprint() != found.fingerprint:
            return False
        changed = columns.changed_since(found.generation)
        try:
            return len(changed) <= MOST_CHANGED and self.refresh(found, pod, changed, columns.generation)
        except Exception:
            return False  # the long way meets the same failure, and names plugin, point and node

    def fresh_state(self, found: Evaluation) -> CycleState:
        """A state for one attempt: the local plugins have been prepared, the others will be."""
        state = found.state.clone()
        if found.plan.global_pre_filters:
            state.skip_filter -= {plugin.name for plugin in found.plan.global_pre_filters}
        if found.plan.global_pre_scores:
            state.skip_score -= {plugin.name for plugin in found.plan.global_pre_scores}
        return state


def _one_for_all(raw: Scores, ok: BoolArray) -> Scores:
    """A column whose feasible rows are all equal is kept as that one number."""
    if isinstance(raw, int) or not ok.any():
        return raw
    low, high = int(raw.min(where=ok, initial=_HIGHEST)), int(raw.max(where=ok, initial=-_HIGHEST))
    return low if low == high else raw


_HIGHEST = 2**62


class Evaluations:
    """The evaluations of a process, by signature; bounded in bytes, the least recently used go first.

    A signature is remembered when it is seen the second time: most signatures come once.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, seen: int = 4096) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, tuple[Evaluation, int]] = OrderedDict()
        """Signature → evaluation and the bytes that it is charged with."""
        self._bytes = 0
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._most_seen = seen

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, signature: Hashable) -> Evaluation | None:
        found = self._kept.get(signature)
        if found is None:
            return None
        self._kept.move_to_end(signature)
        return found[0]

    def is_known(self, signature: Hashable) -> bool:
        """Whether the signature was seen before; from now on it was."""
        known = signature in self._seen
        self._seen[signature] = None
        if len(self._seen) > self._most_seen:
            self._seen.popitem(last=False)
        return known

    def put(self, signature: Hashable, found: Evaluation) -> None:
        self.drop(signature)
        self._kept[signature] = found, found.nbytes
        self._bytes += found.nbytes
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))

    def drop(self, signature: Hashable) -> None:
        gone = self._kept.pop(signature, None)
        if gone is not None:
            self._bytes -= gone[1]


def score_recalled(found: Evaluation, profile: Profile, scoring: Scoring) -> tuple[ScoreBoard, Status]:
    """The scores of one attempt: the remembered sum, and on top of it what has to be computed anew."""
    board = ScoreBoard(scoring.every, scoring.feasible, found.base.copy())
    for plugin in profile.score:
        raw = found.raws.get(plugin.name)
        if raw is None:
            if plugin.name in scoring.state.skip_score or plugin not in found.plan.global_scores:
                continue
            raw, status = scoring.score(plugin)
            if not status.is_success:
                return board, status
        column = Column(plugin.name, profile.weights.get(plugin.name, 1), raw, raw)
        board.columns.append(column)
        if plugin.name in found.raws and is_summed(plugin):
            continue
        status = add_normalized(board, scoring, plugin, column)
        if not status.is_success:
            return board, status
    if not profile.score:
        board.totals += 1
    board.add_constants()
    return board, SUCCESS
