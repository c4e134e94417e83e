"""The entrance: every way into a place of the queue, past PreEnqueue where that has a say.

Which pods come in, and why, is decided by `scheduling_queue`; who has refused a pod is remembered here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mooring.framework import events
from mooring.framework.events import ClusterEvent
from mooring.framework.ports import Clock
from mooring.framework.queued import QueuedPod
from mooring.queue.hinting import QueueHooks, Strategy, Verdict
from mooring.queue.location import ACTIVE, BACKOFF, GATED, PARKED, Place
from mooring.queue.nominator import PodNominator
from mooring.queue.places import METRIC_LABELS, Places
from mooring.telemetry import logs

log = logs.get(__name__)

OnIncoming = Callable[[str, str], None]
"""`on_incoming(queue, event label)`, for queue_incoming_pods_total."""


class Entrance:
    """Lets pods into `places`."""

    def __init__(
        self,
        places: Places,
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
        """(plugin, scheduler name) of everybody who has refused or held back a pod."""

    def refused(self, info: QueuedPod, plugins: Iterable[str]) -> None:
        """These plugins have refused the pod."""
        self.refusers.update((plugin, info.pod.scheduler_name) for plugin in plugins)

    def release(self, info: QueuedPod, strategy: Strategy, event: ClusterEvent) -> bool:
        """Let a pod into active or backoff, if PreEnqueue agrees; otherwise it is gated."""
        if not self._passes_gates(info):
            self.refused(info, (info.gating_plugin,))
            self.put(info, GATED, event)
            return False
        waits = strategy is Strategy.AFTER_BACKOFF and self._clock.now() < info.backoff_until
        self.put(info, BACKOFF if waits else ACTIVE, event)
        return True

    def wake(self, info: QueuedPod, verdict: Verdict, event: ClusterEvent) -> bool:
        """Whether a parked or gated pod moved; a plugin may have moved it before, or a gate stay closed."""
        if self._places.place_of(info.uid) not in (PARKED, GATED):
            return False
        moved = self.release(info, verdict.strategy, event)
        if moved:
            info.woken_by, info.woken_hint = event.label, verdict.plugin
        return moved

    def activate(self, info: QueuedPod, place: Place) -> bool:
        """Move a waiting pod from its place to the active queue, whatever it waits for; gates still count."""
        if place == ACTIVE:
            return False
        if place != BACKOFF:
            return self.wake(info, Verdict(Strategy.AT_ONCE), events.FORCE_ACTIVATE)
        self.put(info, ACTIVE, events.FORCE_ACTIVATE)
        info.woken_by, info.woken_hint = events.FORCE_ACTIVATE.label, ""
        return True

    def put(self, info: QueuedPod, place: Place, event: ClusterEvent) -> None:
        """Into a place, without asking anybody."""
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
            queue = METRIC_LABELS[PARKED if place == GATED else place]
            self._on_incoming(queue, event.label)

    def _passes_gates(self, info: QueuedPod) -> bool:
        status = self._hooks.pre_enqueue(info.pod, info.gating_plugin)
        passes = status is None or status.is_success
        info.gating_plugin = "" if status is None or passes else status.plugin or "PreEnqueue"
        info.gating_reason = "" if status is None or passes else status.message
        return passes
