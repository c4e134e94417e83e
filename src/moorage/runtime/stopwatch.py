"""The clock of one attempt: which plugin call took longest, and when the attempt must end.

No plugin is interrupted. The runtime looks at the clock between two calls, so an attempt ends at the first look after
its time is up. What became of the pod then is decided in scheduler/slowness.py.
"""

from __future__ import annotations

from collections.abc import Callable

ALLOWANCE_SECONDS = 2.0
"""How long the first attempt of a pod may take. A slow attempt doubles it for the next one."""
MAX_DOUBLINGS = 2
"""The longest attempt takes 8 s, less than the 10 s after which a leader without a heartbeat loses its lease."""

NOTABLE_SECONDS = 0.05
"""Shorter calls are measured together: they are never the reason for a slow attempt."""
NEVER = float("inf")


class AttemptOverdue(Exception):
    """An attempt has used up its time. Unlike other exceptions it passes through plugins and ends the attempt."""

    def __init__(self, plugin: str, point: str, text: str) -> None:
        super().__init__(text)
        self.plugin = plugin
        self.point = point


class AttemptStopwatch:
    """Measures the plugin calls of one attempt after the other.

    A caller compares `now()` with `next_look` after each call, which is all that fast calls cost, and calls `check` or
    `lap` when it has passed.
    """

    __slots__ = ("deadline", "last", "next_look", "now", "plugin", "point", "started", "waited", "worst")

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.started = self.last = float("-inf")
        self.deadline = self.next_look = NEVER
        self.waited = self.worst = 0.0
        self.plugin = self.point = ""

    def begin(self, started: float, slow_attempts: int) -> AttemptStopwatch:
        """Start with an attempt that began at `started`, of a pod with this number of slow attempts."""
        self.started = self.last = started
        self.next_look = started + NOTABLE_SECONDS
        self.deadline = started + ALLOWANCE_SECONDS * 2 ** min(slow_attempts, MAX_DOUBLINGS)
        self.waited = self.worst = 0.0
        self.plugin = self.point = ""
        return self

    def end(self) -> None:
        """Let calls after the attempt take their time: a baseline may keep its state."""
        self.deadline = self.next_look = NEVER

    def lap(self, plugin: str, point: str) -> None:
        """Account the time since the last look to a plugin call."""
        now = self.now()
        took = now - self.last
        self.last = now
        self.next_look = now + NOTABLE_SECONDS
        if took > self.worst:
            self.worst, self.plugin, self.point = took, plugin, point

    def check(self, plugin: str, point: str) -> None:
        """Account a plugin call. Raises AttemptOverdue if the attempt has used up its time."""
        self.lap(plugin, point)
        if self.last > self.deadline:
            raise self.overdue()

    def wait(self) -> None:
        """Leave out the time since the last look, in which the attempt waited for an extender."""
        now = self.now()
        self.waited += now - self.last
        self.deadline += now - self.last
        self.last = now
        self.next_look = now + NOTABLE_SECONDS

    def overdue(self) -> AttemptOverdue:
        """Return the exception that ends the attempt and names the plugin call that took longest."""
        took = self.last - self.started - self.waited
        text = (
            f"the attempt was stopped after {took:.1f}s, of which {self.point} of plugin "
            f'"{self.plugin}" took {self.worst:.1f}s'
        )
        return AttemptOverdue(self.plugin, self.point, text)
