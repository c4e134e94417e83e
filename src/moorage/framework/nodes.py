"""The cluster as plugins see it: `Nodes`, all candidate nodes in columns, and `NodeView`, one node.

Both are read-only views of a `Columns` (the node table, or the overlay of a dry run) and hold no data. A view
is valid until the hook that received it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.taints import Taint
from moorage.framework.status import Code

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

Amounts = Literal["allocatable", "requested", "nonzero_requested"]

Compute = Callable[["Nodes"], npt.NDArray[Any]]
"""Computes a derived column for some nodes: one entry per node of the view."""
ComputeRow = Callable[["NodeView"], Any]
"""Computes the entry of a single node; cheaper if few rows have changed."""

T = TypeVar("T")
_MAX_KEPT = 64
"""Values that a view keeps for plugins. Keys may come from pods, so users could create many."""

Reason = str | Sequence[str] | Callable[[int], str]
"""One text for all refused nodes, one text per node of the view, or a function of the index in the view."""


@dataclass(frozen=True, slots=True)
class TaintClass:
    """A distinct combination of taints and `spec.unschedulable`; few exist in any cluster."""

    taints: tuple[Taint, ...]
    unschedulable: bool


@dataclass(frozen=True, slots=True)
class EveryRow:
    """All rows in use, in row order, including rows without a node; hot plugins are called for these."""

    nodes: Nodes
    listed: Nodes
    """The rows with a node, in snapshot order."""
    alive: BoolArray
    """Whether each row has a node."""
    positions: IntArray
    """Row → place in snapshot order, which breaks ties."""
    in_order: bool = False
    """Whether row `i` is at place `i` in snapshot order."""

    def dense(self, mask: BoolArray) -> Nodes:
        """Return the rows where `mask` is true, in snapshot order. `mask` must be false for rows without a
        node, and must not change afterwards."""
        return SomeNodes(self, mask)


ChangedRows = tuple[int, int, "list[NodeView]"]
"""What has changed since some version: the current version, that of the nodes, and each changed node
once, without rows that have no node. A plain tuple, because one is built for every pod."""


class AmountColumns(Protocol):
    """What nodes have and what their pods request, per resource."""

    def allocatable(self, resource: str) -> IntArray: ...

    def requested(self, resource: str) -> IntArray:
        """Return the requests of the pods on each node, including assumed pods; `pods` is their number."""

    def nonzero_requested(self, resource: str) -> IntArray:
        """Return `requested` with the defaults that scoring uses; only for cpu and memory."""

    def free(self, resource: str) -> IntArray:
        """Return allocatable minus requested; negative on an overcommitted node."""

    def floats(self, column: Amounts, resource: str) -> FloatArray:
        """Return `allocatable`, `requested` or `nonzero_requested` in float64, for divisions."""


class LabelColumns(Protocol):
    """The labels of the nodes, per key."""

    def codes(self, key: str) -> CodeArray:
        """Interned label values, -1 where the node has no such label."""

    def values(self, key: str) -> Mapping[str, int]:
        """Value → code of that column. Codes stay valid for as long as this returns the same object."""

    def numbers(self, key: str) -> FloatArray:
        """The label as an integer, NaN where it is absent or none; for Gt and Lt."""


class TaintColumns(Protocol):
    """The taints of the nodes. Ids stay valid for as long as `classes` is the same object."""

    @property
    def ids(self) -> CodeArray:
        """Index of each node's class in `classes`."""

    @property
    def classes(self) -> Sequence[TaintClass]: ...


class RankedPods(Protocol):
    """The pods of one node by importance: higher priority first, then earlier start."""

    @property
    def pods(self) -> Sequence[Pod]: ...

    def below(self, priority: int) -> Sequence[Pod]:
        """Return the pods of lower priority."""


class NodeLoad(Protocol):
    """The pods of one node and the sums of their requests."""

    @property
    def requested(self) -> Mapping[str, int]: ...

    @property
    def nonzero_requested(self) -> Mapping[str, int]: ...

    def pods(self) -> Sequence[Pod]: ...

    def ranked(self) -> RankedPods:
        """Return the pods by importance."""


