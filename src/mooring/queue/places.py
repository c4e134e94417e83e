"""The four places of waiting pods as one: a pod that enters one leaves the other.

Owns where each pod is. Why it moves is decided by `scheduling_queue`; pods under way are in `inflight`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mooring.framework.queued import QueuedPod
from mooring.queue.backoff import Backoff
from mooring.queue.heap import Order, PodHeap
from mooring.queue.location import ACTIVE, BACKOFF, GATED, PARKED, Place
from mooring.queue.parked import Parked

METRIC_LABELS: dict[Place, str] = {
    ACTIVE: "active",
    BACKOFF: "backoff",
    PARKED: "unschedulable",
    GATED: "gated",
}


@dataclass(slots=True)
class Slot:
    """One waiting pod."""

    info: QueuedPod
    place: Place
    since: float
    """When it came to this place."""


class Places:
    """Active, backoff, parked and gated pods. `slots` says for each pod which of them it is in."""

    def __init__(self, order: Order, initial_backoff: float, max_backoff: float) -> None:
        self.active = PodHeap(order)
        self.backoff = Backoff(order, initial_backoff, max_backoff)
        self.parked = Parked()
        self.slots: dict[str, Slot] = {}

    def put(self, info: QueuedPod, place: Place, now: float) -> bool:
        """Move a pod to a place, from wherever it is; whether it was elsewhere before."""
        uid = info.uid
        before = self.slots.get(uid)
        if before is not None:
            self._leave(before)
        self._enter(info, place, now)
        if before is not None and before.place == place:
            return False
        self.slots[uid] = Slot(info, place, now)
        return True

    def take(self, uid: str) -> None:
        """Remove a pod from its place; unknown ones are ignored."""
        slot = self.slots.pop(uid, None)
        if slot is not None:
            self._leave(slot)

    def place_of(self, uid: str) -> Place | None:
        slot = self.slots.get(uid)
        return slot.place if slot is not None else None

    def replaced(self, info: QueuedPod) -> None:
        """The pod's object has changed."""
        place = self.slots[info.uid].place
        if place == ACTIVE:
            self.active.replaced(info.uid)
        elif place == BACKOFF:
            self.backoff.replaced(info.uid)
        else:
            self.parked.regroup(info)

    def resort(self, uids: Iterable[str]) -> None:
        uids = list(uids)
        self.active.resort(uids)
        self.backoff.resort(uids)

    def sort_by(self, order: Order) -> None:
        self.active.sort_by(order)
        self.backoff.sort_by(order)

    def counts(self) -> dict[Place, int]:
        gated = self.parked.gated
        return {
            ACTIVE: len(self.active),
            BACKOFF: len(self.backoff),
            PARKED: len(self.parked) - gated,
            GATED: gated,
        }

    def validate(self) -> list[str]:
        problems = [
            f"{info.key} waits in a place but has no slot" for info in self._all() if not self._owns(info)
        ]
        for uid, slot in self.slots.items():
            found = [place for place, holds in self._held(slot).items() if holds]
            if found != [slot.place]:
                problems.append(f"{slot.info.key} ({uid}) should be in {slot.place} and is in {found}")
        return problems + self.active.validate() + self.backoff.validate() + self.parked.validate()

    def _enter(self, info: QueuedPod, place: Place, now: float) -> None:
        if place == ACTIVE:
            self.active.add(info)
        elif place == BACKOFF:
            self.backoff.add(info)
        else:
            self.parked.add(info, now)

    def _leave(self, slot: Slot) -> None:
        container: PodHeap | Backoff | Parked = self.parked
        if slot.place == ACTIVE:
            container = self.active
        elif slot.place == BACKOFF:
            container = self.backoff
        container.remove(slot.info.uid)

    def _all(self) -> Iterator[QueuedPod]:
        yield from self.active
        yield from self.backoff
        yield from self.parked

    def _owns(self, info: QueuedPod) -> bool:
        slot = self.slots.get(info.uid)
        return slot is not None and slot.info is info

    def _held(self, slot: Slot) -> dict[Place, bool]:
        uid = slot.info.uid
        return {
            ACTIVE: uid in self.active,
            BACKOFF: uid in self.backoff,
            PARKED: uid in self.parked and not slot.info.is_gated,
            GATED: uid in self.parked and slot.info.is_gated,
        }
