"""How an attempt ended without a bound pod, with the texts in the exact form that kube-scheduler writes
them."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from moorage.framework.status import Code, Status
from moorage.runtime.record import ERROR, SCHEDULED, UNSCHEDULABLE

NO_NODES = "no nodes available to schedule pods"


class Outcome(enum.Enum):
    """How an attempt ended; the values are the results that records and metrics use."""

    SCHEDULED = SCHEDULED
    UNSCHEDULABLE = UNSCHEDULABLE
    ERROR = ERROR


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt, or its binding, ended without a bound pod."""

    outcome: Outcome
    message: str
    plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = None
    """None leaves the pod's nomination alone, "" clears it."""
    status: Status | None = None
    """The plugin's answer behind it, where a single one decided."""


def refusal(status: Status) -> Failure:
    """Reserve or Permit said no: a rejection is reported as by a cluster of one node, an Error as it is."""
    if not status.is_rejected:
        return Failure(Outcome.ERROR, status.message, nominated_node="", status=status)
    by = frozenset({status.plugin} if status.plugin else ())
    pending = status.code is Code.PENDING
    return Failure(
        Outcome.UNSCHEDULABLE,
        refused_after_choice(status.reasons),
        frozenset() if pending else by,
        by if pending else frozenset(),
        nominated_node="",
        status=status,
    )


def histogram(counts: Counter[str]) -> str:
    """`1 reason a, 2 reason b`, sorted as strings: "10 x" stands before "2 y"."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def fit_error(
    nodes: int, *, pre_filter: str = "", reasons: Counter[str] | None = None, post_filter: str = ""
) -> str:
    """The FailedScheduling message."""
    text = f"0/{nodes} nodes are available:"
    if pre_filter:
        text += f" {pre_filter}."
    elif reasons:
        text += f" {histogram(reasons)}."
    return f"{text} {post_filter}" if post_filter else text


def refused_after_choice(reasons: Iterable[str]) -> str:
    """Reserve or Permit refused the chosen node: reported as if the cluster had only that one."""
    return fit_error(1, reasons=Counter(reasons))
