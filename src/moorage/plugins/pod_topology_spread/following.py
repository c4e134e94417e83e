"""Update spread scores incrementally for pods of one template, instead of computing them again.

The score of a node depends on two numbers only: the matching pods in its zone and those on the node itself. Rows are
therefore grouped by (zone, pods on the node). A pod that is added or removed moves one row to another group. Scores are
computed per group, and one pass over all rows spreads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.api.node import HOSTNAME
from moorage.framework.access import Version
from moorage.framework.indexes import Bins, PodCounter
from moorage.framework.nodes import BoolArray, IntArray, Nodes
from moorage.framework.status import MAX_NODE_SCORE
from moorage.plugins.pod_topology_spread.counted import Counted
from moorage.plugins.pod_topology_spread.scoring import ScoreState, rounded_one, turn

_MAX_GROUPS = 64
"""With more groups than this, scoring all rows is faster."""


class Part:
    """The part of the score that one constraint adds: `pods · weight + base`."""

    __slots__ = ("base", "weight")

    def __init__(self, found: Counted | None, weight: float) -> None:
        self.weight = weight
        self.base = float(found.constraint.max_skew - 1) if found is not None else 0.0


NOTHING = Part(None, 0.0)


class IncrementalSpread:
    """Implements `framework.hot.IncrementalScore` for at most one zone and one hostname constraint."""

    def __init__(
        self,
        counter: PodCounter,
        host: Part,
        zone: Part,
        bins: Bins,
        size: int,
        feasible: BoolArray,
        versions: Sequence[Version],
    ) -> None:
        self._versions = [(version, version.value) for version in versions]
        """What decides about the selector."""
        self._counter = counter
        self._host, self._zone = host, zone
        self._bins = bins
        self._feasible = feasible
        self._version = counter.version
        counter.changed_since(self._version)  # from now on it remembers
        numbers = counter.per_row[: len(bins)].astype(np.int64)
        self._numbers = numbers
        """Row → matching pods that the groups include."""
        self._pods: list[int] = np.bincount(bins, numbers, size).astype(np.int64).tolist()
        """Bin → matching pods; the first is for rows without a node."""
        self._stride = 2 * int(numbers.max(initial=0)) + 4 if host is not NOTHING else 1
        """Groups of a zone: one for each number of pods on a node."""
        self._groups: IntArray = bins * self._stride
        if host is not NOTHING:
            self._groups += numbers
        self._raw: dict[int, int] = {}
        """Group → raw score, as they were counted last."""
        self._scores: IntArray = np.zeros(size * self._stride, dtype=np.int64)
        present = np.bincount(self._groups[feasible])
        self._present: dict[int, int] = {group: int(present[group]) for group in np.flatnonzero(present).tolist()}
        """Group → its feasible rows, of which it has at least one."""

    def add_to(self, base: IntArray, weight: int, out: IntArray) -> bool:
        if not self._catch_up() or len(self._present) > _MAX_GROUPS:
            return False
        self._score_groups(weight)
        self._scores.take(self._groups, out=out, mode="clip")
        np.add(out, base, out=out)
        return True

    def raw_scores(self, rows: IntArray) -> list[int]:
        raw = self._raw
        return [raw[group] for group in self._groups[rows].tolist()]

    def _catch_up(self) -> bool:
        """Move the rows whose pods have changed to their new groups."""
        for version, value in self._versions:
            if version.value != value:
                return False
        counter = self._counter
        changed = counter.changed_since(self._version)
        if changed is None:
            return False
        self._version = counter.version
        for row in changed:
            if row < len(self._bins):
                number, before = counter.number(row), int(self._numbers[row])
                if number != before and not self._move(row, before, number):
                    return False
        return True

    def _move(self, row: int, before: int, number: int) -> bool:
        self._numbers[row] = number
        zone = int(self._bins[row])
        self._pods[zone] += number - before
        if self._host is NOTHING:
            return True
        if number >= self._stride:
            return False
        old, new = zone * self._stride + before, zone * self._stride + number
        self._groups[row] = new
        if self._feasible[row]:
            present = self._present
            present[new] = present.get(new, 0) + 1
            present[old] -= 1
            if not present[old]:
                del present[old]
        return True

    def _score_groups(self, weight: int) -> None:
        """Score the groups with feasible rows, with the arithmetic of `grouped` in the same order."""
        host, zone, stride = self._host, self._zone, self._stride
        raw = self._raw = {}
        for group in self._present:
            index, number = divmod(group, stride)
            own = number * host.weight + host.base
            raw[group] = rounded_one(own + (self._pods[index] * zone.weight + zone.base))
        highest, lowest = max(raw.values(), default=0), min(raw.values(), default=0)
        best = turn(raw.values(), lowest, highest) if highest else [MAX_NODE_SCORE] * len(raw)
        scores = self._scores
        for group, score in zip(raw, best, strict=True):
            scores[group] = score * weight


def follow(
    state: ScoreState, nodes: Nodes, feasible: BoolArray, versions: Sequence[Version]
) -> IncrementalSpread | None:
    """Return the incremental score of a pod that was scored; None if its constraints cannot be grouped. `versions`
    change when the pod may get another selector."""
    host, zone, counter, size = NOTHING, NOTHING, None, 1
    bins: Bins | None = None
    for found, weight in zip(state.counted, state.weights, strict=True):
        topology = found.topology
        other = found.counter is not counter and counter is not None
        if found.counter is None or other or found.where is not None:
            return None
        if topology.unlabelled or nodes.columns is not topology.live.columns:
            return None
        counter = found.counter
        if topology.key == HOSTNAME:
            if host is not NOTHING:
                return None
            host = Part(found, weight)
        elif bins is not None:
            return None
        else:
            zone, bins, size = Part(found, weight), topology.bins_of(nodes), topology.size + 1
    if counter is None:
        return None
    if bins is None:
        bins = np.zeros(len(nodes), dtype=np.intp)
    return IncrementalSpread(counter, host, zone, bins, size, feasible, versions)
