"""NodeStatuses: why each node was refused in one attempt, kept as one small id per row. The FailedScheduling
message, PostFilter plugins, the decision record and `explain` read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.framework.nodes import BoolArray, IntArray, Nodes
from moorage.framework.status import SUCCESS, Code, Status

Ids = npt.NDArray[np.unsignedinteger[Any]]
_WIDER: dict[int, type[np.unsignedinteger[Any]]] = {2**8: np.uint16, 2**16: np.uint32}
"""The first ids that need a wider type."""


class NodeStatuses:
    """The Status of each row in one attempt. A row without an entry was not refused. Iterating gives the
    refused nodes as pairs of name and Status."""

    __slots__ = ("_ids_by_status", "_lent", "counts", "ids", "nodes", "verdicts")

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        """All nodes of the attempt, in snapshot order."""
        self.ids: Ids = np.zeros(nodes.columns.width, dtype=np.uint8)
        """Full width; 0 means not refused. One byte per row until there are more than 255 verdicts."""
        self.verdicts: list[Status] = [SUCCESS]
        self.counts: list[int] = [0]
        """Id → number of rows that have it."""
        self._ids_by_status: dict[tuple[Code, tuple[str, ...], str], int] = {}
        self._lent = False
        """Whether the data is shared with another object and must be copied before a change."""

    @classmethod
    def empty(cls) -> NodeStatuses:
        """Return the statuses of no nodes."""
        none = cls.__new__(cls)
        none.ids, none.verdicts, none.counts = np.zeros(0, dtype=np.uint8), [SUCCESS], [0]
        none._ids_by_status, none._lent = {}, False
        return none

    def intern(self, status: Status) -> int:
        """Return the id of `status` in this attempt."""
        if self._lent:
            self._own()
        key = (status.code, status.reasons, status.plugin)
        found = self._ids_by_status.get(key)
        if found is None:
            found = self._ids_by_status[key] = len(self.verdicts)
            self.verdicts.append(status)
            self.counts.append(0)
            if found in _WIDER:
                self.ids = self.ids.astype(_WIDER[found])
        return found

    def set_row(self, row: int, status: Status) -> None:
        """Refuse one row, replacing an earlier refusal."""
        found = self.intern(status)
        self.counts[self.ids[row]] -= 1
        self.ids[row] = found
        self.counts[found] += 1

    def clear_row(self, row: int) -> None:
        """Take back the refusal of a row."""
        if self._lent:
            self._own()
        self.counts[self.ids[row]] -= 1
        self.ids[row] = 0

    def copy(self) -> NodeStatuses:
        """Return a copy that may be changed. It shares the data until then, so this object must not change."""
        copied = NodeStatuses.__new__(NodeStatuses)
        copied.nodes, copied.ids = self.nodes, self.ids
        copied.verdicts, copied.counts = self.verdicts, self.counts
        copied._ids_by_status = self._ids_by_status
        copied._lent = True
        return copied

    @property
    def is_lent(self) -> bool:
        """Whether this is a copy without changes."""
        return self._lent

    def _own(self) -> None:
        self._lent = False
        self.ids = self.ids.copy()
        self.verdicts, self.counts = list(self.verdicts), list(self.counts)
        self._ids_by_status = dict(self._ids_by_status)

    def set_rows(self, rows: IntArray, status: Status) -> None:
        """Refuse rows that are not refused yet."""
        found = self.intern(status)
        self.ids[rows] = found
        self.counts[found] += len(rows)

    def set_where(self, mask: BoolArray, status: Status, number: int | None = None) -> None:
        """Refuse the rows of a mask over the first rows of the table; `number` is its count, if known."""
        found = self.intern(status)
        np.putmask(self.ids[: len(mask)], mask, found)
        self.counts[found] += int(np.count_nonzero(mask)) if number is None else number

    def get(self, name: str) -> Status:
        """Return the status of a node by name; Success if it was not refused."""
        row = self.nodes.columns.row_of(name)
        return self.verdicts[self.ids[row]] if row >= 0 else SUCCESS

    def __iter__(self) -> Iterator[tuple[str, Status]]:
        """Iterate over the refused nodes with their status, in snapshot order."""
        for name, found in zip(self.nodes.names, self.nodes.take(self.ids).tolist(), strict=True):
            if found:
                yield name, self.verdicts[found]

    def __len__(self) -> int:
        return sum(self.counts[1:])

    def rows_with(self, *codes: Code) -> IntArray:
        """Return the rows whose status has one of the codes, in snapshot order."""
        wanted = np.array([verdict.code in codes for verdict in self.verdicts])
        found: IntArray = self.nodes.rows[wanted[self.nodes.take(self.ids)]]
        return found

    def names_with(self, *codes: Code) -> list[str]:
        """Return the names of the nodes whose status has one of the codes, in snapshot order."""
        return Nodes(self.nodes.columns, self.rows_with(*codes)).names

    def count_by_verdict(self) -> Sequence[tuple[Status, int]]:
        """Return each refusal with its number of nodes."""
        found = zip(self.verdicts, self.counts, strict=True)
        return [(status, count) for status, count in found if count > 0 and status is not SUCCESS]

    def histogram(self) -> Counter[str]:
        """Count the nodes by reason. A node with several reasons counts once for each."""
        total: Counter[str] = Counter()
        for status, count in self.count_by_verdict():
            for reason in status.reasons:
                total[reason] += count
        return total

    def rejectors(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the plugins that refused nodes, and separately those that answered Pending."""
        refused = [status for status, _ in self.count_by_verdict()]
        pending = frozenset(s.plugin for s in refused if s.code is Code.PENDING and s.plugin)
        return frozenset(s.plugin for s in refused if s.plugin and s.code is not Code.PENDING), pending
