"""Score nodes by the utilization of their storage, with the gate StorageCapacityScoring (KEP-4049).

Follows pkg/scheduler/framework/plugins/volumebinding/scorer.go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from moorage.api import quantity
from moorage.api.resource_weights import UtilizationShapePoint
from moorage.api.storage import PersistentVolumeClaim
from moorage.framework.nodes import BoolArray, IntArray
from moorage.framework.status import MAX_NODE_SCORE
from moorage.plugins.volume_binding.finding import Findings
from moorage.plugins.volume_binding.matching import NONE

MAX_SHAPE_SCORE = 10
FULL = 100

_LIMIT = 1 << 50
"""More bytes count as this many, so that sums and percentages stay within int64."""

Published = Callable[[PersistentVolumeClaim], Iterable[tuple[BoolArray, int]]]
"""Returns the nodes and bytes of each published capacity that is large enough for a claim."""


def shape_score(shape: Sequence[UtilizationShapePoint], percent: int) -> int:
    """Interpolate linearly between the points, flat outside, in integers truncated towards zero."""
    scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    before = None
    for point in shape:
        if percent <= point.utilization:
            if before is None:
                return point.score * scale
            rise = (point.score - before.score) * scale * (percent - before.utilization)
            step = abs(rise) // (point.utilization - before.utilization)
            return before.score * scale + (step if rise >= 0 else -step)
        before = point
    return shape[-1].score * scale


def score_nodes(shape: Sequence[UtilizationShapePoint], found: Findings, published: Published) -> IntArray:
    """Score all nodes at once. A node that Filter refused scores 0.

    If a node has a static binding, only the classes of these count: requested and capacity are added up per class.
    Otherwise the classes of claims to provision count for which a capacity is published: the requests are added up, and
    the capacity is that of the last claim.
    """
    size = len(found.nodes)
    static, dynamic = _ClassSums(size), _ClassSums(size)
    for claim, volumes, picks in found.picks:
        for index in np.unique(picks[picks != NONE]).tolist():
            offered = quantity.value(volumes[index].spec.capacity.get("storage", 0))
            static.add(volumes[index].spec.storage_class_name, picks == index, requested_bytes(claim), offered)
    for claim, where in found.to_provision:
        undecided = where.copy()
        for covered, capacity in published(claim):
            here = undecided & covered
            dynamic.add(claim.spec.storage_class_name or "", here, requested_bytes(claim), capacity, replace=True)
            undecided &= ~covered
    by_percent = np.array([shape_score(shape, percent) for percent in range(FULL + 1)], dtype=np.int64)
    scores = np.where(static.known, static.scores(by_percent), dynamic.scores(by_percent))
    scores[found.refused] = 0
    return scores


class _ClassSums:
    """Requested and available bytes per storage class and node."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._classes: dict[str, tuple[BoolArray, IntArray, IntArray]] = {}

    def add(self, name: str, where: BoolArray, requested: int, capacity: int, *, replace: bool = False) -> None:
        if name not in self._classes:
            zeros = np.zeros((2, self._size), dtype=np.int64)
            self._classes[name] = np.zeros(self._size, dtype=np.bool_), zeros[0], zeros[1]
        known, asked, offered = self._classes[name]
        known |= where
        asked[where] += min(requested, _LIMIT)
        if replace:
            offered[where] = min(capacity, _LIMIT)
        else:
            offered[where] += min(capacity, _LIMIT)

    @property
    def known(self) -> BoolArray:
        """The nodes with a class."""
        found = np.zeros(self._size, dtype=np.bool_)
        for known, _, _ in self._classes.values():
            found |= known
        return found

    def scores(self, by_percent: IntArray) -> IntArray:
        """Return the mean over the classes of each node, rounded half up; 0 for a node without a class."""
        total, count = np.zeros((2, self._size), dtype=np.int64)
        for known, asked, offered in self._classes.values():
            full = (offered == 0) | (asked > offered)
            percent = np.where(full, FULL, asked * FULL // np.maximum(offered, 1))
            total += np.where(known, by_percent[percent], 0)
            count += known
        return (2 * total + count) // np.maximum(2 * count, 1)


def requested_bytes(claim: PersistentVolumeClaim) -> int:
    return quantity.value(claim.spec.resources.requests.get("storage", 0))
