"""The ring of decision records: the newest attempts, bounded in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from mooring.framework.record import NOTHING_SEEN, SMALL_RECORD, DecisionRecord, Diagnosis

DEFAULT_BYTES = 32 * 1024 * 1024


class RecordRing:
    """Newest last. When the bound is passed the oldest go."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._ring: deque[tuple[int, DecisionRecord]] = deque()
        self._bytes = 0
        self._sequence = 0
        self._diagnosis = NOTHING_SEEN
        """What the newest record shares with those before it; the first one of them pays for it."""

    def add(self, record: DecisionRecord) -> None:
        self._sequence = record.sequence = self._sequence + 1
        # Most records share everything that is large.
        size = SMALL_RECORD if record.top is None and not record.message else record.size
        if record.diagnosis is not self._diagnosis:
            size += self._size_of(record.diagnosis)
            self._diagnosis = record.diagnosis
        self._ring.append((size, record))
        self._bytes += size
        if self._bytes > self._max_bytes:
            self._shrink()

    def _size_of(self, diagnosis: Diagnosis) -> int:
        """What a record costs that is the first to have seen this."""
        epoch, size = diagnosis.epoch, 0
        if epoch is not None and epoch is not self._diagnosis.epoch:
            size = 8 * len(epoch.names)
        return size if diagnosis.refusals is self._diagnosis.refusals else size + diagnosis.size

    def _shrink(self) -> None:
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
