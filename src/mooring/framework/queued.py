"""QueuedPod: a pending pod with what the queue knows about it. QueueSort plugins compare these."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from mooring.api.pod import Pod


@dataclass(slots=True, eq=False)
class QueuedPod:
    """One pending pod on its way through the queue.

    Identity is the pod's UID. Times are monotonic seconds of the scheduler's clock. Plugins read this;
    only the queue and the failure handler write it.
    """

    pod: Pod
    timestamp: float
    """When it last entered a queue place; PrioritySort's tie-break."""
    initial_attempt: float | None = None
    """When it first entered the active queue; the start of its scheduling latency."""
    attempts: int = 0
    unschedulable_count: int = 0
    """Attempts that ended in a rejection; the exponent of its backoff."""
    consecutive_errors: int = 0
    """Attempts in a row that ended in an error; the exponent of the error backoff."""
    backoff_until: float = 0.0
    unschedulable_plugins: frozenset[str] = frozenset()
    """Who refused it in the last attempt."""
    pending_plugins: frozenset[str] = frozenset()
    """Of these, who answered Pending."""
    gating_plugin: str = ""
    """The PreEnqueue plugin that holds it back; empty when none does."""
    gating_reason: str = ""
    signature: Hashable = None
    """What hints are shared by; equal signatures get one answer."""
    woken_by: str = ""
    """Label of the event that last moved it towards the active queue; for the record."""
    woken_hint: str = ""
    """The plugin whose hint said Queue to that event."""
    was_flushed: bool = field(default=False)
    """Moved by the five-minute flush since its last attempt: a wake-up that an event should have given."""

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def is_gated(self) -> bool:
        return bool(self.gating_plugin)
