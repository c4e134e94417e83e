"""The places of waiting pods, and the entrance through which every pod enters one of them.

QueuePlaces keeps each pod in exactly one of the active, backoff, unschedulable and gated places. Entrance
runs PreEnqueue before a pod enters active or backoff, and remembers which plugins have rejected pods.
`scheduling_queue` decides which pods move and why; pods in flight are in `inflight`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from moorage.framework import events
from moorage.framework.events import ClusterEvent, QueuedPod
from moorage.framework.ports import Clock
from moorage.queue.heaps import ActiveQueue, BackoffQueue, Order
from moorage.queue.hints import QueueHooks, QueueingDecision, QueueingStrategy
from moorage.queue.inflight import PodNominator
from moorage.queue.slowness import SlowPods
from moorage.queue.unschedulable import UnschedulablePods
from moorage.telemetry import logs

Place = Literal["active", "backoff", "unschedulable", "gated", "inflight"]
ACTIVE: Place = "active"
BACKOFF: Place = "backoff"
UNSCHEDULABLE: Place = "unschedulable"
GATED: Place = "gated"
INFLIGHT: Place = "inflight"
OnIncoming = Callable[[str, str], None]
"""`on_incoming(queue, event label)`, called for the metric queue_incoming_pods_total."""

log = logs.get(__name__)


@dataclass(slots=True)
class Slot:
    """A waiting pod and its place."""

    info: QueuedPod
    place: Place
    since: float
    """When the pod entered this place."""


class QueuePlaces:
    """The active, backoff, unschedulable and gated pods. `slots` maps each pod to its place."""

    def __init__(self, order: Order, initial_backoff: float, max_backoff: float) -> None:
        self.active = ActiveQueue(order)
        self.backoff = BackoffQueue(order, initial_backoff, max_backoff)
        self.unschedulable = UnschedulablePods()
        self.slots: dict[str, Slot] = {}
        self.slow = SlowPods()

    def put(self, info: QueuedPod, place: Place, now: float) -> bool:
        """Move a pod to a place. Return whether it was in another place, or in none, before."""
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
        """Remove a pod from its place. Unknown pods are ignored."""
        slot = self.slots.pop(uid, None)
        if slot is not None:
            self._leave(slot)

    def place_of(self, uid: str) -> Place | None:
        """Return the place of a pod, or None."""
        slot = self.slots.get(uid)
        return slot.place if slot is not None else None

    def replaced(self, info: QueuedPod) -> None:
        """Sort or group a pod again after its object has changed."""
        place = self.slots[info.uid].place
        if place == ACTIVE:
            self.active.replaced(info.uid)
        elif place == BACKOFF:
            self.backoff.replaced(info.uid)
        else:
            self.unschedulable.regroup(info)

    def resort(self, uids: Iterable[str]) -> None:
        """Sort these pods again."""
        uids = list(uids)
        self.active.resort(uids)
        self.backoff.resort(uids)

    def sort_by(self, order: Order) -> None:
        """Sort all pods by another order."""
        self.active.sort_by(order)
        self.backoff.sort_by(order)

    def counts(self) -> dict[Place, int]:
        """Return the number of pods in each place."""
        gated = self.unschedulable.gated
        return {
            ACTIVE: len(self.active),
            BACKOFF: len(self.backoff),
            UNSCHEDULABLE: len(self.unschedulable) - gated,
            GATED: gated,
        }

    def validate(self) -> list[str]:
        """Return the violated invariants as text."""
        problems = [f"{info.key} is in a place but has no slot" for info in self._all() if not self._owns(info)]
        for uid, slot in self.slots.items():
            found = [place for place, holds in self._held(slot).items() if holds]
            if found != [slot.place]:
                problems.append(f"{slot.info.key} ({uid}) should be in {slot.place} and is in {found}")
        return problems + self.active.validate() + self.backoff.validate() + self.unschedulable.validate()

    def _enter(self, info: QueuedPod, place: Place, now: float) -> None:
        if place == ACTIVE:
            self.active.add(info, behind=self.slow.is_behind(info, now))
        elif place == BACKOFF:
            self.backoff.add(info)
        else:
            self.unschedulable.add(info, now)

    def _leave(self, slot: Slot) -> None:
        container: ActiveQueue | BackoffQueue | UnschedulablePods = self.unschedulable
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
    """Admits pods to the places, running PreEnqueue where it applies."""

    def __init__(
        self,
        places: QueuePlaces,
        hooks: QueueHooks,
        clock: Clock,
        nominator: PodNominator,
        on_incoming: OnIncoming | None,
        gated_keep_nomination: bool,
    ) -> None:
        """`gated_keep_nomination`: whether the nomination of a gated pod holds its space."""
        self._places = places
        self._hooks = hooks
        self._clock = clock
        self._nominator = nominator
        self._on_incoming = on_incoming
        self._gated_keep_nomination = gated_keep_nomination
        self.refusers: set[tuple[str, str]] = set()
        """(plugin, scheduler name) of all plugins that have rejected or gated a pod."""

    def refused(self, info: QueuedPod, plugins: Iterable[str]) -> None:
        """Remember that these plugins rejected the pod."""
        self.refusers.update((plugin, info.pod.scheduler_name) for plugin in plugins)

    def release(self, info: QueuedPod, strategy: QueueingStrategy, event: ClusterEvent) -> bool:
        """Move a pod to active or backoff if PreEnqueue allows it, otherwise to gated. Return whether it was
        allowed."""
        if not self._passes_gates(info):
            self.refused(info, (info.gating_plugin,))
            self.put(info, GATED, event)
            return False
        # A slow pod waits even if a plugin asks for it at once.
        backs_off = strategy is QueueingStrategy.AFTER_BACKOFF or info.slow_attempts > 0
        waits = backs_off and self._clock.now() < info.backoff_until
        self.put(info, BACKOFF if waits else ACTIVE, event)
        return True

    def wake(self, info: QueuedPod, verdict: QueueingDecision, event: ClusterEvent) -> bool:
        """Requeue an unschedulable or gated pod. Return whether it moved: a plugin may have moved it before,
        or PreEnqueue may still gate it."""
        if self._places.place_of(info.uid) not in (UNSCHEDULABLE, GATED):
            return False
        moved = self.release(info, verdict.strategy, event)
        if moved:
            info.woken_by, info.woken_hint = event.label, verdict.plugin
        return moved

    def activate(self, info: QueuedPod, place: Place, plugin: str = "") -> bool:
        """Move a waiting pod to the active queue at the request of `plugin`, unless PreEnqueue gates it."""
        if place == ACTIVE or (place == BACKOFF and info.slow_attempts):
            return False
        if place != BACKOFF:
            return self.wake(info, QueueingDecision(QueueingStrategy.IMMEDIATELY, plugin), events.FORCE_ACTIVATE)
        self.put(info, ACTIVE, events.FORCE_ACTIVATE)
        info.woken_by, info.woken_hint = events.FORCE_ACTIVATE.label, plugin
        return True

    def put(self, info: QueuedPod, place: Place, event: ClusterEvent) -> None:
        """Move a pod to a place without running PreEnqueue."""
        now = self._clock.now()
        is_new = info.initial_attempt is None
        if place == ACTIVE and is_new:
            info.initial_attempt = now
        # Up to 1.36 a gated pod held no space that other pods could use.
        if is_new and (place == ACTIVE or self._gated_keep_nomination) and (node := info.pod.nominated_node_name):
            self._nominator.hold(info.pod, node)
        if self._places.put(info, place, now):
            self.count(place, event)
            if log.enabled(5):
                log.info(5, "Pod moved within the queue", pod=info.pod, place=place, event=event.label)

    def count(self, place: Place, event: ClusterEvent) -> None:
        """Report to metrics that a pod has entered a place."""
        if self._on_incoming is not None:
            self._on_incoming(UNSCHEDULABLE if place == GATED else place, event.label)

    def _passes_gates(self, info: QueuedPod) -> bool:
        status = self._hooks.pre_enqueue(info.pod, info.gating_plugin)
        passes = status is None or status.is_success
        info.gating_plugin = "" if status is None or passes else status.plugin or "PreEnqueue"
        info.gating_reason = "" if status is None or passes else status.message
        return passes
