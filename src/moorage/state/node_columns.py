"""Labels and taints of the nodes as integer columns.

There is a column per label key that a plugin has asked for; what the labels mean (zones, hostnames) is not
known here. Taints and cordons are one small integer per node, so that a pod's tolerations are judged once per
kind of node.
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
"""Code of a row without the label."""

_COLUMNS = 1024
"""Columns kept; the one not asked for the longest goes first. Keys come from pods, so any user can name
many."""
_LABEL_CROWD = 1024
"""Values of a key below which its codes are never made afresh."""
_NO_LABELS: Mapping[str, str] = {}
PLAIN = TaintClass((), False)
"""No taints and not cordoned: always class 0, also of free rows and ghosts."""
_TAINT_CROWD = 64


class LabelColumn:
    """The values of one label key: a code per row, and on demand the value as a number."""

    __slots__ = ("codes", "numbers", "values")

    def __init__(self, key: str, labels: list[Mapping[str, str]], width: int) -> None:
        self.codes: CodeArray = np.full(width, ABSENT, dtype=np.int32)
        self.numbers: FloatArray | None = None
        """NaN where the label is absent or no integer; None until a plugin compares numbers."""
        used = {row: found[key] for row, found in enumerate(labels) if key in found}
        self.values: Interner[str] = Interner(_LABEL_CROWD, len(set(used.values())))
        for row, value in used.items():
            self.codes[row] = self.values.code(value)

    def put(self, row: int, value: str | None) -> None:
        self.codes[row] = ABSENT if value is None else self.values.code(value)
        if self.numbers is not None:
            self.numbers[row] = number(value)

    def read_numbers(self) -> FloatArray:
        """Fill `numbers` from the codes: each distinct value is parsed once."""
        by_code = np.array([*map(number, self.values.codes), np.nan])
        # ABSENT is the last entry of by_code.
        self.numbers = by_code[self.codes]
        return self.numbers

    def grow(self, width: int) -> None:
        more = width - len(self.codes)
        self.codes = np.concatenate([self.codes, np.full(more, ABSENT, dtype=np.int32)])
        if self.numbers is not None:
            self.numbers = np.concatenate([self.numbers, np.full(more, np.nan)])


class LabelColumns:
    """Columns by label key, built when first asked for and kept up to date from then on. Implements
    `framework.nodes.LabelColumns`.

    Codes of a key stay valid for as long as `values` returns the same mapping object; now and then a key is
    coded afresh, to get rid of the values of nodes that are gone.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._labels: list[Mapping[str, str]] = [_NO_LABELS] * width
        """Row → labels of the node; empty for free rows and ghosts."""
        self._columns: dict[str, LabelColumn] = {}
        """By key, the one asked for last at the end."""
        self._nodes_with: Counter[str] = Counter()
        """Key → nodes. Pods may name many keys that no node has: these share a column."""
        self._absent = LabelColumn("", self._labels, width)

    def codes(self, key: str) -> CodeArray:
        return read_only(self._column(key).codes)

    def values(self, key: str) -> Mapping[str, int]:
        return self._column(key).values.codes

    def numbers(self, key: str) -> FloatArray:
        column = self._column(key)
        return read_only(column.read_numbers() if column.numbers is None else column.numbers)

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        """The node of this row has these labels now."""
        old = self._labels[row]
        self._labels[row] = labels
        if labels.keys() != old.keys():
            self._nodes_with.update(labels.keys())
            self._nodes_with.subtract(old.keys())
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
            if len(self._columns) >= _COLUMNS:
                del self._columns[next(iter(self._columns))]
        self._columns[key] = column
        return column


def number(value: str | None) -> float:
    """A label as Gt and Lt read it: a decimal int64, else NaN."""
    whole = None if value is None else parse_integer(value)
    return np.nan if whole is None else float(whole)


class TaintClasses:
    """Row → class. Implements `framework.nodes.TaintColumns`. The time a taint was added is no part of its
    class.

    Ids stay valid for as long as `classes` returns the same object: some taints carry a time stamp as
    value, so unused classes pile up and the table is coded afresh now and then.
    """

    def __init__(self, width: int) -> None:
        self._ids: CodeArray = np.zeros(width, dtype=np.int32)
        self._interner: Interner[TaintClass] = Interner(_TAINT_CROWD)
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
        """Give codes to the classes in use only."""
        known = list(self._interner.codes)
        used = np.unique(np.append(self._ids, 0))
        self._interner = Interner(_TAINT_CROWD, len(used))
        fresh = np.zeros(len(known), dtype=np.int32)
        for old in used.tolist():
            fresh[old] = self._interner.code(known[old])
        self._ids = fresh[self._ids]


def taint_class(node: Node) -> TaintClass:
    """The class of a node."""
    if not node.spec.taints:
        return TaintClass((), True) if node.spec.unschedulable else PLAIN
    return TaintClass(tuple(map(_timeless, node.spec.taints)), node.spec.unschedulable)


def _timeless(taint: Taint) -> Taint:
    return msgspec.structs.replace(taint, time_added=None) if taint.time_added is not None else taint
