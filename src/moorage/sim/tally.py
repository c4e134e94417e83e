"""What happens in a simulation, counted while it happens: pods, attempts, events, waiting times, placements.

Everything is counted at the moment it happens and costs the same whatever the size of the cluster. What the
cluster looks like at a moment is for `measures`.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from moorage.api.pod import Pod
from moorage.framework.ports import Clock
from moorage.runtime.record import SCHEDULED, DecisionRecord, TopScores
from moorage.scheduler.records import RecordRing
from moorage.sim.cluster import DELETED, ENDED, LOST

RECORD_BYTES = 1 << 20
"""Of decision records that are kept."""


class PlacedPod(NamedTuple):
    """A pod on its node; or, at the end of a run, one that is still pending."""

    time: float
    """Virtual seconds since the start."""
    pod: str
    node: str
    """Empty for a pod that is still pending."""
    wait: float
    """Seconds since the pod came."""
    decided_by: str = ""
    """The plugin whose score made the most difference to the second-best node, where scores are on record."""


OnPlaced = Callable[[PlacedPod], None]


class AttemptRing(RecordRing):
    """Decision records, few of them kept, each shown to a listener."""

    def __init__(self, listener: Callable[[DecisionRecord], None]) -> None:
        super().__init__(RECORD_BYTES)
        self._listener = listener

    def add(self, record: DecisionRecord) -> None:
        super().add(record)
        self._listener(record)


class RunTally:
    """Implements `PodWatcher` and `EventRecorder`; `attempted` hears of attempts."""

    def __init__(self, clock: Clock, on_placed: OnPlaced, give_up: int | None = None) -> None:
        self._clock = clock
        self._on_placed = on_placed
        self._give_up = give_up
        """After so many refusals a pod is handed to `on_given_up`."""
        self.on_given_up: Callable[[str], None] = lambda key: None
        self.attempts = self.refused = 0
        self.arrived = self.scheduled = self.running = 0
        self.departed: Counter[str] = Counter({ENDED: 0, DELETED: 0, LOST: 0})
        """Pods that are gone, by why."""
        self.events: Counter[str] = Counter()
        """Events for users, by reason."""
        self.pending_by: Counter[str] = Counter()
        """Plugins → pending pods that they refused in the last attempt."""
        self.waits = array("d")
        """Seconds from arrival to bind, of all pods that were bound."""
        self._came: dict[str, tuple[str, float]] = {}
        """UID → key and arrival, of pending pods."""
        self._refused_by: dict[str, str] = {}
        """UID → the plugins, joined by +, that refused a pending pod."""
        self._decided_by: dict[str, str] = {}

    @property
    def pending(self) -> int:
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
        """The run is over: note the pods that are still pending."""
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


def decisive(top: TopScores) -> str:
    """The plugin that put the best node before the second; empty when they are equal or there is one only."""
    if len(top.rows) < 2:
        return ""
    best, plugin = 0, ""
    for column in top.columns:
        scores = column.normalized
        if isinstance(scores, int):
            continue  # one for all nodes
        if (gain := (scores[0] - scores[1]) * column.weight) > best:
            best, plugin = gain, column.plugin
    return plugin