class Columns(Protocol):
    """The storage behind the views: full-width, read-only arrays with one entry per row."""

    @property
    def width(self) -> int:
        """The length of every column, including free rows."""

    @property
    def amounts(self) -> AmountColumns: ...

    @property
    def labels(self) -> LabelColumns: ...

    @property
    def taints(self) -> TaintColumns: ...

    def node_column(self, key: Hashable, compute: Compute) -> npt.NDArray[Any]:
        """Return a derived column that depends only on the node objects (labels, taints, allocatable). It
        is computed once per key, and later only for changed nodes; rows without a node have 0. `key` must
        contain everything that `compute` depends on besides the nodes."""

    def row_column(self, key: Hashable, compute: Compute, compute_row: ComputeRow | None = None) -> npt.NDArray[Any]:
        """Return a derived column that depends on the pods of the node too (requested, pods)."""

    def node_names(self) -> Sequence[str]:
        """Return the name of each row; "" for a free row."""

    def row_of(self, name: str) -> int:
        """Return the row of a node; -1 if there is none."""

    def table_rows(self, rows: IntArray) -> IntArray:
        """Return the rows of the node table behind these rows; they differ in a dry run."""

    def view(self, row: int) -> NodeView: ...

    def every_row(self) -> EveryRow: ...

    def load_on(self, row: int) -> NodeLoad: ...

    def lower_pods_on(self, rows: Sequence[int], priority: int) -> Sequence[Sequence[Pod]]:
        """Return the pods below a priority, for many rows at once."""

    @property
    def version(self) -> int:
        """The number of the latest change of any row."""

    @property
    def node_version(self) -> int:
        """The number of the latest change of any node object."""

    def changed_since(self, version: int) -> list[int]:
        """Return the rows that changed after that version, each once, including rows without a node."""

    def settle(self) -> bool:
        """Bring all columns up to date. Return whether arrays that were returned before stay up to date
        until a node changes."""

    def changes_since(self, version: int) -> ChangedRows:
        """Return the current versions and the changed nodes; called for every pod."""


