"""Score nodes by the number of matching pods in their domains; fewer are better.

    raw score = sum over the soft constraints whose key the node has of
                matching pods in its domain · ln(number of domains + 2) + (maxSkew - 1)

Follows pkg/scheduler/framework/plugins/podtopologyspread/scoring.go. For the hostname key the pods on the node itself
count. Domains are counted among the feasible nodes, pods on all nodes that count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from moorage.api.node import HOSTNAME
from moorage.framework.indexes import Topology
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes
from moorage.framework.status import MAX_NODE_SCORE
from moorage.plugins.pod_topology_spread.counted import Counted, labelled

_MAX_ZONES = 64
"""With more zones than this, arrays are faster."""
_MAX_ROWS = 64
"""With more nodes than this that differ from their zone, arrays are faster."""


class Grouped:
    """Raw scores: one per zone, and one for each row that differs from its zone."""

    __slots__ = ("_at", "_rows", "_special", "_values", "_zones", "nodes")

    def __init__(
        self, nodes: Nodes, zones: Topology | None, values: list[int], rows: list[int], special: list[int]
    ) -> None:
        self.nodes = nodes
        self._zones = zones
        """None where there is only one group."""
        self._values = values
        """Bin → score; the first is for rows without a label, hence without a node."""
        self._rows = rows
        self._at: IntArray = np.array(rows, dtype=np.int64)
        self._special = special
        """The scores of these rows."""

    def score_into(self, out: IntArray) -> None:
        self._spread(self._values, self._special, out)

    def _spread(self, values: list[int], special: list[int], out: IntArray) -> None:
        if self._zones is None:
            out.fill(values[1])
        else:
            np.array(values).take(self._zones.bins_of(self.nodes), out=out, mode="clip")
        if special:
            out[self._at] = special

    def normalized(self, feasible: BoolArray) -> IntArray | int:
        """Return the raw scores as `scoring.normalize` scales them."""
        seen = self._of_zones(feasible)
        seen += [score for row, score in zip(self._rows, self._special, strict=True) if feasible[row]]
        highest = max(seen, default=0)
        if highest == 0:
            return MAX_NODE_SCORE
        lowest = min(seen)
        out: IntArray = np.empty(len(feasible), dtype=np.int64)
        self._spread(turn(self._values, lowest, highest), turn(self._special, lowest, highest), out)
        return out

    def _of_zones(self, feasible: BoolArray) -> list[int]:
        """Return the scores of the zones that have a feasible row, without the special rows."""
        plain = feasible
        if self._rows:
            plain = feasible.copy()
            plain[self._at] = False
        zones = self._zones
        if zones is None:
            return self._values[1:] if plain.any() else []
        if zones.all_in(plain):
            present = zones.inhabited_domains
            if len(present) == len(self._values) - 1:
                return self._values[1:]
        else:
            present = np.unique(zones.bins[: len(plain)][plain]) - 1
        return [self._values[domain + 1] for domain in present.tolist()]


def group(
    counted: Sequence[Counted], weights: Sequence[float], tables: Sequence[FloatArray | None], nodes: Nodes
) -> Grouped | None:
    """Return the groups for at most one zone and one hostname constraint, whose keys all nodes have; None for any other
    constraints."""
    zones: Topology | None = None
    host: tuple[Counted, float] | None = None
    pods, factor, skew, base = [0.0], 0.0, 0, 0.0
    for found, weight, table in zip(counted, weights, tables, strict=True):
        topology = found.topology
        if topology.unlabelled or nodes.columns is not topology.live.columns:
            return None
        if table is None:
            if host is not None:
                return None
            host = found, weight
        elif zones is not None or topology.size > _MAX_ZONES:
            return None
        else:
            zones, factor, skew, pods = topology, weight, found.constraint.max_skew - 1, table.tolist()
    rows: list[int] = []
    special: list[int] = []
    if host is not None:
        found, weight = host
        base = float(found.constraint.max_skew - 1)
        few = found.counter.few() if found.counter is not None else _NOWHERE
        if few is None or len(few) > _MAX_ROWS:
            return None
        used = len(nodes.rows)
        for row, number in few.items():
            if row < used:  # others are pods of nodes that are gone
                domain = int(zones.bins[row]) - 1 if zones is not None else -1
                shared = pods[domain] * factor + skew if domain >= 0 else 0.0
                rows.append(row)
                special.append(rounded_one(number * weight + base + shared))
    scores = [int(number * factor + skew + base + 0.5) for number in pods]
    return Grouped(nodes, zones, [0, *scores], rows, special)


_NOWHERE: dict[int, int] = {}


def rounded_one(score: float) -> int:
    """Round to the nearest integer, halves up. Scores are 0 or at least 1, so adding a half is exact."""
    return int(score + 0.5)


def rounded(scores: FloatArray) -> IntArray:
    return (scores + 0.5).astype(np.int64)


def turn(scores: Iterable[int], lowest: int, highest: int) -> list[int]:
    """Invert the scores: the lowest raw score becomes the best."""
    scale, top = float(-MAX_NODE_SCORE), MAX_NODE_SCORE * (highest + lowest)
    return [int((score * scale + top) / highest) for score in scores]


def turned(scores: IntArray, lowest: int, highest: int) -> IntArray:
    """Invert an array of scores: the fewest pods give the highest score."""
    found = scores * float(-MAX_NODE_SCORE)
    found += MAX_NODE_SCORE * (highest + lowest)
    found /= highest
    return found.astype(np.int64)


class ScoreState:
    """The result of PreScore, used by Score and NormalizeScore."""

    __slots__ = ("counted", "grouped", "require_all", "tables", "weights")

    def __init__(self, counted: Sequence[Counted], feasible: Nodes, require_all: bool) -> None:
        self.counted = counted
        self.require_all = require_all
        """Nodes without one of the keys are ignored; else only that key's part is."""
        kept = self.labelled(feasible)
        self.weights = _weights(counted, feasible, kept, require_all)
        self.tables = _tables(counted, require_all)
        """Matching pods per domain, for all keys but the hostname."""
        self.grouped: Grouped | None = None
        """The scores by groups of nodes, where that is possible."""

    def labelled(self, nodes: Nodes) -> BoolArray | None:
        """Return the nodes that are not ignored; None for all."""
        if not self.require_all:
            return None
        partial = (found.topology for found in self.counted if found.topology.unlabelled)
        return labelled(partial, lambda topology: topology.bins_of(nodes))


