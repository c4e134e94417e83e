"""What a running scheduler says of one pod: where it waits, and its decision records, a page at a time."""

from __future__ import annotations

from typing import Any

from mooring.api.resources import PODS
from mooring.app.running.endpoints import LoopDoor
from mooring.app.scheduler import Scheduler
from mooring.framework.record import DecisionRecord
from mooring.serving.endpoints import RecordsQuery


async def page(scheduler: Scheduler, door: LoopDoor, query: RecordsQuery) -> dict[str, Any]:
    """The loop only looks things up; records do not change, so that they are written out elsewhere."""
    waiting, kept = await door.ask(lambda: (_waiting(scheduler, query.pod), _kept(scheduler, query)))
    shown = kept[-query.limit :]
    return {
        "pod": query.pod,
        "waiting": waiting,
        "records": [record.to_dict(query.nodes) for record in shown],
        "before": shown[0].sequence if len(kept) > len(shown) else None,
    }


def _kept(scheduler: Scheduler, query: RecordsQuery) -> list[DecisionRecord]:
    return [record for record in scheduler.records.of(query.pod) if record.sequence < query.before]


def _waiting(scheduler: Scheduler, key: str) -> dict[str, Any] | None:
    """A pending pod's place in the queue; None for pods that are bound, or not known."""
    pod = scheduler.informers.informers[PODS].objects.get(key)
    location = scheduler.where(pod) if pod is not None else None
    if location is None:
        return None
    epoch = scheduler.clock.wall() - scheduler.clock.now()
    return {
        "place": location.place,
        "why": location.why,
        "plugins": location.plugins,
        "since": epoch + location.since,
        "until": None if location.until is None else epoch + location.until,
    }