class NodeView:
    """One node: the object and its pods. It corresponds to NodeInfo in the Go framework."""

    __slots__ = ("_columns", "allocatable", "labels", "name", "node", "row")

    def __init__(self, columns: Columns, row: int, node: Node, allocatable: Mapping[str, int]) -> None:
        self._columns = columns
        self.row = row
        self.node: Node = node
        """The object, with annotations, conditions, addresses and images."""
        self.name: str = node.name
        self.labels: Mapping[str, str] = node.labels
        """Read-only, like everything here."""
        self.allocatable: Mapping[str, int] = allocatable
        """Resource → amount: cpu in milli-units, `pods` as a number, all others in base units."""

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.node.taints

    @property
    def unschedulable(self) -> bool:
        return self.node.unschedulable

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods on this node, including assumed pods."""
        return self._columns.load_on(self.row).pods()

    @property
    def ranked(self) -> RankedPods:
        """The pods on this node by importance."""
        return self._columns.load_on(self.row).ranked()

    @property
    def requested(self) -> Mapping[str, int]:
        """The requests of the pods on this node; `pods` is their number."""
        return self._columns.load_on(self.row).requested

    @property
    def nonzero_requested(self) -> Mapping[str, int]:
        """`requested`, with the defaults that scoring assumes for pods without requests."""
        return self._columns.load_on(self.row).nonzero_requested

    def free(self, resource: str) -> int:
        """Return allocatable minus requested; negative on an overcommitted node."""
        return self.allocatable.get(resource, 0) - self.requested.get(resource, 0)

    def alone(self) -> Nodes:
        """Return this node as a view of one node."""
        return Nodes(self._columns, np.array([self.row], dtype=np.int64))

    def __repr__(self) -> str:
        return f"NodeView({self.name})"


class Nodes:
    """The remaining candidate nodes in snapshot order: index `i` of every array is the node `names[i]`.

    `rows` are the table rows behind the indexes, for plugins that keep columns.
    """

    __slots__ = ("_kept", "_names", "_whole", "columns", "rows")

    def __init__(self, columns: Columns, rows: IntArray) -> None:
        self.columns = columns
        self.rows = rows
        self._names: list[str] | None = None
        self._kept: dict[Hashable, tuple[int, Any]] = {}
        # Rows 0..n-1 in order are by far the most common case: then every column is a slice, not a copy.
        n = len(rows)
        self._whole = n > 0 and rows[0] == 0 and rows[-1] == n - 1 and bool((np.diff(rows) == 1).all())

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[NodeView]:
        view = self.columns.view
        for row in self.rows.tolist():
            yield view(row)

    def __getitem__(self, index: int) -> NodeView:
        return self.columns.view(int(self.rows[index]))

    @property
    def mask(self) -> BoolArray | None:
        """The mask over the rows of the table that these nodes were made from, or None."""
        return None

    @property
    def names(self) -> list[str]:
        """The names of the nodes, in the order of every column."""
        if self._names is None:
            table = self.columns.node_names()
            self._names = [table[row] for row in self.rows.tolist()]
        return self._names

    @property
    def table_rows(self) -> IntArray:
        """The rows of the node table, as indexes number them."""
        return self.columns.table_rows(self.rows)

    def take(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the entries of a full-width column for these nodes."""
        return column[: len(self.rows)] if self._whole else column.take(self.rows)

    def allocatable(self, resource: str) -> IntArray:
        """Return cpu in milli-units, `pods` as a number, all others in base units; 0 if a node has none."""
        return self.take(self.columns.amounts.allocatable(resource))

    def requested(self, resource: str) -> IntArray:
        """Return the requests of the pods on each node, in the units of `allocatable`."""
        return self.take(self.columns.amounts.requested(resource))

    def nonzero_requested(self, resource: str) -> IntArray:
        """`requested`, with the defaults that scoring assumes for pods without requests."""
        return self.take(self.columns.amounts.nonzero_requested(resource))

    def floats(self, column: Amounts, resource: str) -> FloatArray:
        """Return `allocatable`, `requested` or `nonzero_requested` in float64; exact below 2^53."""
        return self.take(self.columns.amounts.floats(column, resource))

    def free(self, resource: str) -> IntArray:
        """Return allocatable minus requested."""
        return self.take(self.columns.amounts.free(resource))

    def label_codes(self, key: str) -> CodeArray:
        """Return a number for each value of the label; -1 for a node without the label."""
        return self.take(self.columns.labels.codes(key))

    def has_label(self, key: str) -> BoolArray:
        """Return whether each node has the label, with any value."""
        present: BoolArray = self.label_codes(key) >= 0
        return present

    def label_equals(self, key: str, *values: str) -> BoolArray:
        """Return whether the label of each node has one of these values."""
        known = self.columns.labels.values(key)
        codes = [known[value] for value in values if value in known]
        column = self.label_codes(key)
        match codes:
            case []:
                return np.zeros(len(self), dtype=np.bool_)
            case [code]:
                equal: BoolArray = column == code
                return equal
            case _:
                return np.isin(column, codes)

    def label_numbers(self, key: str) -> FloatArray:
        """Return the label as a number; NaN if there is none."""
        return self.take(self.columns.labels.numbers(key))

    def node_column(self, key: Hashable, compute: Compute) -> npt.NDArray[Any]:
        """Return a column that depends only on the node objects; see `Columns.node_column`."""
        return self.take(self.columns.node_column(key, compute))

    def row_column(self, key: Hashable, compute: Compute, compute_row: ComputeRow | None = None) -> npt.NDArray[Any]:
        """Return a column that depends on the pods of each node too; see `Columns.row_column`."""
        return self.take(self.columns.row_column(key, compute, compute_row))

    def kept(self, key: Hashable, make: Callable[[Nodes], T]) -> T:
        """Return the value of `make`, which is kept with the view until a node changes; for hot plugins.
        `key` must contain everything that it depends on besides the nodes. The value may hold arrays of
        this view, which are up to date until the hook returns. The view of a dry run keeps nothing."""
        columns = self.columns
        if not columns.settle() or not self._whole:
            return make(self)
        version = columns.node_version
        found = self._kept.get(key)
        if found is None or found[0] != version:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            found = self._kept[key] = (version, make(self))
        value: T = found[1]
        return value

    def by_taints(self, judge: Callable[[TaintClass], bool | int]) -> npt.NDArray[Any]:
        """Call `judge` once per distinct combination of taints, and return the answer for each node."""
        verdicts = np.array([judge(cls) for cls in self.columns.taints.classes])
        spread: npt.NDArray[Any] = verdicts[self.take(self.columns.taints.ids)]
        return spread

    def named(self, *names: str) -> BoolArray:
        """Return whether each node has one of these names."""
        wanted = [row for row in map(self.columns.row_of, names) if row >= 0]
        return np.isin(self.rows, wanted)

    def where(self, mask: BoolArray) -> Nodes:
        """Return the nodes where `mask` is true."""
        return Nodes(self.columns, self.rows[mask])

    def refuse(self, mask: BoolArray, reason: Reason, code: Code = Code.UNSCHEDULABLE) -> Refusals:
        """Refuse the nodes where `mask` is true, for one reason."""
        return Refusals(self).add(mask, reason, code)

    def refusals(self) -> Refusals:
        """Return an empty answer; call `add` for several reasons and codes per node."""
        return Refusals(self)


