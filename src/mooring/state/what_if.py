"""One node in a dry run, with pods in place of entries: what the runtime's trials work on."""

from __future__ import annotations

from mooring.api.pod import Pod
from mooring.framework.nodes import NodeView
from mooring.state.errors import CacheError
from mooring.state.node_table import NodeTable
from mooring.state.overlay import Overlay
from mooring.state.pod_entry import PodEntries


class WhatIfRow:
    """A copy of the row of one live node. Nothing done here is seen anywhere else."""

    __slots__ = ("_entries", "_overlay")

    def __init__(self, table: NodeTable, entries: PodEntries, node_name: str) -> None:
        row = table.row_of(node_name)
        if row < 0:
            raise CacheError(f"there is no node {node_name!r}")
        self._overlay = Overlay(table, (row,))
        self._entries = entries

    def add_pod(self, pod: Pod) -> None:
        """A pod that is there already changes nothing."""
        self._overlay.add_pod(0, self._entries.entry(pod))

    def remove_pod(self, pod: Pod) -> None:
        """A pod that is not there changes nothing."""
        self._overlay.remove_pod(0, self._entries.entry(pod))

    def view(self) -> NodeView:
        return self._overlay.view(0)
