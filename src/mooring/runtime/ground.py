"""What plugins that look at the nodes alone said, shared by all pods that are alike to them.

Pods with other labels and requests each time still have the same tolerations, node selectors and images. What
the plugins behind these say changes with the nodes and not with pods that come and go, so it is worked out
once: a pod that nobody has seen starts from there, and only the other plugins are asked about it.

    shared:  PreFilter and PreScore results · who refuses which node · raw scores, their sum where it is final
    asked:   plugins that read what runs on the nodes (requests, ports, volumes), or pods anywhere

A plugin takes part by `signs_repeat`, `sign` and `reads`. Anything out of the ordinary (a PreFilter that
refuses or narrows, an Error) leaves no ground: such pods take the long way, which tells what happened.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import BoolArray, EveryRow, IntArray
from mooring.framework.record import Survey
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.dependence import Fingerprint, VersionOf, is_about_node, known_reads
from mooring.runtime.filtering_rows import filter_rows
from mooring.runtime.left import Left, left_of
from mooring.runtime.pre_filtering import run_pre_filter
from mooring.runtime.profile import Profile
from mooring.runtime.score_board import NEVER, Column, Scores
from mooring.runtime.score_steps import ScoreStep
from mooring.runtime.scoring import Scoring, run_pre_score
from mooring.runtime.signatures import Key

MOST_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class Ground:
    """What is shared by pods of one key. Nothing in it changes."""

    every: EveryRow
    node_generation: int
    fingerprint: Fingerprint
    state: CycleState
    statuses: NodeStatuses
    ok: BoolArray
    """Rows that none of these plugins refuses."""
    feasible: int
    left: Left
    known: frozenset[str]
    """The plugins that this speaks for."""
    columns: list[Column] = field(default_factory=list)
    """Scores that are final."""
    offset: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The weighted sum of the final scores; far below zero where the node is refused."""
    raws: list[tuple[ScoreStep, Scores]] = field(default_factory=list)
    """Scores that depend on which nodes are feasible in the end."""
    told: Survey | None = None
    """The refusals as records tell them."""

    @property
    def holds(self) -> bool:
        """Whether no node has changed, nor anything else that this depends on."""
        columns = self.every.nodes.columns
        return (
            columns.node_generation == self.node_generation
            and columns.every_row() is self.every
            and self.fingerprint.holds()
        )

    @property
    def nbytes(self) -> int:
        raws = sum(raw.nbytes for _, raw in self.raws if not isinstance(raw, int))
        raws += sum(column.raw.nbytes for column in self.columns if not isinstance(column.raw, int))
        return self.statuses.ids.nbytes + self.ok.nbytes + self.offset.nbytes + raws


class Grounds:
    """The grounds of a process; bounded in bytes, the least recently used go first."""

    def __init__(self, version_of: VersionOf, most_bytes: int = MOST_BYTES) -> None:
        self._version_of = version_of
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Key, Ground] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key, profile: Profile, pod: Pod, every: EveryRow) -> Ground | None:
        """The ground for pods of this key, made if need be. None: the long way."""
        found = self._kept.get(key)
        if found is not None:
            if found.holds:
                self._kept.move_to_end(key)
                return found
            self._drop(key)
        try:
            found = make_ground(profile, pod, every, self._version_of)
        except Exception:
            return None  # the long way meets the same failure, and names plugin, point and node
        if found is not None:
            self._kept[key] = found
            self._bytes += found.nbytes
            while self._bytes > self._most_bytes and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))
        return found

    def _drop(self, key: Key) -> None:
        self._bytes -= self._kept.pop(key).nbytes


def make_ground(profile: Profile, pod: Pod, every: EveryRow, version_of: VersionOf) -> Ground | None:
    """Ask the plugins that look at the nodes alone about all of them."""
    reads = {plugin.name: known_reads(plugin, pod) for plugin in profile.sharing}
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
    left = left_of(profile, names, late)
    ground = Ground(
        every,
        every.nodes.columns.node_generation,
        Fingerprint((read for said in found.values() for read in said), version_of),
        state,
        statuses,
        ok,
        int(np.count_nonzero(ok)),
        left,
        names - late,
    )
    return ground if not ground.feasible or _score(ground, profile, names, pod) else None


def _filter(
    profile: Profile,
    names: frozenset[str],
    state: CycleState,
    pod: Pod,
    every: EveryRow,
    statuses: NodeStatuses,
    ok: BoolArray,
) -> frozenset[str] | None:
    """Run the filters of the named plugins. Those behind another filter in the configured order may not
    refuse before it: they are returned, if they refuse anything, to be asked again at their place. None when
    one fails."""
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


def _score(ground: Ground, profile: Profile, names: frozenset[str], pod: Pod) -> bool:
    """Collect the scores of the named plugins. False when one fails."""
    scoring = Scoring(ground.state, pod, ground.every, ground.ok)
    ours = tuple(p for p in profile.pre_score if p.name in names)
    if not run_pre_score(ours, ground.state, pod, scoring.dense).is_success:
        return False
    # Where no plugin scores at all, every node is as good as any other.
    total = np.full(len(ground.ok), 0 if profile.score else 1, dtype=np.int64)
    for step in profile.score_steps:
        if step.name not in names or step.name in ground.state.skip_score:
            continue
        raw, status = scoring.score(step)
        if not status.is_success:
            return False
        raw = one_for_all(raw, ground.ok)
        final = step.is_summed or (isinstance(raw, int) and step.normalization is not None)
        if not final:
            ground.raws.append((step, raw))
            continue
        normalized, status = scoring.normalize(step, raw)
        if not status.is_success:
            return False
        ground.columns.append(Column(step, raw, normalized))
        total += normalized * step.weight
    ground.offset = np.where(ground.ok, total, NEVER)
    return True


def one_for_all(raw: Scores, ok: BoolArray) -> Scores:
    """A column whose feasible rows are all equal is kept as that one number."""
    if isinstance(raw, int) or not ok.any():
        return raw
    low, high = int(raw.min(where=ok, initial=_HIGHEST)), int(raw.max(where=ok, initial=-_HIGHEST))
    return low if low == high else raw


_HIGHEST = 2**62
