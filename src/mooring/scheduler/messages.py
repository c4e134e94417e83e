"""The texts of an attempt that found no node, in the exact form that kube-scheduler writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

NO_NODES = "no nodes available to schedule pods"


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
    """Reserve or Permit refused the chosen node: told as if the cluster had only that one."""
    return fit_error(1, reasons=Counter(reasons))
