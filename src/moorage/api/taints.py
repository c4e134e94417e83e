"""Taints and tolerations, and whether a toleration matches a taint.

Plugins decide which effects matter: NoSchedule and NoExecute in Filter, PreferNoSchedule in Score. Follows
k8s.io/component-helpers/scheduling/corev1/helpers.go, and KEP-5471 for the operators Lt and Gt.
"""

import re
from collections.abc import Collection, Iterable

from moorage.api.meta import Int64, Record

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


class Taint(Record):
    """A taint of a node, which repels pods that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None

    def __str__(self) -> str:
        """Return the form of `kubectl taint`: `key=value:Effect`, or `key:Effect` without a value."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Record):
    """A toleration of a pod. An empty operator means Equal, an empty effect means every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


def tolerates(toleration: Toleration, taint: Taint, *, comparison: bool = False) -> bool:
    """Return whether this toleration matches this taint.

    `comparison` enables the operators Lt and Gt (feature gate TaintTolerationComparisonOperators): the
    taint's value must be less, or greater, than the toleration's, both as integers.
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
    """Return the first taint with one of the effects that no toleration matches, or None."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(t, taint, comparison=comparison) for t in tolerations):
            return taint
    return None


def _compares(value: str, operator: str, bound: str) -> bool:
    if not _INTEGER.fullmatch(value) or not _INTEGER.fullmatch(bound):
        return False
    return int(value) < int(bound) if operator == "Lt" else int(value) > int(bound)
