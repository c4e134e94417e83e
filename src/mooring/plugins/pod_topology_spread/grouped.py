"""Scores by groups of nodes: few matching pods make few different scores.

The pods of most selectors run on a handful of nodes. All other nodes of a zone have the same score, so scores
are worked out, and normalised, once per zone and once for each of these nodes; then they are spread to all
rows, which is the only step that touches every one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.framework.nodes import BoolArray, FloatArray, IntArray, Nodes
from mooring.framework.scoring import MAX_NODE_SCORE
from mooring.framework.topology import Bins
from mooring.plugins.pod_topology_spread.counted import Counted


class Grouped:
    """Raw scores: one per zone, and one for each row that differs from its zone."""

    __slots__ = ("_bins", "_rows", "_special", "_values", "nodes")

    def __init__(self, nodes: Nodes, bins: Bins | None, values: IntArray, rows: IntArray, special: IntArray):
        self.nodes = nodes
        self._bins = bins
        """Row → its group; None where there is only one."""
        self._values = values
        """Group → score; the first is for rows without a label, hence without a node."""
        self._rows = rows
        self._special = special
        """The scores of these rows."""

    def score_into(self, out: IntArray) -> None:
        self._spread(self._values, self._special, out)

    def _spread(self, values: IntArray, special: IntArray, out: IntArray) -> None:
        if self._bins is None:
            out.fill(values[1])
        else:
            values.take(self._bins, out=out, mode="clip")
        out[self._rows] = special

    def normalized(self, feasible: BoolArray) -> IntArray | int:
        """The same as `scoring.normalize` makes of the raw scores."""
        plain = self._values[self._present(feasible)]
        seen = np.concatenate((plain, self._special[feasible[self._rows]]))
        highest = int(seen.max()) if len(seen) else 0
        if highest == 0:
            return MAX_NODE_SCORE
        lowest = int(seen.min())
        out: IntArray = np.empty(len(feasible), dtype=np.int64)
        self._spread(turned(self._values, lowest, highest), turned(self._special, lowest, highest), out)
        return out

    def _present(self, feasible: BoolArray) -> BoolArray:
        """Group → whether one of its rows is feasible, the special ones left out."""
        plain = feasible
        if len(self._rows):
            plain = feasible.copy()
            plain[self._rows] = False
        present: BoolArray = np.zeros(len(self._values), dtype=np.bool_)
        if self._bins is None:
            present[1] = plain.any()
            return present
        # As a rule every group shows up among the first rows; then nobody needs to look at the rest.
        present[self._bins[:_FIRST][plain[:_FIRST]]] = True
        if not present[1:].all():
            present[self._bins[plain]] = True
        return present


_FIRST = 512


def group(
    counted: Sequence[Counted], weights: Sequence[float], tables: Sequence[FloatArray | None], nodes: Nodes
) -> Grouped | None:
    """The groups for at most one zone and one hostname constraint, whose keys all nodes have; None for
    anything else."""
    values, bins, host = np.zeros(2), None, None
    for found, weight, table in zip(counted, weights, tables, strict=True):
        topology = found.topology
        if topology.unlabelled or nodes.columns is not topology.live.columns:
            return None
        if table is None:
            if host is not None:
                return None
            host = found, weight
        elif bins is not None:
            return None
        else:
            bins = topology.bins_of(nodes)
            values = np.zeros(topology.size + 1)
            values[1:] = table * weight + (found.constraint.max_skew - 1)
    rows, special = _NO_ROWS, _NO_ROWS
    if host is not None:
        found, weight = host
        base = float(found.constraint.max_skew - 1)
        few = found.counter.few() if found.counter is not None else (_NO_ROWS, _NO_ROWS)
        if few is None:
            return None
        rows, numbers = few
        if len(rows) and rows.max() >= len(nodes.rows):  # pods of nodes that are gone
            rows, numbers = rows[rows < len(nodes.rows)], numbers[rows < len(nodes.rows)]
        own: FloatArray = np.add(numbers * weight, base, dtype=np.float64)
        special = rounded(own if bins is None else own + values[bins[rows]])
        values += base
    scores = rounded(values)
    scores[0] = 0
    return Grouped(nodes, bins, scores, rows, special)


_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


def rounded(scores: FloatArray) -> IntArray:
    """To the nearest whole number, halves up. Scores are 0 or at least 1, so that adding a half is exact."""
    return (scores + 0.5).astype(np.int64)


def turned(scores: IntArray, lowest: int, highest: int) -> IntArray:
    """The lowest raw score becomes the best."""
    found = scores * float(-MAX_NODE_SCORE)
    found += MAX_NODE_SCORE * (highest + lowest)
    found /= highest
    return found.astype(np.int64)
