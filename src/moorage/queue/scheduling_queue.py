"""The scheduling queue: decides which pod is tried next, and when a rejected pod is tried again.

A pending pod is in exactly one place:

                add, update of an unknown pod
                           │ PreEnqueue
                ┌─rejects──┴──passes──┐
                ▼                     ▼
              gated ───────────▶   active ──pop──▶ in flight ──done──▶ out (bound or deleted)
                ▲   passes now      ▲   ▲              │
                │                   │   │              │ requeue
       PreEnqueue rejects           │   │              ├─ error ───────────▶ backoff
     on any way to active           │   │              ├─ an event helps ──▶ active or backoff
       or backoff           backoff │   │ hint: Queue, └─ rejected ────────▶ unschedulable
                          over, or  │   │ backoff over                        │ │
                        idle: early │   └─────────────────────────────────────┘ │
                                 backoff ◀──────────────────────────────────────┘
                                            hint: Queue, still in backoff

Activation and the flush requeue pods as a hint that answers Queue does; gated pods move only if PreEnqueue
now lets them pass.

The queue is passive and synchronous. The engine's coroutine calls it between cycles. It has no timer (the
engine calls `tick` at `next_deadline`), no thread and no lock. The rules are those of
pkg/scheduler/backend/queue/scheduling_queue.go of kube-scheduler. `places` keeps track of the places,
`hints` calls the plugins' hints, and `pending` answers questions about pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moorage.api.failures import is_interruption
from moorage.api.pod import Pod
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.framework import events
from moorage.framework.events import ClusterEvent, QueuedPod
from moorage.framework.ports import Clock
from moorage.queue.heaps import Key, Less, order_of
from moorage.queue.hints import WANTED, HintEvaluator, Inquiry, OnHint, QueueHooks, QueueingDecision, QueueingStrategy
from moorage.queue.inflight import InFlight, InFlightPod, PodNominator, ReceivedEvent, holding
from moorage.queue.pending import PendingPodsView
from moorage.queue.places import ACTIVE, BACKOFF, GATED, UNSCHEDULABLE, Entrance, OnIncoming, Place, QueuePlaces
from moorage.queue.pod_events import PodEvents
from moorage.queue.slowness import wait_seconds
from moorage.queue.unschedulable import Flush
from moorage.telemetry import logs

log = logs.get(__name__)

_NO_PLUGINS: frozenset[str] = frozenset()


class SchedulingQueue:
    """All pending pods.

    `less` or `key` comes from the QueueSort plugin. A `flush_after` of None disables the flush. With `pod_groups`,
    members of a pod group are retried by backoff only, because a hint cannot answer for a whole group.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        hooks: QueueHooks,
        less: Less | None = None,
        key: Key | None = None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        flush_after: float | None = 300.0,
        pod_groups: bool = False,
        on_incoming: OnIncoming | None = None,
        on_hint: OnHint | None = None,
        behaviour: Behaviour = DEFAULT_BEHAVIOUR,
    ) -> None:
        self._clock = clock
        self._events = PodEvents(behaviour)
        self._hooks = hooks
        self._hints = HintEvaluator(hooks, clock, on_hint)
        self._places = QueuePlaces(order_of(key=key, less=less), initial_backoff, max_backoff)
        self._inflight = InFlight()
        self._flush = Flush(flush_after, clock.now())
        self._pod_groups = pod_groups
        self.nominator = PodNominator(self._inflight.is_gone)
        self._entrance = Entrance(
            self._places, hooks, clock, self.nominator, on_incoming, behaviour.gated_pods_keep_nomination
        )
        self.pending = PendingPodsView(self._places, self._inflight, self.nominator, self._entrance, self._flush)
        """Read access to the pods in the queue."""

    def __len__(self) -> int:
        """Return the number of pending pods, including those in flight."""
        return len(self._places.slots) + sum(not flight.gone for flight in self._inflight)

    def __contains__(self, uid: object) -> bool:
        return isinstance(uid, str) and self.pending.get(uid) is not None

    # Adding, updating and deleting pods.

    def add(self, pod: Pod) -> None:
        """Add a pending pod. A pod that is already known is updated."""
        self.update(None, pod)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Handle a change of a pending pod. If `old` is None, the object known to the queue is used.

        An active pod, or one in backoff, is sorted again. An unschedulable pod is requeued if the change may satisfy
        one of the plugins that rejected it. For a pod in flight the change is considered when it is requeued. An
        unknown pod is added. A recreated pod has another UID and never arrives as an update (`framework.ports.Change`).
        """
        known = self.pending.newest(new.uid)
        if known is None:
            self._begin(new, self._events.add if old is None else self._events.update)
            return
        old = known if old is None else old
        self._inflight.revive(new.uid)
        if new.resource_version and new.resource_version == old.resource_version:
            return
        self._change(old, new)
        if old.nominated_node_name and old.nominated_node_name != new.nominated_node_name:
            self._announce_free_space(old, old.nominated_node_name)

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted, or bound by any scheduler.

        Pass the newest object: if the pod was nominated to a node other than the one it is bound to, that
        space is offered to other pods. An attempt in progress continues, but the pod is not requeued.
        """
        node = self.nominator.nominated_node(pod.uid) or pod.nominated_node_name
        self.nominator.forget(pod.uid)
        self._places.take(pod.uid)
        flight = self._inflight.get(pod.uid)
        if flight is not None:
            flight.gone = True
        if node and pod.spec.node_name != node:
            self._announce_free_space(pod, node)

    # Attempts.

    def pop(self) -> QueuedPod | None:
        """Pop the next pod to try, or return None.

        If the active queue is empty, the first rejected pod in backoff is popped early. Pods that failed with
        an error are never popped early.
        """
        places = self._places
        info = places.active.pop()
        if info is None:
            info = places.backoff.pop_refused()
            if info is None:
                return None
            self._entrance.count(ACTIVE, events.POP_FROM_BACKOFF)
        del places.slots[info.pod.metadata.uid]
        now = self._clock.now()
        info.attempts += 1
        if info.initial_attempt is None:
            info.initial_attempt = now
        info.backoff_until = 0.0
        # Plugins that rejected the pod in an earlier attempt no longer matter (k/k#120334).
        info.unschedulable_plugins = info.pending_plugins = _NO_PLUGINS
        self._inflight.begin(info, now)
        return info

    def done(self, uid: str) -> None:
        """End the attempt of the pod that was popped with this UID, so that no more events are kept for it.

        `requeue` calls this itself. It may be called twice, but not after the pod's next pop.
        """
        self._inflight.end(uid)

    def requeue(
        self,
        info: QueuedPod,
        *,
        unschedulable_plugins: frozenset[str] = frozenset(),
        pending_plugins: frozenset[str] = frozenset(),
        retry_after: float = 0.0,
    ) -> Place | None:
        """Put a pod back after a failed attempt. Return its new place, or None if the pod is gone.

        If no plugin rejected the pod, the attempt failed with an error and the pod goes to backoff. Otherwise
        the events that it missed are replayed; if none of them helps, the pod becomes unschedulable. If the
        missed events are unknown because `done` was called first, the pod goes to backoff. `retry_after` is a
        minimum for the backoff in seconds.
        """
        uid = self._inflight.popped_as(info)
        flight = self._inflight.get(uid) if uid is not None else None
        place = None
        if self._may_return(info, flight):
            if flight is not None and flight.latest is not None:
                info.pod = flight.latest
            self._sign(info)  # the pod may have changed during the attempt
            self._note_failure(info, unschedulable_plugins | pending_plugins, pending_plugins, retry_after)
            self._take_back(info, flight)
            place = self._places.place_of(info.uid)
        if uid is not None:
            self.done(uid)
        return place

    # Events.

    def on_event(
        self, event: ClusterEvent, old: Any = None, new: Any = None, *, only: Callable[[Pod], bool] | None = None
    ) -> int:
        """Requeue the pods that an event may make schedulable, and return their number.

        For pods in flight the event is considered when they are requeued. Pods for which `only` returns False
        are left out. A wildcard event moves all pods, or only the pod passed as `new`.
        """
        if not self._places.unschedulable and not self._inflight:
            return 0  # usual during the first listing
        target = new.uid if event.is_wildcard and isinstance(new, Pod) else ""
        happening = ReceivedEvent(event, old, new, target, only)
        if any(event.is_wildcard or self._hints.matching(pod, event) for pod in self._inflight.one_per_profile()):
            self._inflight.record(happening)
        helped = list(self._hints.helped(happening, self._places.unschedulable))
        return sum(self._entrance.wake(info, verdict, event) for info, verdict in helped)

    def activate(self, pods: Iterable[Pod | str], plugin: str = "") -> int:
        """Move these pods (or UIDs) to the active queue at the request of `plugin`, and return how many moved.

        PreEnqueue still applies. A pod in flight is tried again when it is requeued.
        """
        uids = [pod if isinstance(pod, str) else pod.uid for pod in pods]
        return sum(self._activate(uid, plugin) for uid in uids)

    def resort(self, uids: Iterable[str]) -> None:
        """Sort these pods again because their QueueSort key has changed. Unknown pods are ignored."""
        self._places.resort(uids)

    def sort_by(self, *, key: Key | None = None, less: Less | None = None) -> None:
        """Sort all pods by another QueueSort plugin from now on."""
        self._places.sort_by(order_of(key=key, less=less))

    def reconfigure(self, initial_backoff: float, max_backoff: float) -> None:
        """Apply a new configuration: compute signatures again, run PreEnqueue for every pod, and requeue all
        unschedulable pods after their backoff."""
        self._places.backoff.configure(initial_backoff, max_backoff)
        for slot in list(self._places.slots.values()):
            self._sign(slot.info)
            self._places.replaced(slot.info)
            if slot.place in (ACTIVE, BACKOFF):
                strategy = QueueingStrategy.IMMEDIATELY if slot.place == ACTIVE else QueueingStrategy.AFTER_BACKOFF
                self._entrance.release(slot.info, strategy, events.CONFIGURATION_RELOADED)
        self.on_event(events.CONFIGURATION_RELOADED)

    # Time.

    def tick(self) -> int:
        """Complete backoffs and flush pods that have been unschedulable for too long. Return how many pods moved."""
        now = self._clock.now()
        moved = 0
        while (info := self._places.backoff.first_completed(now)) is not None:
            # PreEnqueue ran when the pod entered backoff.
            self._entrance.put(info, ACTIVE, events.BACKOFF_COMPLETE)
            moved += 1
        return moved + self._flush_unschedulable(now)

    def next_deadline(self) -> float | None:
        """Return when `tick` next has something to do, or None."""
        oldest = self._places.unschedulable.oldest()
        flush = self._flush.due(oldest[1]) if oldest is not None else None
        return min((at for at in (self._places.backoff.next_deadline(), flush) if at is not None), default=None)

    # Adding pods.

    def _begin(self, pod: Pod, event: ClusterEvent) -> None:
        info = QueuedPod(pod, self._clock.now(), woken_by=event.label)
        self._sign(info)
        self._entrance.release(info, QueueingStrategy.IMMEDIATELY, event)

    def _sign(self, info: QueuedPod) -> None:
        """Compute the signature of a pod. Pods with equal signatures share hint results and evaluations."""
        try:
            info.signature = self._hooks.signature(info.pod)
            hash(info.signature)
        except BaseException as error:
            if is_interruption(error):
                raise
            info.signature = None
            log.error(
                "Cannot compute the pod's signature; it does not share hint results with other pods",
                error,
                stack=True,
                pod=info.pod,
            )

    # Changing pods.

    def _change(self, old: Pod, new: Pod) -> None:
        flight = self._inflight.get(new.uid)
        if flight is not None:
            self._change_in_flight(flight, old, new)
            return
        slot = self._places.slots[new.uid]
        slot.info.pod = new
        self._sign(slot.info)
        self._places.replaced(slot.info)
        self.nominator.updated(old, new)
        if slot.place in (UNSCHEDULABLE, GATED):
            self._offer_own_change(slot.info, old, new)

    def _change_in_flight(self, flight: InFlightPod, old: Pod, new: Pod) -> None:
        """Keep the change until the pod is requeued. The nomination is left to the attempt, which may have
        reserved or released space."""
        flight.latest = new
        self.nominator.refresh(new)
        for event in self._events.own_changes(old, new):
            self._inflight.record(ReceivedEvent(event, old, new, new.uid))

    def _offer_own_change(self, info: QueuedPod, old: Pod, new: Pod) -> None:
        for event in self._events.own_changes(old, new):
            verdict = Inquiry(self._hints, ReceivedEvent(event, old, new, new.uid)).about_pod(info)
            if verdict.strategy is not QueueingStrategy.SKIP and self._entrance.wake(info, verdict, event):
                return

    def _announce_free_space(self, pod: Pod, node_name: str) -> None:
        """Requeue pods that the end of a nomination may help. It held space against pods of equal or lower
        priority, so for them it is like the deletion of a pod."""

        def may_use(other: Pod) -> bool:
            return other.priority <= pod.priority and other.uid != pod.uid

        self.on_event(events.ASSIGNED_POD_DELETE, holding(pod, node_name), None, only=may_use)

    # Requeueing pods.

    def _may_return(self, info: QueuedPod, flight: InFlightPod | None) -> bool:
        if flight is not None and (flight.gone or flight.uid != info.uid):
            return False  # deleted or recreated; the new pod was added separately (k/k#138316)
        if info.uid in self._places.slots or (flight is None and info.uid in self._inflight):
            log.error("Not requeueing a pod that is already pending", pod=info.pod)
            return False
        return True

    def _note_failure(
        self, info: QueuedPod, rejectors: frozenset[str], pending: frozenset[str], retry_after: float
    ) -> None:
        info.unschedulable_plugins, info.pending_plugins = rejectors, pending
        self._entrance.refused(info, rejectors)
        if rejectors:
            info.unschedulable_count += 1
            info.consecutive_errors = 0
        else:
            info.consecutive_errors += 1
        info.timestamp = now = self._clock.now()
        info.backoff_until = self._places.backoff.until(info, max(retry_after, wait_seconds(info)))
        self._places.slow.note(info, now)
        info.woken_by = info.woken_hint = ""
        info.was_flushed = False

    def _take_back(self, info: QueuedPod, flight: InFlightPod | None) -> None:
        verdict, event = self._missed(info, flight)
        if verdict.strategy is QueueingStrategy.SKIP:
            self._entrance.put(info, UNSCHEDULABLE, events.SCHEDULE_ATTEMPT_FAILURE)
        elif self._entrance.release(info, verdict.strategy, events.SCHEDULE_ATTEMPT_FAILURE):
            info.woken_by, info.woken_hint = event.label, verdict.plugin

    def _missed(self, info: QueuedPod, flight: InFlightPod | None) -> tuple[QueueingDecision, ClusterEvent]:
        """Return the strongest decision among the events that the pod missed in flight, and its event."""
        best, cause = QueueingDecision(QueueingStrategy.SKIP), events.SCHEDULE_ATTEMPT_FAILURE
        if flight is None or not info.unschedulable_plugins or self._retries_by_backoff(info.pod):
            return WANTED, cause
        for happening in self._inflight.since(flight):
            verdict = Inquiry(self._hints, happening).about_pod(info)
            if verdict.strategy > best.strategy:
                best, cause = verdict, happening.event
            if best.strategy is QueueingStrategy.IMMEDIATELY or (best.strategy and not info.pending_plugins):
                break
        return best, cause

    def _retries_by_backoff(self, pod: Pod) -> bool:
        group = pod.spec.scheduling_group
        return self._pod_groups and group is not None and bool(group.pod_group_name)

    # Activating pods.

    def _activate(self, uid: str, plugin: str) -> bool:
        flight, slot = self._inflight.get(uid), self._places.slots.get(uid)
        if flight is not None:
            self._inflight.record(ReceivedEvent(events.FORCE_ACTIVATE, target=uid))
        return slot is not None and self._entrance.activate(slot.info, slot.place, plugin)

    # Flushing pods.

    def _flush_unschedulable(self, now: float) -> int:
        moved = 0
        while (oldest := self._places.unschedulable.oldest()) is not None:
            uid, since = oldest
            due = self._flush.due(since)
            if due is None or due > now:
                break
            info = self._places.unschedulable.get(uid)
            if self._entrance.wake(info, WANTED, events.UNSCHEDULABLE_TIMEOUT):
                info.was_flushed = True
                moved += 1
        return moved
