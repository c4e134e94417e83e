"""The topologies that plugins ask for, made once per key and kept while no node changes."""

from __future__ import annotations

from mooring.framework.topology import Topology
from mooring.state.node_table import NodeTable

_KEYS = 256
"""Keys remembered; they come from pods, so anybody can name many."""


class Topologies:
    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._made_for = (-1, 0)
        """Generation of the nodes and width of the table: pods of an unknown node widen it too."""
        self._known: dict[str, Topology] = {}

    def topology(self, key: str) -> Topology:
        present = (self._table.node_generation, self._table.width)
        if self._made_for != present or len(self._known) >= _KEYS:
            self._made_for = present
            self._known.clear()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Topology(self._table.nodes(), key)
        return found
