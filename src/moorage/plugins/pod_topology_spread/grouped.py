"""Scores by groups of nodes: few matching pods make few different scores.

The pods of most selectors run on a handful of nodes. All other nodes of a zone have the same score, so scores
are worked out, and normalised, once per zone and once for each of these nodes; then they are spread to all
rows, which is the only step that touches every one of them. What is left is so little that plain numbers are
faster than arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from moorage.framework.indexes import Topology
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes
from moorage.framework.status import MAX_NODE_SCORE
from moorage.plugins.pod_topology_spread.counted import Counted

_MOST_ZONES = 64
"""With more of them arrays are faster."""
_MOST_ROWS = 64
"""With more nodes that differ from their zone arrays are faster."""


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
        """What `scoring.normalize` makes of the raw scores."""
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
        """The scores of the zones that have a feasible row, the special ones left out."""
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
    """The groups for at most one zone and one hostname constraint, whose keys all nodes have; None for
    anything else."""
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
        elif zones is not None or topology.size > _MOST_ZONES:
            return None
        else:
            zones, factor, skew, pods = topology, weight, found.constraint.max_skew - 1, table.tolist()
    rows: list[int] = []
    special: list[int] = []
    if host is not None:
        found, weight = host
        base = float(found.constraint.max_skew - 1)
        few = found.counter.few() if found.counter is not None else _NOWHERE
        if few is None or len(few) > _MOST_ROWS:
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
    """To the nearest whole number, halves up. Scores are 0 or at least 1, so that adding a half is exact."""
    return int(score + 0.5)


def rounded(scores: FloatArray) -> IntArray:
    return (scores + 0.5).astype(np.int64)


def turn(scores: Iterable[int], lowest: int, highest: int) -> list[int]:
    """The lowest raw score becomes the best."""
    scale, top = float(-MAX_NODE_SCORE), MAX_NODE_SCORE * (highest + lowest)
    return [int((score * scale + top) / highest) for score in scores]


def turned(scores: IntArray, lowest: int, highest: int) -> IntArray:
    """Scores of an array turned round: fewest pods become the highest score."""
    found = scores * float(-MAX_NODE_SCORE)
    found += MAX_NODE_SCORE * (highest + lowest)
    found /= highest
    return found.astype(np.int64)
