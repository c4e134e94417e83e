"""Score nodes by the utilization of their storage, with the gate StorageCapacityScoring.

Follows pkg/scheduler/framework/plugins/volumebinding/scorer.go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from moorage.api import quantity
from moorage.api.resource_weights import UtilizationShapePoint
from moorage.api.storage import CSIStorageCapacity, PersistentVolumeClaim
from moorage.framework.status import MAX_NODE_SCORE
from moorage.plugins.volume_binding.finding import VolumePlan

MAX_SHAPE_SCORE = 10
FULL = 100

Amounts = tuple[int, int]
"""Requested and available bytes of one class."""


def score_classes(shape: Sequence[UtilizationShapePoint], classes: Sequence[Amounts]) -> int:
    """Return the mean over the storage classes, rounded half up; all classes have the same weight."""
    if not classes:
        return 0
    total = sum(shape_score(shape, utilization(*amounts)) for amounts in classes)
    return (2 * total + len(classes)) // (2 * len(classes))


def utilization(requested: int, capacity: int) -> int:
    """Return the utilization in percent; a request that does not fit counts as full."""
    return FULL if capacity == 0 or requested > capacity else requested * FULL // capacity


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


def static_amounts(plan: VolumePlan) -> list[Amounts]:
    """Return the requested and the used size per class of the chosen volumes."""
    sums: defaultdict[str, Amounts] = defaultdict(lambda: (0, 0))
    for claim, volume in plan.static:
        name = volume.spec.storage_class_name
        requested, capacity = sums[name]
        offered = quantity.value(volume.spec.capacity.get("storage", 0))
        sums[name] = (requested + requested_bytes(claim), capacity + offered)
    return list(sums.values())


def dynamic_amounts(found: Sequence[tuple[PersistentVolumeClaim, CSIStorageCapacity]]) -> list[Amounts]:
    """Return the requested size and the size that the node can still provision, per class; a capacity counts once."""
    sums: defaultdict[str, Amounts] = defaultdict(lambda: (0, 0))
    for claim, capacity in found:
        name = claim.spec.storage_class_name or ""
        capacity_bytes = quantity.value(capacity.capacity) if capacity.capacity is not None else 0
        sums[name] = (sums[name][0] + requested_bytes(claim), capacity_bytes)
    return list(sums.values())


def requested_bytes(claim: PersistentVolumeClaim) -> int:
    return quantity.value(claim.spec.resources.requests.get("storage", 0))
