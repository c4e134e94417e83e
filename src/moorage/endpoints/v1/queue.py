"""The view of /moorage/v1/queue: how many pods are pending where, which plugins hold them, and each pod.

The scheduler's loop copies lists and looks up the pods of one page; sorting, counting and searching happen on
the endpoints' thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.app.scheduler import Scheduler
from moorage.endpoints.answers import PLACES, PendingPod, QueueAnswer, QueueGroup, WakingEvents, reason_of
from moorage.endpoints.loop_bridge import Cached, LoopBridge
from moorage.endpoints.queries import QueueQuery
from moorage.queue.inflight import InFlightPod
from moorage.queue.pending import Location
from moorage.queue.places import BACKOFF, GATED, INFLIGHT, UNSCHEDULABLE, Slot

PERMIT = "permit"
"""The place of a pod in flight that waits in Permit."""

Entry = tuple[str, str, str, str]
"""The fields of a pending pod that a search can match: key, place, the plugins that hold it, UID."""


@dataclass(frozen=True, slots=True)
class CopiedQueue:
    """What the scheduler's loop copies for a listing."""

    slots: Sequence[Slot]
    flights: Sequence[InFlightPod]
    permit_plugins: dict[str, str]
    """UID of a pod that waits in Permit → the plugins that it waits for."""


@dataclass(frozen=True, slots=True)
class QueueListing:
    """All pending pods at one moment."""

    entries: list[Entry]
    """Sorted by key."""
    places: dict[str, int]
    groups: list[QueueGroup]
    """The largest first."""

    def matching(self, query: QueueQuery) -> Iterator[tuple[str, str]]:
        """Yield the key and UID of the pods that match."""
        start = bisect_right(self.entries, query.after, key=itemgetter(0)) if query.after else 0
        for key, place, reason, uid in islice(self.entries, start, None):
            if (
                (not query.place or query.place == place)
                and (not query.reason or query.reason == reason)
                and (not query.search or query.search in key)
            ):
                yield key, uid


class QueueView:
    def __init__(self, scheduler: Scheduler, bridge: LoopBridge) -> None:
        self._scheduler = scheduler
        self._bridge = bridge
        self._listing = Cached(bridge, scheduler.clock.now, self._copy, _listing)

    async def answer(self, query: QueueQuery) -> QueueAnswer:
        listing = await self._listing.get()
        found = list(islice(listing.matching(query), query.limit + 1))
        shown = found[: query.limit]
        rows, connected = await self._bridge.call(
            lambda: ([describe(self._scheduler, uid) for _, uid in shown], is_connected(self._scheduler))
        )
        return QueueAnswer(
            places=listing.places,
            groups=listing.groups,
            # A pod may have moved since it was listed.
            pods=[row for row in rows if row is not None and query.place in ("", row.place)],
            after=shown[-1][0] if len(found) > len(shown) else None,
            connected=connected,
        )

    def _copy(self) -> CopiedQueue:
        waiting = self._scheduler.engine.services.waiting
        plugins = {pod.pod.uid: ",".join(sorted(pod.pending_plugins())) for pod in waiting}
        return CopiedQueue(*self._scheduler.engine.queue.pending.copied(), plugins)


def _listing(copied: CopiedQueue) -> QueueListing:
    names: dict[frozenset[str], str] = {}
    entries: list[Entry] = []
    for slot in copied.slots:
        info, reason = slot.info, ""
        if slot.place == GATED:
            reason = info.gating_plugin
        elif plugins := info.unschedulable_plugins:
            reason = names.get(plugins) or names.setdefault(plugins, reason_of(plugins))
        entries.append((info.pod.key, slot.place, reason, info.pod.uid))
    for flight in copied.flights:
        uid = flight.info.pod.uid
        held = copied.permit_plugins.get(uid)
        entries.append((flight.info.pod.key, *((INFLIGHT, "") if held is None else (PERMIT, held)), uid))
    entries.sort()
    counts = Counter(map(itemgetter(1, 2), entries))
    places = dict.fromkeys(PLACES, 0)
    for (place, _), count in counts.items():
        places[place] += count
    ordered = sorted(counts.items(), key=lambda group: (-group[1], group[0]))
    groups = [QueueGroup(place=place, reason=reason, pods=count) for (place, reason), count in ordered]
    return QueueListing(entries, places, groups)


def is_connected(scheduler: Scheduler) -> bool:
    """Return whether the scheduler has read the pods and still follows their changes."""
    informer = scheduler.informers.informers[PODS]
    return informer.synced.is_set() and not informer.is_cut_off


def describe(scheduler: Scheduler, uid: str) -> PendingPod | None:
    """Return a pending pod, or None for a pod that is bound or unknown. Call it on the scheduler's loop."""
    engine = scheduler.engine
    info, location = engine.queue.pending.get(uid), engine.queue.pending.where(uid)
    if info is None or location is None:
        return None
    epoch = scheduler.clock.wall() - scheduler.clock.now()
    place, why, plugins, until = _in_permit(scheduler, uid, location)
    return PendingPod(
        pod=info.key,
        uid=uid,
        profile=info.pod.scheduler_name,
        place=place,
        why=why,
        message=_last_message(info.pod) if place in (BACKOFF, UNSCHEDULABLE) else "",
        plugins=plugins,
        since=epoch + location.since,
        until=None if until is None else epoch + until,
        attempts=info.attempts,
        priority=info.pod.priority,
        nominated_node=engine.queue.nominator.nominated_node(uid) or "",
        woken_by=info.woken_by,
        woken_hint=info.woken_hint,
        wakes=_wakes(scheduler, info.pod, plugins) if place in (UNSCHEDULABLE, GATED) else [],
    )


def _last_message(pod: Pod) -> str:
    """Return the message of the last failed attempt, which is in the pod's PodScheduled condition."""
    return next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), "")


def _in_permit(scheduler: Scheduler, uid: str, location: Location) -> tuple[str, str, tuple[str, ...], float | None]:
    """Return place, why, plugins and end: those of the queue, unless the pod waits in Permit."""
    held = scheduler.engine.services.waiting.get(uid) if location.place == INFLIGHT else None
    if held is None:
        return location.place, location.why, location.plugins, location.until
    plugins = tuple(sorted(held.pending_plugins()))
    why = f"Waiting in Permit for {', '.join(plugins)}, to be bound to {held.node_name}."
    return PERMIT, why, plugins, held.until


def _wakes(scheduler: Scheduler, pod: Any, plugins: Iterable[str]) -> list[WakingEvents]:
    """Return the events that these plugins registered: one of them may bring the pod back."""
    registrations = scheduler.engine.hooks.registrations(pod)
    return [
        WakingEvents(plugin=name, events=[label for each in registrations.get(name, ()) for label in each.event.labels])
        for name in plugins
    ]
