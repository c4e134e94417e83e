"""The four places of waiting pods as one, in which a pod that enters one leaves the other; and the entrance,
which is every way into a place, past PreEnqueue where that has a say.

Which pods come in, and why they move, is decided by `scheduling_queue`; pods under way are in `inflight`. The
plugins that have refused a pod are remembered here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from moorage.framework import events
from moorage.framework.events import ClusterEvent, QueuedPod
from moorage.framework.ports import Clock
from moorage.queue.heaps import BackoffQueue, Order, PodHeap
from moorage.queue.hints import QueueHooks, QueueingDecision, QueueingStrategy
from moorage.queue.inflight import PodNominator
from moorage.queue.unschedulable import UnschedulablePods
from moorage.telemetry import logs

Place = Literal["active", "backoff", "unschedulable", "gated", "inflight"]
ACTIVE: Place = "active"
BACKOFF: Place = "backoff"
UNSCHEDULABLE: Place = "unschedulable"
GATED: Place = "gated"
INFLIGHT: Place = "inflight"
OnIncoming = Callable[[str, str], None]
"""`on_incoming(queue, event label)`, for queue_incoming_pods_total."""

log = logs.get(__name__)


@dataclass(slots=True)
class Slot:
    """One waiting pod."""

    info: QueuedPod
    place: Place
    since: float
    """When it came to this place."""


class QueuePlaces:
    """Active, backoff, parked and gated pods. `slots` says for each pod which of them it is in."""

    def __init__(self, order: Order, initial_backoff: float, max_backoff: float) -> None:
        self.active = PodHeap(order)
        self.backoff = BackoffQueue(order, initial_backoff, max_backoff)
        self.unschedulable = UnschedulablePods()
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
            self.unschedulable.regroup(info)

    def resort(self, uids: Iterable[str]) -> None:
        uids = list(uids)
        self.active.resort(uids)
        self.backoff.resort(uids)

    def sort_by(self, order: Order) -> None:
        self.active.sort_by(order)
        self.backoff.sort_by(order)

    def counts(self) -> dict[Place, int]:
        gated = self.unschedulable.gated
        return {
            ACTIVE: len(self.active),
            BACKOFF: len(self.backoff),
            UNSCHEDULABLE: len(self.unschedulable) - gated,
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
        return problems + self.active.validate() + self.backoff.validate() + self.unschedulable.validate()

    def _enter(self, info: QueuedPod, place: Place, now: float) -> None:
        if place == ACTIVE:
            self.active.add(info)
        elif place == BACKOFF:
            self.backoff.add(info)
        else:
            self.unschedulable.add(info, now)

    def _leave(self, slot: Slot) -> None:
        container: PodHeap | BackoffQueue | UnschedulablePods = self.unschedulable
        if slot.place == ACTIVE:
            container = self.active
        elif slot.place == BACKOFF:
            container = self.backoff
        container.remove(slot.info.uid)

    def _all(self) -> Iterator[QueuedPod]:
        yield from self.active
        yield from self.backoff
        yield from self.unschedulable

    def _owns(self, info: QueuedPod) -> bool:
        slot = self.slots.get(info.uid)
        return slot is not None and slot.info is info

    def _held(self, slot: Slot) -> dict[Place, bool]:
        uid = slot.info.uid
        return {
            ACTIVE: uid in self.active,
            BACKOFF: uid in self.backoff,
            UNSCHEDULABLE: uid in self.unschedulable and not slot.info.is_gated,
            GATED: uid in self.unschedulable and slot.info.is_gated,
        }


class Entrance:
    """Lets pods into `places`."""

    def __init__(
        self,
        places: QueuePlaces,
        hooks: QueueHooks,
        clock: Clock,
        nominator: PodNominator,
        on_incoming: OnIncoming | None,
    ) -> None:
        self._places = places
        self._hooks = hooks
        self._clock = clock
        self._nominator = nominator
        self._on_incoming = on_incoming
        self.refusers: set[tuple[str, str]] = set()
        """(plugin, scheduler name) of all plugins that have refused or held back a pod."""

    def refused(self, info: QueuedPod, plugins: Iterable[str]) -> None:
        """These plugins have refused the pod."""
        self.refusers.update((plugin, info.pod.scheduler_name) for plugin in plugins)

    def release(self, info: QueuedPod, strategy: QueueingStrategy, event: ClusterEvent) -> bool:
        """Let a pod into active or backoff, if PreEnqueue agrees; otherwise it is gated."""
        if not self._passes_gates(info):
            self.refused(info, (info.gating_plugin,))
            self.put(info, GATED, event)
            return False
        waits = strategy is QueueingStrategy.AFTER_BACKOFF and self._clock.now() < info.backoff_until
        self.put(info, BACKOFF if waits else ACTIVE, event)
        return True

    def wake(self, info: QueuedPod, verdict: QueueingDecision, event: ClusterEvent) -> bool:
        """Whether a parked or gated pod moved; a plugin may have moved it before, or a gate stay closed."""
        if self._places.place_of(info.uid) not in (UNSCHEDULABLE, GATED):
            return False
        moved = self.release(info, verdict.strategy, event)
        if moved:
            info.woken_by, info.woken_hint = event.label, verdict.plugin
        return moved

    def activate(self, info: QueuedPod, place: Place, plugin: str = "") -> bool:
        """Move a waiting pod from its place to the active queue, whatever it waits for; gates still count.
        `plugin` wants it so."""
        if place == ACTIVE:
            return False
        if place != BACKOFF:
            return self.wake(
                info, QueueingDecision(QueueingStrategy.IMMEDIATELY, plugin), events.FORCE_ACTIVATE
            )
        self.put(info, ACTIVE, events.FORCE_ACTIVATE)
        info.woken_by, info.woken_hint = events.FORCE_ACTIVATE.label, plugin
        return True

    def put(self, info: QueuedPod, place: Place, event: ClusterEvent) -> None:
        """Into a place, without asking any plugin."""
        now = self._clock.now()
        if place == ACTIVE and info.initial_attempt is None:
            info.initial_attempt = now
            # Only now: a pod behind a gate must not hold space that others could use.
            if (node := info.pod.nominated_node_name) and not self._nominator.nominated_node(info.uid):
                self._nominator.nominate(info.pod, node)
        if self._places.put(info, place, now):
            self.count(place, event)
            if log.enabled(5):
                log.info(5, "Pod moved to a place of the queue", pod=info.pod, place=place, event=event.label)

    def count(self, place: Place, event: ClusterEvent) -> None:
        """A pod has come to a place."""
        if self._on_incoming is not None:
            self._on_incoming(UNSCHEDULABLE if place == GATED else place, event.label)

    def _passes_gates(self, info: QueuedPod) -> bool:
        status = self._hooks.pre_enqueue(info.pod, info.gating_plugin)
        passes = status is None or status.is_success
        info.gating_plugin = "" if status is None or passes else status.plugin or "PreEnqueue"
        info.gating_reason = "" if status is None or passes else status.message
        return passes
