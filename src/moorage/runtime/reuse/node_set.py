"""Known per node set: results of plugins that depend on nodes only, shared by all pods that are alike to them.

Pods whose labels and requests always differ still have the same tolerations, node selectors and images. The results of
the plugins that read these change with the nodes and not with pods, so they are computed once: a pod with a new
signature starts from there, and only the other plugins are called for it.

    shared:  PreFilter and PreScore results · who rejects which node · raw scores, their sum where it is final
    called:  plugins that read what runs on the nodes (requests, ports, volumes), or pods anywhere

A plugin takes part with `few_signs`, `sign` and `reads`. If a PreFilter plugin rejects the pod or narrows the nodes, or
a plugin fails, there is no baseline: such pods start from nothing, which reports the reason."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import BoolArray, EveryRow, IntArray
from moorage.framework.status import Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.attempt import Baseline, RemainingPlugins
from moorage.runtime.filtering import filter_rows
from moorage.runtime.pre_filtering import run_pre_filter
from moorage.runtime.profile import Profile
from moorage.runtime.record import Diagnosis
from moorage.runtime.reuse.signatures import Fingerprint, VersionOf, is_about_node, known_reads, shares_node_set
from moorage.runtime.score_board import NEVER, Buffers, PluginColumn, ScoreBoard, Scores, ScoreStep
from moorage.runtime.scoring import Scoring, add_scores, run_pre_score


@dataclass(slots=True)
class NodeSetBaseline(Baseline):
    """The results shared by pods with one key. Only the diagnosis in it changes."""

    every: EveryRow
    node_version: int
    fingerprint: Fingerprint
    state: CycleState
    statuses: NodeStatuses
    ok: BoolArray
    feasible: int
    remaining: RemainingPlugins
    columns: list[PluginColumn] = field(default_factory=list)
    """Scores that are final."""
    totals: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The weighted sum of the final scores; `NEVER` where the node is refused."""
    raws: list[tuple[ScoreStep, Scores]] = field(default_factory=list)
    """Scores that depend on which nodes are feasible in the end."""
    diagnosis: Diagnosis | None = None

    @property
    def holds(self) -> bool:
        """Return whether no node has changed, nor anything else that this depends on."""
        columns = self.every.nodes.columns
        return (
            columns.node_version == self.node_version and columns.every_row() is self.every and self.fingerprint.holds()
        )

    def score(self, scoring: Scoring, buffers: Buffers, feasible: int) -> tuple[ScoreBoard, Status]:
        board = ScoreBoard(scoring.every, scoring.feasible, buffers.take_as_is(), list(self.columns))
        status = add_scores(board, scoring, self.remaining.scores, self.raws, self.totals)
        board.mask(self.ok, all_known=feasible == self.feasible)
        return board, status

    @property
    def nbytes(self) -> int:
        raws = sum(raw.nbytes for _, raw in self.raws if not isinstance(raw, int))
        raws += sum(column.raw.nbytes for column in self.columns if not isinstance(column.raw, int))
        return self.statuses.ids.nbytes + self.ok.nbytes + self.totals.nbytes + raws


def build(profile: Profile, pod: Pod, every: EveryRow, version_of: VersionOf) -> NodeSetBaseline | None:
    """Call the plugins that depend on nodes only for all nodes. Return None if that gives no baseline."""
    sharing = filter(shares_node_set, profile.deciding)
    reads = {plugin.name: known_reads(plugin, pod) for plugin in sharing}
    found = {name: said for name, said in reads.items() if said is not None and all(map(is_about_node, said))}
    names = frozenset(found)
    state, ok, statuses = CycleState(), every.alive.copy(), NodeStatuses(every.listed)
    ours = tuple(p for p in profile.pre_filter if p.name in names)
    pre = run_pre_filter(profile, state, pod, every.listed, ours)
    if not pre.status.is_success or pre.node_names is not None:
        return None
    late = _filter(profile, names, state, pod, every, statuses, ok)
    if late is None:
        return None
    baseline = NodeSetBaseline(
        every,
        every.nodes.columns.node_version,
        Fingerprint((read for said in found.values() for read in said), version_of),
        state,
        statuses,
        ok,
        int(np.count_nonzero(ok)),
        RemainingPlugins.of(profile, names, late),
    )
    return baseline if not baseline.feasible or _score(baseline, profile, names, pod) else None


def _filter(
    profile: Profile,
    names: frozenset[str],
    state: CycleState,
    pod: Pod,
    every: EveryRow,
    statuses: NodeStatuses,
    ok: BoolArray,
) -> frozenset[str] | None:
    """Run the filters of the named plugins. A filter that follows another one in the configured order must not reject
    first: if it rejects any node, it is returned, to be called again at its place. Return None if one fails."""
    late: list[str] = []
    first = True
    for plugin in profile.filter:
        if plugin.name not in names:
            first = False
            continue
        if first:
            status = filter_rows((plugin,), state, pod, every, statuses, ok)
        else:
            kept = ok.copy()
            status = filter_rows((plugin,), state, pod, every, NodeStatuses(every.listed), kept)
            if np.count_nonzero(kept) < np.count_nonzero(ok):
                late.append(plugin.name)
        if not status.is_success:
            return None
    return frozenset(late)


def _score(baseline: NodeSetBaseline, profile: Profile, names: frozenset[str], pod: Pod) -> bool:
    """Collect the scores of the named plugins. False when one fails."""
    scoring = Scoring(baseline.state, pod, baseline.every, baseline.ok)
    ours = tuple(p for p in profile.pre_score if p.name in names)
    if not run_pre_score(ours, baseline.state, pod, scoring.dense).is_success:
        return False
    # Where no plugin scores at all, every node is as good as any other.
    total = np.full(len(baseline.ok), 0 if profile.score else 1, dtype=np.int64)
    for step in profile.score_steps:
        if step.name not in names or step.name in baseline.state.skip_score:
            continue
        raw, status = scoring.score(step)
        if not status.is_success:
            return False
        raw = one_for_all(raw, baseline.ok)
        final = step.is_summed or (isinstance(raw, int) and step.normalization is not None)
        if not final:
            baseline.raws.append((step, raw))
            continue
        normalized, status = scoring.normalize(step, raw)
        if not status.is_success:
            return False
        baseline.columns.append(PluginColumn(step, raw, normalized))
        total += normalized * step.weight
    baseline.totals = np.where(baseline.ok, total, NEVER)
    return True


def one_for_all(raw: Scores, ok: BoolArray) -> Scores:
    """Return a single number for a column whose feasible rows are all equal."""
    if isinstance(raw, int):
        return raw
    first = int(ok.argmax())
    if not len(ok) or not ok[first] or ((raw != raw[first]) & ok).any():
        return raw
    return int(raw[first])