def _weights(counted: Sequence[Counted], feasible: Nodes, kept: BoolArray | None, require_all: bool) -> list[float]:
    """Return the weight of each constraint. Keys that no node has share one array of bins, and have one weight."""
    known: dict[tuple[int, bool], float] = {}
    weights: list[float] = []
    for found in counted:
        key = (id(found.topology.bins), found.topology.key == HOSTNAME)
        if key not in known:
            known[key] = math.log(domains(found, feasible, kept, require_all) + 2)
        weights.append(known[key])
    return weights


def _tables(counted: Sequence[Counted], require_all: bool) -> list[FloatArray | None]:
    """Return the matching pods per domain; None for the hostname. Constraints with equal counts share a table."""
    known: dict[tuple[int, int, int], FloatArray] = {}
    tables: list[FloatArray | None] = []
    for found in counted:
        key = found.counts_as
        if found.constraint.topology_key == HOSTNAME:
            tables.append(None)
            continue
        if key not in known:
            known[key] = pods_per_domain(found, require_all)
        tables.append(known[key])
    return tables


def domains(found: Counted, feasible: Nodes, kept: BoolArray | None, require_all: bool) -> int:
    """Return the number of domains of the feasible nodes."""
    topology = found.topology
    if topology.key == HOSTNAME:
        return len(feasible) if kept is None else int(np.count_nonzero(kept))
    if kept is None:
        if topology.is_covered_by(feasible):
            return topology.inhabited
        used = topology.present_in(feasible)
    else:
        used = np.bincount(topology.bins_of(feasible)[kept], minlength=topology.size + 1) > 0
    count = int(np.count_nonzero(used[1:]))
    if not require_all and used[0]:
        # Nodes without the label are a domain too, together with those that have it empty.
        empty = topology.values.get("", -1)
        count += int(empty < 0 or not used[empty + 1])
    return count


def pods_per_domain(found: Counted, require_all: bool) -> FloatArray:
    """Return the matching pods per domain. An empty label and a missing label are the same here."""
    pods, topology = found.pods(), found.topology
    empty = topology.values.get("", -1)
    if not require_all and empty >= 0 and found.counter is not None:
        unlabelled = topology.live.rows[topology.bins_of(topology.live) == 0]
        if found.where is not None:
            unlabelled = unlabelled[found.where[unlabelled]]
        pods[empty] += int(found.counter.per_row[unlabelled].sum())
    return pods


def score_into(state: ScoreState, nodes: Nodes, out: IntArray) -> None:
    """Write raw scores, also for ignored nodes; `normalize` sets these to 0."""
    state.grouped = group(state.counted, state.weights, state.tables, nodes)
    if state.grouped is not None:
        state.grouped.score_into(out)
        return
    total: FloatArray = np.zeros(len(nodes))
    for found, weight, table in zip(state.counted, state.weights, state.tables, strict=True):
        if found.topology.size:  # otherwise no node has the key
            total += _part(found, weight, table, nodes)
    out[:] = rounded(total)


def _part(found: Counted, weight: float, table: FloatArray | None, nodes: Nodes) -> FloatArray:
    """Return the part of the scores that one constraint adds."""
    if table is not None:
        return found.topology.gather(table * weight + _base(found), 0.0, nodes)
    part = _on_the_node(found, nodes) * weight
    part += _base(found)
    if found.topology.unlabelled:
        part *= found.topology.bins_of(nodes) > 0
    return part


def _base(found: Counted) -> float:
    return float(found.constraint.max_skew - 1)


def _on_the_node(found: Counted, nodes: Nodes) -> FloatArray:
    """Return the matching pods on each node itself."""
    if found.counter is None:
        return np.zeros(len(nodes))
    pods = found.counter.per_row
    own: FloatArray = nodes.take(pods) if nodes.columns is found.topology.live.columns else pods[nodes.table_rows]
    return own


def normalize(state: ScoreState, scores: IntArray, nodes: Nodes, counted: BoolArray | None = None) -> IntArray:
    """Make the lowest raw score the best and set ignored nodes to 0. Only counted nodes determine the lowest and the
    highest score."""
    kept = state.labelled(nodes)
    seen = scores if kept is None else scores[kept if counted is None else kept & counted]
    if kept is None and counted is not None:
        seen = scores[counted]
    highest = int(seen.max()) if len(seen) else 0
    if highest == 0:
        best = np.full_like(scores, MAX_NODE_SCORE)
        return best if kept is None else best * kept
    best = turned(scores, int(seen.min()), highest)
    return best if kept is None else best * kept
