"""Nodes in a dry run, with pods in place of entries: what the runtime's trials work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.api.pod import Pod
from mooring.framework.nodes import Nodes, NodeView
from mooring.framework.ranking import LowerPods, RankedPods, VictimColumns
from mooring.state.node_table import NodeTable
from mooring.state.overlay import Overlay
from mooring.state.pod_entry import PodEntry

EntryOf = Callable[[Pod], PodEntry]


class WhatIfRows:
    """Copies of the rows of live nodes, numbered as the names are. Nothing done here is seen elsewhere."""

    __slots__ = ("_entry", "_overlay")

    def __init__(self, table: NodeTable, entry: EntryOf, node_names: Sequence[str]) -> None:
        self._overlay = Overlay(table, table.rows_of(node_names))
        self._entry = entry

    def add_pod(self, row: int, pod: Pod) -> None:
        """A pod that is there already changes nothing."""
        self._overlay.add_pod(row, self._entry(pod))

    def remove_pod(self, row: int, pod: Pod) -> None:
        """A pod that is not there changes nothing."""
        self._overlay.remove_pod(row, self._entry(pod))

    def hide(self, victims: Sequence[Sequence[Pod]]) -> VictimColumns:
        """Take several pods from every row, before anything else; returns them with their requests."""
        columns = VictimColumns([pods if type(pods) is LowerPods else self._lower(pods) for pods in victims])
        self._overlay.hide(columns)
        return columns

    def _lower(self, pods: Sequence[Pod]) -> LowerPods:
        return LowerPods(RankedPods(((pod, self._entry(pod).requests) for pod in pods), ranked=True), 0)

    def nodes(self) -> Nodes:
        return self._overlay.nodes()

    def view(self, row: int) -> NodeView:
        return self._overlay.view(row)


class WhatIfRow:
    """The same for a single node."""

    __slots__ = ("_rows",)

    def __init__(self, table: NodeTable, entry: EntryOf, node_name: str) -> None:
        self._rows = WhatIfRows(table, entry, (node_name,))

    def add_pod(self, pod: Pod) -> None:
        self._rows.add_pod(0, pod)

    def remove_pod(self, pod: Pod) -> None:
        self._rows.remove_pod(0, pod)

    def view(self) -> NodeView:
        return self._rows.view(0)
