"""Taints and tolerations: the records, the well-known keys, and who tolerates what.

Which effects matter when (NoSchedule in filters, PreferNoSchedule in scores) is left to the plugins.
"""

import re
from collections.abc import Collection, Iterable

from moorage.api.meta import Int64, Record

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINT_NOT_READY = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE = "node.kubernetes.io/unreachable"
TAINT_MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
TAINT_DISK_PRESSURE = "node.kubernetes.io/disk-pressure"
TAINT_PID_PRESSURE = "node.kubernetes.io/pid-pressure"
TAINT_NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"
TAINT_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
TAINT_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


class Taint(Record):
    """What a node refuses unless a pod tolerates it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None

    def __str__(self) -> str:
        """As `kubectl taint` writes it: `key=value:Effect`, `key:Effect` without a value."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Record):
    """What a pod puts up with. An empty operator means Equal, an empty effect every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


def tolerates(toleration: Toleration, taint: Taint, *, comparison: bool = False) -> bool:
    """Whether this toleration covers this taint.

    `comparison` switches the operators Lt and Gt on (gate TaintTolerationComparisonOperators): the taint's
    value must be below, or above, the toleration's, both as integers.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparison:
            return _compares(taint.value, toleration.operator, toleration.value)
        case _:
            return False


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = (NO_SCHEDULE, NO_EXECUTE),
    *,
    comparison: bool = False,
) -> Taint | None:
    """The first taint with one of the effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(t, taint, comparison=comparison) for t in tolerations
        ):
            return taint
    return None


def _compares(value: str, operator: str, bound: str) -> bool:
    if not _INTEGER.fullmatch(value) or not _INTEGER.fullmatch(bound):
        return False
    return int(value) < int(bound) if operator == "Lt" else int(value) > int(bound)
