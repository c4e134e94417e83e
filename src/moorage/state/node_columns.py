"""The columns of labels and taints of the node table; those of amounts are in `amounts`.

There is a column per label key that a plugin has asked for; what a label means (zone, hostname) is not known
here. Taints and `spec.unschedulable` are one small integer per node, so that the tolerations of a pod are
evaluated once per class of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from moorage.api.node import Node
from moorage.api.selectors import parse_integer
from moorage.api.taints import Taint
from moorage.framework.nodes import CodeArray, FloatArray, TaintClass
from moorage.state.columns import Interner, read_only

ABSENT = -1
"""The code of a row without the label."""

_MAX_LABEL_COLUMNS = 1024
"""Number of label columns kept, the least recently used go first. Their keys come from pods, so any user can
name many."""
_MIN_LABEL_CROWD = 1024
"""Codes of a key with fewer values are never rebuilt."""
_NO_LABELS: Mapping[str, str] = {}
PLAIN = TaintClass((), False)
"""No taints and schedulable: always class 0, also of free rows and ghosts."""
_MIN_TAINT_CROWD = 64


class LabelColumn:
    """The values of one label key: a code per row, and on demand the value as a number."""

    __slots__ = ("codes", "numbers", "values")

    def __init__(self, key: str, labels: list[Mapping[str, str]], width: int) -> None:
        self.codes: CodeArray = np.full(width, ABSENT, dtype=np.int32)
        self.numbers: FloatArray | None = None
        """NaN if the label is absent or not an integer. None until a plugin compares numbers."""
        used = {row: found[key] for row, found in enumerate(labels) if key in found}
        self.values: Interner[str] = Interner(_MIN_LABEL_CROWD, len(set(used.values())))
        for row, value in used.items():
            self.codes[row] = self.values.code(value)

    def put(self, row: int, value: str | None) -> None:
        self.codes[row] = ABSENT if value is None else self.values.code(value)
        if self.numbers is not None:
            self.numbers[row] = number(value)

    def read_numbers(self) -> FloatArray:
        """Fill `numbers` from the codes, parsing each distinct value once."""
        by_code = np.array([*map(number, self.values.codes), np.nan])
        # ABSENT is the last entry of by_code.
        self.numbers = by_code[self.codes]
        return self.numbers

    def grow(self, width: int) -> None:
        more = width - len(self.codes)
        self.codes = np.concatenate([self.codes, np.full(more, ABSENT, dtype=np.int32)])
        if self.numbers is not None:
            self.numbers = np.concatenate([self.numbers, np.full(more, np.nan)])


class StoredLabelColumns:
    """The label columns by key. Implements `framework.nodes.LabelColumns`.

    A column is built when a plugin first asks for it and is kept up to date from then on. The codes of a key
    are valid as long as `values` returns the same mapping object: now and then a key gets new codes, to drop
    the values of nodes that are gone.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._labels: list[Mapping[str, str]] = [_NO_LABELS] * width
        """Row → labels of the node; empty for free rows and ghosts."""
        self._columns: dict[str, LabelColumn] = {}
        """Key → column, the most recently used one last."""
        self._nodes_with: Counter[str] = Counter()
        """Key → number of nodes. Keys that no node has share one column."""
        self._absent = LabelColumn("", self._labels, width)

    def codes(self, key: str) -> CodeArray:
        return read_only(self._column(key).codes)

    def values(self, key: str) -> Mapping[str, int]:
        return self._column(key).values.codes

    def numbers(self, key: str) -> FloatArray:
        column = self._column(key)
        return read_only(column.read_numbers() if column.numbers is None else column.numbers)

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        """Set the labels of the node in this row."""
        old = self._labels[row]
        self._labels[row] = labels
        if labels.keys() != old.keys():
            self._nodes_with.update(labels.keys())
            for key in old:
                self._nodes_with[key] -= 1
                if not self._nodes_with[key]:
                    del self._nodes_with[key]
                    self._columns.pop(key, None)
        for key, column in self._columns.items():
            value = labels.get(key)
            if value != old.get(key):
                column.put(row, value)
                if column.values.crowded:
                    self._columns[key] = LabelColumn(key, self._labels, self._width)

    def clear(self, row: int) -> None:
        self.put(row, _NO_LABELS)

    def grow(self, width: int) -> None:
        self._labels.extend([_NO_LABELS] * (width - self._width))
        self._width = width
        for column in (*self._columns.values(), self._absent):
            column.grow(width)

    def _column(self, key: str) -> LabelColumn:
        column = self._columns.pop(key, None)
        if column is None:
            if not self._nodes_with[key]:
                return self._absent
            column = LabelColumn(key, self._labels, self._width)
            if len(self._columns) >= _MAX_LABEL_COLUMNS:
                del self._columns[next(iter(self._columns))]
        self._columns[key] = column
        return column


def number(value: str | None) -> float:
    """Parse a label as Gt and Lt do: a decimal int64, otherwise NaN."""
    whole = None if value is None else parse_integer(value)
    return np.nan if whole is None else float(whole)


class TaintClasses:
    """The taint class of every row. Implements `framework.nodes.TaintColumns`.

    A class ignores the time at which a taint was added. Ids are valid as long as `classes` returns the same
    object: some taints have a timestamp as value, so unused classes pile up and are dropped now and then.
    """

    def __init__(self, width: int) -> None:
        self._ids: CodeArray = np.zeros(width, dtype=np.int32)
        self._interner: Interner[TaintClass] = Interner(_MIN_TAINT_CROWD)
        self._interner.code(PLAIN)
        self._classes: tuple[TaintClass, ...] = (PLAIN,)

    @property
    def ids(self) -> CodeArray:
        return read_only(self._ids)

    @property
    def classes(self) -> Sequence[TaintClass]:
        return self._classes

    def put(self, row: int, node: Node) -> None:
        self._ids[row] = self._interner.code(taint_class(node))
        if len(self._interner.codes) > len(self._classes):
            if self._interner.crowded:
                self._rebuild()
            self._classes = tuple(self._interner.codes)

    def clear(self, row: int) -> None:
        self._ids[row] = 0

    def grow(self, width: int) -> None:
        self._ids = np.concatenate([self._ids, np.zeros(width - len(self._ids), dtype=np.int32)])

    def _rebuild(self) -> None:
        """Assign new codes, to the classes in use only."""
        known = list(self._interner.codes)
        used = np.unique(np.append(self._ids, 0))
        self._interner = Interner(_MIN_TAINT_CROWD, len(used))
        fresh = np.zeros(len(known), dtype=np.int32)
        for old in used.tolist():
            fresh[old] = self._interner.code(known[old])
        self._ids = fresh[self._ids]


def taint_class(node: Node) -> TaintClass:
    """Return the taint class of a node."""
    if not node.spec.taints:
        return TaintClass((), True) if node.spec.unschedulable else PLAIN
    return TaintClass(tuple(map(_without_time, node.spec.taints)), node.spec.unschedulable)


def _without_time(taint: Taint) -> Taint:
    return msgspec.structs.replace(taint, time_added=None) if taint.time_added is not None else taint
