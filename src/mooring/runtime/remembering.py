"""The evaluations of a process, by signature."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from mooring.runtime.evaluations import Evaluation

MOST_BYTES = 64 * 1024 * 1024


class Evaluations:
    """Bounded in bytes, the least recently used go first. A signature is remembered when it is seen the
    second time: most signatures come once."""

    def __init__(self, most_bytes: int = MOST_BYTES, seen: int = 4096) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, tuple[Evaluation, int]] = OrderedDict()
        """Signature → evaluation and the bytes that it is charged with."""
        self.latest: Hashable = None
        """The signature that was asked for last."""
        self.latest_found: Evaluation | None = None
        """Its evaluation, if any."""
        self._bytes = 0
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._most_seen = seen

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, signature: Hashable) -> Evaluation | None:
        found = self._kept.get(signature)
        if found is None:
            return None
        self._kept.move_to_end(signature)
        self.latest, self.latest_found = signature, found[0]
        return found[0]

    def is_known(self, signature: Hashable) -> bool:
        """Whether the signature was seen before; from now on it was."""
        known = signature in self._seen
        self._seen[signature] = None
        if len(self._seen) > self._most_seen:
            self._seen.popitem(last=False)
        return known

    def put(self, signature: Hashable, found: Evaluation) -> None:
        self.drop(signature)
        self._kept[signature] = found, found.nbytes
        self._bytes += found.nbytes
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))

    def drop(self, signature: Hashable) -> None:
        gone = self._kept.pop(signature, None)
        if gone is not None:
            self._bytes -= gone[1]
            if signature == self.latest:
                self.latest = self.latest_found = None
