"""The counts over pods that plugins share, made when the first plugin asks for them."""

from __future__ import annotations

from mooring.state.affinity_terms import HeldTerms
from mooring.state.counters import Counters
from mooring.state.node_table import NodeTable


class Counting:
    """One per process. A profile without affinity and spreading costs nothing."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._counters: Counters | None = None
        self._terms: HeldTerms | None = None

    def pod_counters(self) -> Counters:
        if self._counters is None:
            self._counters = Counters(self._table)
            self._table.observe(self._counters)
        return self._counters

    def affinity_terms(self) -> HeldTerms:
        if self._terms is None:
            self._terms = HeldTerms(self._table)
            self._table.observe(self._terms)
        return self._terms
