"""The pending pods as /moorage/v1 shows them: how many are where, who holds them, and each with its place.

The scheduler's loop copies a list and looks up the pods of one page; sorting, counting and searching among
all of them happens on the endpoints' thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

from moorage.app.scheduler import Scheduler
from moorage.endpoints.cached import Kept
from moorage.endpoints.loop_bridge import LoopDoor
from moorage.endpoints.v1.routes import PLACES, QueueQuery
from moorage.queue.pending import Location
from moorage.queue.places import GATED, INFLIGHT, UNSCHEDULABLE

PERMIT = "permit"
"""The place of a pod in flight that a Permit plugin asked to wait."""


Entry = tuple[str, str, str, str]
"""A pending pod, as far as one looks for it: key, place, the plugins that hold it, UID."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All pending pods of a moment."""

    entries: list[Entry]
    """By key."""
    places: dict[str, int]
    groups: list[tuple[str, str, int]]
    """Place, reason and number of pods, the largest first."""

    def matching(self, query: QueueQuery) -> Iterator[tuple[str, str]]:
        """Key and UID of the pods that are asked for."""
        start = bisect_right(self.entries, query.after, key=itemgetter(0)) if query.after else 0
        for key, place, reason, uid in islice(self.entries, start, None):
            if (
                (not query.place or query.place == place)
                and (not query.reason or query.reason == reason)
                and (not query.search or query.search in key)
            ):
                yield key, uid


class QueuePage:
    def __init__(self, scheduler: Scheduler, door: LoopDoor) -> None:
        self._scheduler = scheduler
        self._door = door
        self._listing = Kept(door, scheduler.clock.now, self._look, _listing)

    async def page(self, query: QueueQuery) -> dict[str, Any]:
        listing = await self._listing.get()
        found = list(islice(listing.matching(query), query.limit + 1))
        shown = found[: query.limit]
        rows = await self._door.ask(lambda: [describe(self._scheduler, uid) for _, uid in shown])
        return {
            "places": listing.places,
            "groups": [
                {"place": place, "reason": reason, "pods": count} for place, reason, count in listing.groups
            ],
            # A pod may have gone elsewhere since it was listed.
            "pods": [row for row in rows if row is not None and query.place in ("", row["place"])],
            "after": shown[-1][0] if len(found) > len(shown) else None,
        }

    def _look(self) -> Looked:
        waiting = self._scheduler.engine.services.waiting
        held = {pod.pod.uid: ",".join(sorted(pod.pending_plugins())) for pod in waiting}
        return (*self._scheduler.engine.queue.pending.copied(), held)


Looked = tuple[list[Any], list[Any], dict[str, str]]
"""Slots, flights, and who is waited for in Permit, by UID."""


def _listing(looked: Looked) -> Listing:
    slots, flights, held = looked
    names: dict[frozenset[str], str] = {}
    entries: list[Entry] = []
    for slot in slots:
        info, place, reason = slot.info, slot.place, ""
        if place == GATED:
            reason = info.gating_plugin
        elif plugins := info.unschedulable_plugins:
            reason = names.get(plugins) or names.setdefault(plugins, ",".join(sorted(plugins)))
        entries.append((info.pod.key, place, reason, info.pod.uid))
    for flight in flights:
        uid = flight.info.pod.uid
        place, reason = (PERMIT, held[uid]) if uid in held else (INFLIGHT, "")
        entries.append((flight.info.pod.key, place, reason, uid))
    entries.sort()
    groups = Counter(map(itemgetter(1, 2), entries))
    places = dict.fromkeys(PLACES, 0)
    for (place, _), count in groups.items():
        places[place] += count
    ordered = sorted(groups.items(), key=lambda group: (-group[1], group[0]))
    return Listing(entries, places, [(place, reason, count) for (place, reason), count in ordered])


def describe(scheduler: Scheduler, uid: str) -> dict[str, Any] | None:
    """A pending pod with its place; None for pods that are bound, or not known. On the scheduler's loop."""
    engine = scheduler.engine
    info, location = engine.queue.pending.get(uid), engine.queue.pending.where(uid)
    if info is None or location is None:
        return None
    epoch = scheduler.clock.wall() - scheduler.clock.now()
    place, why, plugins, until = _in_permit(scheduler, uid, location)
    return {
        "pod": info.key,
        "uid": uid,
        "profile": info.pod.scheduler_name,
        "place": place,
        "why": why,
        "plugins": plugins,
        "since": epoch + location.since,
        "until": None if until is None else epoch + until,
        "attempts": info.attempts,
        "priority": info.pod.priority,
        "nominatedNode": engine.queue.nominator.nominated_node(uid) or "",
        "wokenBy": info.woken_by,
        "wokenHint": info.woken_hint,
        "wakes": _wakes(scheduler, info.pod, plugins) if place in (UNSCHEDULABLE, GATED) else [],
    }


def _in_permit(
    scheduler: Scheduler, uid: str, location: Location
) -> tuple[str, str, tuple[str, ...], float | None]:
    """Place, why, plugins and end: those of the queue, unless the pod waits in Permit."""
    held = scheduler.engine.services.waiting.get(uid) if location.place == INFLIGHT else None
    if held is None:
        return location.place, location.why, location.plugins, location.until
    plugins = tuple(sorted(held.pending_plugins()))
    return (
        PERMIT,
        f"Waits in Permit for {', '.join(plugins)}, to go to {held.node_name}.",
        plugins,
        held.until,
    )


def _wakes(scheduler: Scheduler, pod: Any, plugins: Iterable[str]) -> list[dict[str, Any]]:
    """The events that these plugins registered: one of them may bring the pod back."""
    registrations = scheduler.engine.hooks.registrations(pod)
    return [
        {
            "plugin": name,
            "events": [label for each in registrations.get(name, ()) for label in each.event.labels],
        }
        for name in plugins
    ]