class SomeNodes(Nodes):
    """Nodes given by a mask; their rows are computed on demand, because many hooks do not use them."""

    __slots__ = ("_chosen", "_every", "_mask")

    def __init__(self, every: EveryRow, mask: BoolArray) -> None:
        self.columns = every.nodes.columns
        self._every = every
        self._mask = mask
        self._chosen: IntArray | None = None
        self._names = None
        self._kept = {}
        self._whole = False

    @property
    def mask(self) -> BoolArray:
        return self._mask

    @property
    def rows(self) -> IntArray:  # type: ignore[override]
        if self._chosen is None:
            listed = self._every.listed.rows
            chosen = self._mask.take(listed)
            self._chosen = listed if chosen.all() else listed[chosen]
        return self._chosen

    def __len__(self) -> int:
        if self._chosen is not None:
            return len(self._chosen)
        return int(np.count_nonzero(self._mask))


class Refusal(NamedTuple):
    """One reason and its nodes."""

    mask: BoolArray
    reason: Reason
    code: Code

    def text(self, index: int) -> str:
        if isinstance(self.reason, str):
            return self.reason
        text = self.reason(index) if callable(self.reason) else self.reason[index]
        if not isinstance(text, str):
            raise TypeError(f"the reason of a refusal is a text, got {text!r}")
        return text


class Refusals:
    """The answer of `filter_nodes`: which nodes are refused, why, and with which code.

    A node with several entries is refused with all their reasons, in the order of `add`, and with the gravest
    code: Error, then UnschedulableAndUnresolvable, then Unschedulable or Pending.
    """

    __slots__ = ("entries", "nodes")

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.entries: list[Refusal] = []

    def add(self, mask: BoolArray, reason: Reason, code: Code = Code.UNSCHEDULABLE) -> Refusals:
        """Refuse the nodes where `mask` is true. Return self, so that calls can be chained."""
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (len(self.nodes),):
            shape = f"{mask.dtype} array of shape {mask.shape}" if isinstance(mask, np.ndarray) else repr(mask)
            raise TypeError(f"a refusal mask is a bool array with one entry per node ({len(self.nodes)}), got {shape}")
        if not isinstance(code, Code):
            raise TypeError(f"the code of a refusal is a Code, got {code!r}")
        self.entries.append(Refusal(mask, reason, code))
        return self
