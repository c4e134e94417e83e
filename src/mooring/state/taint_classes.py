"""Taints and cordons as one small integer per node, so that a pod's tolerations are judged once per kind of
node."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from mooring.api.node import Node
from mooring.api.taints import Taint
from mooring.framework.nodes import CodeArray, TaintClass
from mooring.state.interning import Interner
from mooring.state.read_only import read_only

PLAIN = TaintClass((), False)
"""No taints and not cordoned: always class 0, also of free rows and ghosts."""

_SMALLEST_CROWD = 64


class TaintClasses:
    """Row → class. The time a taint was added is no part of its class.

    Ids stay valid for as long as `classes` returns the same object: some taints carry a time stamp as
    value, so unused classes pile up and the table is coded afresh now and then.
    """

    def __init__(self, width: int) -> None:
        self._ids: CodeArray = np.zeros(width, dtype=np.int32)
        self._interner: Interner[TaintClass] = Interner(_SMALLEST_CROWD)
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
        self._interner = Interner(_SMALLEST_CROWD, len(used))
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
