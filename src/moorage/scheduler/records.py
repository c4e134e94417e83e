"""Decision records: makes them from finished attempts and keeps them in a ring that is bounded in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.runtime.attempt import Attempt
from moorage.runtime.record import NOTHING_SEEN, SMALL_RECORD, DecisionRecord, Diagnosis, RefusalCount, size_of
from moorage.runtime.top_scores import KeptTop, TopScores
from moorage.state.node_listing import NodeEpoch

DEFAULT_BYTES = 32 * 1024 * 1024


class RecordRing:
    """A ring of decision records, newest last. When it exceeds its bound, the oldest records are dropped."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self.max_bytes = max_bytes
        """The bound. A smaller one takes effect when the next record is added."""
        self._ring: deque[DecisionRecord] = deque()
        self._bytes = 0
        self._sequence = 0
        self._diagnosis = NOTHING_SEEN
        """The diagnosis that the newest record shares with earlier ones. Its size is counted for the first of them."""

    def add(self, record: DecisionRecord) -> None:
        """Add a record and give it the next sequence."""
        self._sequence = record.sequence = self._sequence + 1
        # Most records share their large parts.
        top = record.top
        size = SMALL_RECORD if top is None else SMALL_RECORD + top.nbytes
        if record.message or record.extenders:
            size = record.size
        diagnosis, latest = record.diagnosis, self._diagnosis
        if diagnosis is not latest:
            if diagnosis.refusals is not latest.refusals:
                size += diagnosis.size
            epoch = diagnosis.epoch
            if epoch is not latest.epoch and epoch is not None:
                size += 8 * len(epoch.names)
            self._diagnosis = diagnosis
        record.kept_bytes = size
        self._ring.append(record)
        self._bytes += size
        if self._bytes > self.max_bytes:
            self._shrink()

    def _shrink(self) -> None:
        """Drop several records at once. Freeing them one by one takes three times as long, because none of
        their memory is in the processor's cache."""
        most = self.max_bytes - self.max_bytes // 1024
        while self._bytes > most and len(self._ring) > 1:
            self._bytes -= self._ring.popleft().kept_bytes

    @property
    def bytes(self) -> int:
        """The size of all records in bytes."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._ring)

    def __iter__(self) -> Iterator[DecisionRecord]:
        return iter(self._ring)

    def __reversed__(self) -> Iterator[DecisionRecord]:
        return reversed(self._ring)

    def of(self, pod_key: str) -> list[DecisionRecord]:
        """Return all kept records of one pod, oldest first."""
        return [record for record in self if record.pod == pod_key]

    def get(self, sequence: int) -> DecisionRecord | None:
        """Return the record with this sequence, or None if it was dropped or does not exist yet."""
        found = next(self.newest(sequence + 1), None)
        return found if found is not None and found.sequence == sequence else None

    def newest(self, before: int) -> Iterator[DecisionRecord]:
        """Yield records with a smaller sequence, newest first. Sequences have no gaps."""
        later = max(0, self._sequence + 1 - before)
        return islice(reversed(self._ring), later, None)

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest record."""
        return self._sequence

    @property
    def first_sequence(self) -> int:
        """The smallest sequence in the ring, or the next sequence if the ring is empty."""
        return self._sequence + 1 - len(self._ring)

    def copy(self, after: int = 0) -> RecordRing:
        """Return a copy of the records with a greater sequence, for a reader on another thread."""
        made = RecordRing(self.max_bytes)
        made._sequence = self._sequence
        if after < self.first_sequence:
            made._ring, made._bytes = self._ring.copy(), self._bytes
        else:
            made._ring.extendleft(islice(reversed(self._ring), max(0, self._sequence - after)))
        return made

    def last(self, pod_key: str) -> DecisionRecord | None:
        """Return the newest record of a pod, or None."""
        return next((record for record in reversed(self) if record.pod == pod_key), None)


def make_record(attempt: Attempt, wall: float, duration: float, epoch: Callable[[], NodeEpoch]) -> DecisionRecord:
    """Return the record of an attempt. It holds small arrays only; names are in the shared epoch."""
    info, meta = attempt.info, attempt.pod.metadata
    baseline, statuses = attempt.baseline, attempt.statuses
    if statuses is baseline.statuses or (statuses.is_lent and attempt.feasible == baseline.feasible):
        # Shared by all attempts that succeeded and rejected no node besides those that their baseline
        # rejects.
        diagnosis = baseline.diagnosis
        if diagnosis is None:
            diagnosis = baseline.diagnosis = _diagnosis(attempt, epoch(), keep=True)
    else:
        diagnosis = _diagnosis(attempt, epoch(), keep=statuses.is_lent)
    top: TopScores | KeptTop | None = None
    if attempt.node:
        board, ranking = attempt.board, attempt.ranking
        if board is None:
            top = baseline.top() if attempt.feasible > 1 else None
        elif ranking is not None:
            top = board.top(ranking)
    record = DecisionRecord(
        f"{meta.namespace}/{meta.name}",
        meta.uid,
        attempt.profile.name,
        info.attempts,
        wall,
        duration=duration,
        diagnosis=diagnosis,
        extenders=attempt.extenders,
        top=top,
        node=attempt.node,
        woken_by=info.woken_by,
        woken_hint=info.woken_hint,
    )
    if not attempt.node:
        record.pre_filter = attempt.pre_filter_message
        record.post_filter = attempt.post_filter_message
        record.victims = tuple([victim.key for victim in attempt.victims])
    return record


def _diagnosis(attempt: Attempt, epoch: NodeEpoch, keep: bool = False) -> Diagnosis:
    """Return the diagnosis of an attempt. With `keep`, copy the statuses, because they belong to a baseline
    that will change."""
    statuses = attempt.statuses
    refusals: tuple[RefusalCount, ...] = ()
    ids: npt.NDArray[np.unsignedinteger[Any]] | None = None
    if len(statuses.verdicts) > 1:
        refusals = tuple(
            RefusalCount(verdict.plugin, verdict.code.label, verdict.reasons, statuses.counts[i])
            for i, verdict in enumerate(statuses.verdicts)
            if i
        )
        ids = statuses.ids.copy() if keep else statuses.ids
    size = size_of(refusals, ids) if refusals else 0
    return Diagnosis(len(attempt.nodes.rows), attempt.evaluated, attempt.feasible, refusals, ids, epoch, size)
