"""A copy of a few rows for dry runs: pods come and go there, and the table underneath never changes.

Only what a change touches is copied, and columns are gathered when they are read, so an overlay of one row
costs a few microseconds whatever the size of the cluster. It is valid for as long as the table does not
change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from moorage.api.pod import Pod
from moorage.framework.nodes import (
    Amounts,
    CodeArray,
    Columns,
    Compute,
    ComputeRow,
    EveryRow,
    FloatArray,
    IntArray,
    LabelColumns,
    News,
    Nodes,
    NodeView,
    TaintClass,
    TaintColumns,
)
from moorage.state.columns import LIMIT, clamp, read_only
from moorage.state.pod_entry import NodeLoad, PodEntry
from moorage.state.ranking import LowerPods, PodRanking, VictimColumns
from moorage.state.table_columns import TableColumns

_FEW = 4
"""Rows up to which computing them one by one is cheaper."""
EntryOf = Callable[[Pod], PodEntry]


class LoadedColumns(Columns, Protocol):
    """Columns whose loads can be copied: the table, or another overlay."""

    def load_on(self, row: int) -> NodeLoad: ...


class OverlayAmounts:
    """The pods of each row of an overlay, and their sums in columns. Implements
    `framework.nodes.AmountColumns`."""

    def __init__(self, base: LoadedColumns, index: IntArray, rows: Sequence[int]) -> None:
        self._base = base
        self._index = index
        self._rows = rows
        self._loads: dict[int, NodeLoad] = {}
        """Rows that were changed, with their pods and sums of now."""
        self._hidden: dict[int, LowerPods] = {}
        """Rows without their victims that no caller has looked at closely, so they have no load here."""
        self._victims: VictimColumns | None = None
        self._requested: dict[str, IntArray] = {}
        """Columns gathered so far, kept up to date with `_loads`."""
        self._nonzero: dict[str, IntArray] = {}
        """Gathered columns with scoring defaults."""

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
        """Rows with a load of their own are left to the caller."""
        if int(column.max(initial=0)) >= LIMIT:  # a clamped sum: only the loads know the true one
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
        """Take its victims from every row; before any row is changed or any column read."""
        self._victims = victims
        self._hidden = dict(enumerate(victims.by_node))

    def load_on(self, row: int) -> NodeLoad:
        """The load of a row, of its own if it was changed."""
        load = self._loads.get(row)
        if load is None:
            load = self.own_load(row) if row in self._hidden else self._base.load_on(self._rows[row])
        return load

    def own_load(self, row: int) -> NodeLoad:
        """A load of the row that may be changed; call `refresh` afterwards."""
        load = self._loads.get(row)
        if load is None:
            load = self._loads[row] = self._base.load_on(self._rows[row]).copy()
            for pod in self._hidden.pop(row, ()):
                load.remove(load.entries[pod.metadata.uid])
        return load

    def refresh(self, row: int, load: NodeLoad) -> None:
        """Bring the new sums of a row into the columns gathered so far."""
        for resource, column in self._requested.items():
            column[row] = clamp(load.requested.get(resource, 0))
        for resource, column in self._nonzero.items():
            column[row] = clamp(load.nonzero_requested.get(resource, 0))


class SomeLabels:
    """The labels of some rows. Implements `framework.nodes.LabelColumns`."""

    def __init__(self, base: LabelColumns, index: IntArray) -> None:
        self._base = base
        self._index = index
        self.values: Callable[[str], Mapping[str, int]] = base.values

    def codes(self, key: str) -> CodeArray:
        return self._base.codes(key)[self._index]

    def numbers(self, key: str) -> FloatArray:
        return self._base.numbers(key)[self._index]


class SomeTaints:
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
        """All rows of the overlay, in its order."""
        return Nodes(self, np.arange(len(self._rows), dtype=np.int64))

    def add_pod(self, row: int, entry: PodEntry) -> bool:
        """Put a pod on a row. False when it is there already."""
        load = self.amounts.own_load(row)
        if entry.uid in load.entries:
            return False
        load.add(entry)
        self.amounts.refresh(row, load)
        return True

    def remove_pod(self, row: int, entry: PodEntry) -> bool:
        """Take a pod from a row. False when it is not there."""
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
    def labels(self) -> SomeLabels:
        return SomeLabels(self._base.labels, self._index)

    @property
    def taints(self) -> SomeTaints:
        return SomeTaints(self._base.taints, self._index)

    def node_column(self, key: Hashable, compute: Compute) -> npt.NDArray[Any]:
        return self._base.node_column(key, compute)[self._index]

    def row_column(
        self, key: Hashable, compute: Compute, compute_row: ComputeRow | None = None
    ) -> npt.NDArray[Any]:
        """Computed afresh: a few rows, some of which have changed."""
        if compute_row is not None and len(self._rows) <= _FEW:
            return np.array([compute_row(self.view(row)) for row in range(len(self._rows))])
        return np.asarray(compute(self.nodes()))

    @property
    def generation(self) -> int:
        return self._base.generation

    @property
    def node_generation(self) -> int:
        return self._base.node_generation

    def changed_since(self, generation: int) -> list[int]:
        """All rows: an overlay is short-lived and keeps no history."""
        return list(range(len(self._rows)))

    def settle(self) -> bool:
        return False  # arrays are gathered when they are read

    def news(self, generation: int) -> News:
        changed = [self.view(row) for row in self.changed_since(generation)]
        return self.generation, self.node_generation, changed

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
        # Made on each call: a kept view and its overlay would form a cycle, left to the garbage collector.
        below = self._base.view(self._rows[row])
        return NodeView(self, row, below.node, below.allocatable)

    def load_on(self, row: int) -> NodeLoad:
        return self.amounts.load_on(row)

    def lower_pods_on(self, rows: Sequence[int], priority: int) -> list[LowerPods]:
        return [self.amounts.load_on(row).ranked().below(priority) for row in rows]


class DryRunRows:
    """Copies of the rows of live nodes, numbered as the names are. Nothing done here is seen elsewhere."""

    __slots__ = ("_entry", "_overlay")

    def __init__(self, table: TableColumns, entry: EntryOf, node_names: Sequence[str]) -> None:
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
        self._overlay.amounts.hide(columns)
        return columns

    def _lower(self, pods: Sequence[Pod]) -> LowerPods:
        return LowerPods(PodRanking(((pod, self._entry(pod).requests) for pod in pods), ranked=True), 0)

    def nodes(self) -> Nodes:
        return self._overlay.nodes()

    def view(self, row: int) -> NodeView:
        return self._overlay.view(row)
