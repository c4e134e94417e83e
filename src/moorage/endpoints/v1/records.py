"""Decision records as /moorage/v1 shows them: those of one pod, the newest of all, and one in full.

The loop copies the ring; records do not change, so that they are looked through and written out elsewhere.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from moorage.api.resources import PODS
from moorage.app.scheduler import Scheduler
from moorage.endpoints.loop_bridge import LoopDoor
from moorage.endpoints.v1 import queue
from moorage.endpoints.v1.routes import AttemptQuery, AttemptsQuery, RecordsQuery
from moorage.runtime.record import DecisionRecord
from moorage.scheduler.records import RecordRing

MOST_KNOWN = 16
"""Pods whose records are remembered; those that were asked about longest ago are dropped."""


class RecordsPage:
    """The records of a pod. Pages that stay open ask again and again: then only new records are looked
    through, of the tens of thousands that are kept."""

    def __init__(self, scheduler: Scheduler, door: LoopDoor) -> None:
        self._scheduler = scheduler
        self._door = door
        self._known: dict[str, tuple[int, list[DecisionRecord]]] = {}
        """Pod → the last sequence that was looked at, and its records up to there."""

    async def page(self, query: RecordsQuery) -> dict[str, Any]:
        """Where a pod waits, and its records, oldest first."""
        last, known = self._known.pop(query.pod, (0, []))
        waiting, ring, first = await self._door.ask(lambda: self._look(query.pod, last))
        found = [record for record in known if record.sequence >= first] + ring.of(query.pod)
        self._remember(query.pod, ring.last_sequence, found)
        kept = [record for record in found if record.sequence < query.before]
        shown = kept[-query.limit :]
        return {
            "pod": query.pod,
            "waiting": waiting,
            "records": [record.to_dict(query.nodes) for record in shown],
            "before": shown[0].sequence if len(kept) > len(shown) else None,
        }

    def _look(self, pod: str, last: int) -> tuple[dict[str, Any] | None, RecordRing, int]:
        records = self._scheduler.records
        return _waiting(self._scheduler, pod), records.copy(last), records.first_sequence

    def _remember(self, pod: str, last: int, found: list[DecisionRecord]) -> None:
        while len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[pod] = (last, found)


def _waiting(scheduler: Scheduler, key: str) -> dict[str, Any] | None:
    pod = scheduler.informers.informers[PODS].objects.get(key)
    return queue.describe(scheduler, pod.uid) if pod is not None else None


async def attempts(scheduler: Scheduler, door: LoopDoor, query: AttemptsQuery) -> dict[str, Any]:
    """The attempts of all pods, newest first."""
    ring = await door.ask(scheduler.records.copy)
    wanted = (record for record in ring.newest(query.before) if query.result in ("", record.result))
    found = list(islice(wanted, query.limit + 1))
    shown = found[: query.limit]
    return {
        "attempts": [record.outline() for record in shown],
        "before": shown[-1].sequence if len(found) > len(shown) else None,
    }


async def attempt(
    scheduler: Scheduler, door: LoopDoor, query: AttemptQuery, sequence: int
) -> dict[str, Any] | str:
    """One attempt, and a page of the nodes that were refused in it."""
    record = await door.ask(lambda: scheduler.records.get(sequence))
    if record is None:
        return f"attempt {sequence} is not kept: /moorage/v1/attempts has those that are"
    found = record.refused(query.plugin, query.after, query.limit + 1)
    if found is None:
        return f"after={query.after[:300]}: there was no such node in attempt {sequence}"
    shown = found[: query.limit]
    return {
        **record.to_dict(names=0),
        "refusedNodes": [
            {"node": node, "plugin": why.plugin, "code": why.code, "reasons": why.reasons}
            for node, why in shown
        ],
        "after": shown[-1][0] if len(found) > len(shown) else None,
    }
