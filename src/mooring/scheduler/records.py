"""The ring of decision records: the newest attempts, bounded in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from mooring.framework.record import DecisionRecord

DEFAULT_BYTES = 32 * 1024 * 1024


class RecordRing:
    """Newest last. When the bound is passed the oldest go."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._ring: deque[tuple[int, DecisionRecord]] = deque()
        self._bytes = 0
        self._sequence = 0

    def add(self, record: DecisionRecord) -> None:
        self._sequence += 1
        record.sequence = self._sequence
        size, ring, epoch = record.size, self._ring, record.epoch
        if epoch is not None and not (ring and ring[-1][1].epoch is epoch):
            # The table of names is shared by all records of an epoch; the first one of them pays for it.
            size += 8 * len(epoch.names)
        self._ring.append((size, record))
        self._bytes += size
        while self._bytes > self._max_bytes and len(self._ring) > 1:
            self._bytes -= self._ring.popleft()[0]

    @property
    def bytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._ring)

    def __iter__(self) -> Iterator[DecisionRecord]:
        return (record for _, record in self._ring)

    def of(self, pod_key: str) -> list[DecisionRecord]:
        """All kept attempts of one pod, oldest first."""
        return [record for record in self if record.pod == pod_key]

    def last(self, pod_key: str) -> DecisionRecord | None:
        return next((record for _, record in reversed(self._ring) if record.pod == pod_key), None)
