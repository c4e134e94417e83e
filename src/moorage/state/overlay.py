"""A copy of a few rows for dry runs: pods are added and removed there, and the table never changes.

Only the rows that change are copied, and columns are gathered when they are read. An overlay of one row costs
a few microseconds in a cluster of any size. It is valid until the table changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from moorage.api.pod import Pod
from moorage.framework.nodes import (
    Amounts,
    ChangedRows,
    CodeArray,
    Columns,
    Compute,
    ComputeRow,
    EveryRow,
    FloatArray,
    IntArray,
    LabelColumns,
    Nodes,
    NodeView,
    TaintClass,
    TaintColumns,
)
from moorage.state.columns import LIMIT, clamp, read_only
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntry, RowLoad
from moorage.state.ranking import LowerPods, PodRanking, VictimColumns

_MAX_SINGLE_ROWS = 4
"""Up to this many rows, computing them one by one is cheaper."""
EntryOf = Callable[[Pod], PodEntry]


class LoadedColumns(Columns, Protocol):
    """Columns with loads that can be copied: the table or another overlay."""

    def load_on(self, row: int) -> RowLoad: ...


class OverlayAmounts:
    """The pods of each row of an overlay, and their sums. Implements `framework.nodes.AmountColumns`."""

    def __init__(self, base: LoadedColumns, index: IntArray, rows: Sequence[int]) -> None:
        self._base = base
        self._index = index
        self._rows = rows
        self._loads: dict[int, RowLoad] = {}
        """Row → its current pods and sums, for the rows that were changed."""
        self._hidden: dict[int, LowerPods] = {}
        """Row → its victims, for rows that were not looked at since `hide` and have no load here."""
        self._victims: VictimColumns | None = None
        self._requested: dict[str, IntArray] = {}
        """The columns gathered so far, kept up to date with `_loads`."""
        self._nonzero: dict[str, IntArray] = {}
        """The gathered columns with scoring defaults."""

    def allocatable(self, resource: str) -> IntArray:
        return self._base.amounts.allocatable(resource)[self._index]

    def requested(self, resource: str) -> IntArray:
        column = self._requested.get(resource)
        if column is None:
            column = self._requested[resource] = self._base.amounts.requested(resource)[self._index]
            if self._victims is not None:
                self._subtract(self._victims, resource, column)
            for row, load in self._loads.items():
                column[row] = clamp(load.requested.get(resource, 0))
        return read_only(column)

    def _subtract(self, victims: VictimColumns, resource: str, column: IntArray) -> None:
        """Subtract the victims. The caller handles the rows that have a load here."""
        if int(column.max(initial=0)) >= LIMIT:  # a clamped sum: only the loads have the exact one
            for row in list(self._hidden):
                self.own_load(row)
        else:
            column -= victims.totals(resource)

    def nonzero_requested(self, resource: str) -> IntArray:
        column = self._nonzero.get(resource)
        if column is None:
            column = self._nonzero[resource] = self._base.amounts.nonzero_requested(resource)[self._index]
            for row in list(self._hidden):
                self.own_load(row)
            for row, load in self._loads.items():
                column[row] = clamp(load.nonzero_requested.get(resource, 0))
        return read_only(column)

    def free(self, resource: str) -> IntArray:
        return self.allocatable(resource) - self.requested(resource)

    def floats(self, column: Amounts, resource: str) -> FloatArray:
        amounts = {"allocatable": self.allocatable, "requested": self.requested}
        return amounts.get(column, self.nonzero_requested)(resource).astype(np.float64)

    def hide(self, victims: VictimColumns) -> None:
        """Remove the victims from every row. Must be called before a row is changed or a column read."""
        self._victims = victims
        self._hidden = dict(enumerate(victims.by_node))

    def load_on(self, row: int) -> RowLoad:
        """Return the load of a row: its copy if it was changed, otherwise the load of the base."""
        load = self._loads.get(row)
        if load is None:
            load = self.own_load(row) if row in self._hidden else self._base.load_on(self._rows[row])
        return load

    def own_load(self, row: int) -> RowLoad:
        """Return a copy of the load that may be changed. Call `refresh` afterwards."""
        load = self._loads.get(row)
        if load is None:
            load = self._loads[row] = self._base.load_on(self._rows[row]).copy()
            for pod in self._hidden.pop(row, ()):
                load.remove(load.entries[pod.metadata.uid])
        return load

    def refresh(self, row: int, load: RowLoad) -> None:
        """Write the new sums of a row into the columns gathered so far."""
        for resource, column in self._requested.items():
            column[row] = clamp(load.requested.get(resource, 0))
        for resource, column in self._nonzero.items():
            column[row] = clamp(load.nonzero_requested.get(resource, 0))


class OverlayLabels:
    """The labels of some rows. Implements `framework.nodes.LabelColumns`."""

    def __init__(self, base: LabelColumns, index: IntArray) -> None:
        self._base = base
        self._index = index
        self.values: Callable[[str], Mapping[str, int]] = base.values

    def codes(self, key: str) -> CodeArray:
        return self._base.codes(key)[self._index]

    def numbers(self, key: str) -> FloatArray:
        return self._base.numbers(key)[self._index]


class OverlayTaints:
    """The taints of some rows. Implements `framework.nodes.TaintColumns`."""

    def __init__(self, base: TaintColumns, index: IntArray) -> None:
        self.ids: CodeArray = base.ids[index]
        self.classes: Sequence[TaintClass] = base.classes


class Overlay:
    """Row `i` stands for row `rows[i]` of `columns`, a table or another overlay. Implements `Columns`."""

    def __init__(self, columns: LoadedColumns, rows: Sequence[int]) -> None:
        self._base = columns
        self._index: IntArray = np.array(rows, dtype=np.int64)
        self._rows: list[int] = self._index.tolist()
        self.amounts = OverlayAmounts(columns, self._index, self._rows)

    def nodes(self) -> Nodes:
        """Return all rows of the overlay, in its order."""
        return Nodes(self, np.arange(len(self._rows), dtype=np.int64))

    def add_pod(self, row: int, entry: PodEntry) -> bool:
        """Add a pod to a row. Returns False if it is already there."""
        load = self.amounts.own_load(row)
        if entry.uid in load.entries:
            return False
        load.add(entry)
        self.amounts.refresh(row, load)
        return True

    def remove_pod(self, row: int, entry: PodEntry) -> bool:
        """Remove a pod from a row. Returns False if it is not there."""
        load = self.amounts.own_load(row)
        if entry.uid not in load.entries:
            return False
        load.remove(entry)
        self.amounts.refresh(row, load)
        return True

    @property
    def width(self) -> int:
        return len(self._rows)

    @property
    def labels(self) -> OverlayLabels:
        return OverlayLabels(self._base.labels, self._index)

    @property
    def taints(self) -> OverlayTaints:
        return OverlayTaints(self._base.taints, self._index)

    def node_column(self, key: Hashable, compute: Compute) -> npt.NDArray[Any]:
        return self._base.node_column(key, compute)[self._index]

    def row_column(self, key: Hashable, compute: Compute, compute_row: ComputeRow | None = None) -> npt.NDArray[Any]:
        """Compute the column afresh: there are few rows, and some of them have changed."""
        if compute_row is not None and len(self._rows) <= _MAX_SINGLE_ROWS:
            return np.array([compute_row(self.view(row)) for row in range(len(self._rows))])
        return np.asarray(compute(self.nodes()))

    @property
    def version(self) -> int:
        return self._base.version

    @property
    def node_version(self) -> int:
        return self._base.node_version

    def changed_since(self, version: int) -> list[int]:
        """Return all rows, because a short-lived overlay keeps no history."""
        return list(range(len(self._rows)))

    def settle(self) -> bool:
        return False  # arrays are gathered when they are read

    def changes_since(self, version: int) -> ChangedRows:
        changed = [self.view(row) for row in self.changed_since(version)]
        return self.version, self.node_version, changed

    def every_row(self) -> EveryRow:
        n, nodes = len(self._rows), self.nodes()
        return EveryRow(nodes, nodes, np.ones(n, dtype=np.bool_), np.arange(n))

    def table_rows(self, rows: IntArray) -> IntArray:
        return self._base.table_rows(self._index[rows])

    def node_names(self) -> Sequence[str]:
        names = self._base.node_names()
        return [names[row] for row in self._rows]

    def row_of(self, name: str) -> int:
        below = self._base.row_of(name)
        return self._rows.index(below) if below in self._rows else -1

    def view(self, row: int) -> NodeView:
        # Not kept: a view and its overlay would form a cycle that only the garbage collector can free.
        below = self._base.view(self._rows[row])
        return NodeView(self, row, below.node, below.allocatable)

    def load_on(self, row: int) -> RowLoad:
        return self.amounts.load_on(row)

    def lower_pods_on(self, rows: Sequence[int], priority: int) -> list[LowerPods]:
        return [self.amounts.load_on(row).ranked().below(priority) for row in rows]


class OverlayRows:
    """Copies of the rows of live nodes, numbered as their names. Implements `runtime.services.DryRunRows`.

    Changes are visible nowhere else.
    """

    __slots__ = ("_entry", "_overlay")

    def __init__(self, table: NodeTable, entry: EntryOf, node_names: Sequence[str]) -> None:
        self._overlay = Overlay(table, table.rows_of(node_names))
        self._entry = entry

    def add_pod(self, row: int, pod: Pod) -> None:
        """Add a pod to a row, unless it is already there."""
        self._overlay.add_pod(row, self._entry(pod))

    def remove_pod(self, row: int, pod: Pod) -> None:
        """Remove a pod from a row, if it is there."""
        self._overlay.remove_pod(row, self._entry(pod))

    def hide(self, victims: Sequence[Sequence[Pod]]) -> VictimColumns:
        """Remove several pods from every row, before any other change. Returns them with their requests."""
        columns = VictimColumns([pods if type(pods) is LowerPods else self._lower(pods) for pods in victims])
        self._overlay.amounts.hide(columns)
        return columns

    def _lower(self, pods: Sequence[Pod]) -> LowerPods:
        return LowerPods(PodRanking(((pod, self._entry(pod).requests) for pod in pods), ranked=True), 0)

    def nodes(self) -> Nodes:
        return self._overlay.nodes()

    def view(self, row: int) -> NodeView:
        return self._overlay.view(row)
