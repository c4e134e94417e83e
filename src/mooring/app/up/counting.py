"""The few numbers that `mooring up` shows while it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """As the scheduler sees the cluster."""

    nodes: int = 0
    bound: int = 0
    pending: int = 0
