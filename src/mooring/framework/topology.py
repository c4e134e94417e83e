"""Topology: the domains of one label key, and which node is in which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mooring.framework.nodes import BoolArray, FloatArray, Nodes

ScalarT = TypeVar("ScalarT", bound=np.generic)
_FIRST = 512
"""Rows that are looked at first."""
Bins = npt.NDArray[np.intp]


class Topology:
    """The domains of a key while no node changes: get it anew, with `handle.topology(key)`, for each use.

    A domain is a number from 0 to `size - 1`, one for each value of the label; -1 stands for no label. There
    may be numbers for values that no node has any more.
    """

    __slots__ = (
        "_columns",
        "_used",
        "bins",
        "inhabited",
        "key",
        "live",
        "nodes",
        "size",
        "unlabelled",
        "values",
    )

    def __init__(self, live: Nodes, key: str) -> None:
        columns = live.columns
        self._columns = columns
        self.key = key
        self.live = live
        """All nodes."""
        self.values: Mapping[str, int] = columns.label_values(key)
        """Label value → domain."""
        self.size = len(self.values)
        self.bins: Bins = np.add(columns.label_codes(key), 1, dtype=np.intp)
        """Row → domain + 1, full width; 0 stands for no label, as `bincount` and `gather` want it."""
        self._used = self.bins[: int(live.rows.max(initial=-1)) + 1]
        """The rows up to the last node."""
        self.nodes: FloatArray = self.sums(np.ones(len(self.bins)))
        """Domain → number of nodes."""
        self.unlabelled = len(live) - int(np.count_nonzero(self.bins))
        """Number of nodes without the label."""
        self.inhabited = int(np.count_nonzero(self.nodes))
        """Number of domains that have nodes."""

    def domain(self, labels: Mapping[str, str]) -> int:
        """The domain of a node with these labels, -1 for none."""
        value = labels.get(self.key)
        return -1 if value is None else self.values.get(value, -1)

    def bins_of(self, nodes: Nodes) -> Bins:
        """The bins of some nodes, which may be those of a dry run."""
        if nodes.columns is self._columns:
            return nodes.take(self.bins)
        return self.bins[nodes.table_rows]

    def gather(self, per_domain: npt.NDArray[ScalarT], missing: Any, nodes: Nodes) -> npt.NDArray[ScalarT]:
        """The value of each node's domain, `missing` where the node has none."""
        values = np.empty(self.size + 1, dtype=per_domain.dtype)
        values[0] = missing
        values[1:] = per_domain
        return values.take(self.bins_of(nodes))

    def sums(self, column: npt.NDArray[Any]) -> FloatArray:
        """Per domain the sum of a column of full width. Sums of whole numbers are whole, as floats."""
        column = column[: len(self._used)]
        return np.bincount(self._used, column, self.size + 1)[1:]  # type: ignore[return-value]  # floats

    def present_in(self, nodes: Nodes) -> BoolArray:
        """Bin → whether some node of the view is there; the first is for nodes without the label."""
        mask = nodes.mask
        if mask is None or nodes.columns is not self._columns:
            counts = np.bincount(self.bins_of(nodes), minlength=self.size + 1)
        else:
            # As a rule every domain shows up among the first nodes; then nobody needs to count the rest.
            first = min(_FIRST, len(mask))
            counts = np.bincount(self.bins[:first][mask[:first]], minlength=self.size + 1)
            if self.unlabelled or np.count_nonzero(counts[1:]) < self.inhabited:
                counts = np.bincount(self.bins[: len(mask)][mask], minlength=self.size + 1)
        present: BoolArray = counts > 0
        return present

    def sums_of(self, rows: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> FloatArray:
        """The same for a column that is 0 but in a few rows."""
        return np.bincount(self.bins[rows], numbers, self.size + 1)[1:]  # type: ignore[return-value]  # floats
