"""Counts what happens in a simulation: pods, attempts, events, waiting times and placements.

Everything is counted when it happens, at a cost that does not depend on the size of the cluster. `measures`
describes the state of the cluster at a moment.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from moorage.api.pod import Pod
from moorage.framework.ports import Clock
from moorage.runtime.record import SCHEDULED, DecisionRecord
from moorage.runtime.top_scores import KeptTop, TopScores
from moorage.scheduler.records import RecordRing
from moorage.sim.cluster import DELETED, ENDED, LOST

RECORD_BYTES = 1 << 20
"""Maximum size of the decision records that are kept."""


class PlacedPod(NamedTuple):
    """A bound pod or, at the end of a run, a pod that is still pending."""

    time: float
    """Virtual seconds since the start."""
    pod: str
    node: str
    """The node, or empty if the pod is still pending."""
    wait: float
    """Seconds since the pod arrived."""
    decided_by: str = ""
    """The plugin whose score made the largest difference to the second-best node, if the scores are known."""


OnPlaced = Callable[[PlacedPod], None]


class AttemptRing(RecordRing):
    """A small ring of decision records that passes each record to a listener."""

    def __init__(self, listener: Callable[[DecisionRecord], None]) -> None:
        super().__init__(RECORD_BYTES)
        self._listener = listener

    def add(self, record: DecisionRecord) -> None:
        super().add(record)
        self._listener(record)


class RunTally:
    """Implements `PodWatcher` and `EventRecorder`. `attempted` receives the attempts."""

    def __init__(self, clock: Clock, on_placed: OnPlaced, give_up: int | None = None) -> None:
        self._clock = clock
        self._on_placed = on_placed
        self._give_up = give_up
        """Number of rejections after which a pod is passed to `on_given_up`."""
        self.on_given_up: Callable[[str], None] = lambda key: None
        self.attempts = self.refused = 0
        self.arrived = self.scheduled = self.running = 0
        self.departed: Counter[str] = Counter({ENDED: 0, DELETED: 0, LOST: 0})
        """Number of pods that are gone, by reason."""
        self.events: Counter[str] = Counter()
        """Number of Kubernetes events, by reason."""
        self.pending_by: Counter[str] = Counter()
        """Plugins → number of pending pods that they rejected in the last attempt."""
        self.waits = array("d")
        """Seconds from arrival to bind, for all bound pods."""
        self._came: dict[str, tuple[str, float]] = {}
        """UID → key and arrival time of pending pods."""
        self._refused_by: dict[str, str] = {}
        """UID → the plugins, joined by +, that rejected a pending pod."""
        self._decided_by: dict[str, str] = {}

    @property
    def pending(self) -> int:
        """The number of pending pods."""
        return len(self._came)

    # Pods

    def added(self, pod: Pod) -> None:
        self.arrived += 1
        if not pod.spec.node_name:
            self._came[pod.metadata.uid] = pod.key, self._clock.now()

    def bound(self, pod: Pod) -> None:
        self.running += 1
        uid, now = pod.metadata.uid, self._clock.now()
        came = self._came.pop(uid, None)
        if came is None:
            return  # it was there from the start
        self.scheduled += 1
        self.waits.append(now - came[1])
        self._no_longer_refused(uid)
        decided_by = self._decided_by.pop(uid, "")
        self._on_placed(PlacedPod(now, came[0], pod.spec.node_name, now - came[1], decided_by))

    def gone(self, pod: Pod, why: str) -> None:
        self.departed[why] += 1
        uid = pod.metadata.uid
        if self._came.pop(uid, None) is None:
            self.running -= 1
        self._no_longer_refused(uid)
        self._decided_by.pop(uid, None)

    def finish(self) -> None:
        """Add the pods that are still pending to the placements at the end of the run."""
        now = self._clock.now()
        for key, came in self._came.values():
            self._on_placed(PlacedPod(now, key, "", now - came))

    def _no_longer_refused(self, uid: str) -> None:
        if (plugins := self._refused_by.pop(uid, None)) is not None:
            self.pending_by[plugins] -= 1

    # Events and attempts

    def event(self, regarding: Any, *, reason: str, **_: Any) -> None:
        self.events[reason] += 1

    def attempted(self, record: DecisionRecord) -> None:
        self.attempts += 1
        if record.result == SCHEDULED:
            if record.top is not None:
                self._decided_by[record.uid] = decisive(record.top)
            return
        plugins = "+".join(sorted({refusal.plugin for refusal in record.refusals if refusal.nodes}))
        self._no_longer_refused(record.uid)
        if record.uid in self._came:
            self._refused_by[record.uid] = plugins or record.plugin or record.result
            self.pending_by[self._refused_by[record.uid]] += 1
        self.refused += 1
        if self._give_up is not None and record.attempt >= self._give_up:
            self.on_given_up(record.pod)


def decisive(top: TopScores | KeptTop) -> str:
    """Return the plugin that ranked the best node before the second, or an empty string if they are equal or
    there is only one."""
    if len(top.rows) < 2:
        return ""
    best, plugin = 0, ""
    for column in top.columns:
        scores = column.normalized
        if isinstance(scores, int):
            continue  # one value for all nodes
        if (gain := (scores[0] - scores[1]) * column.weight) > best:
            best, plugin = gain, column.plugin
    return plugin
