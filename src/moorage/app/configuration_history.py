"""The latest configurations that a scheduler received, with the result of each. Kept in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from moorage.config.types import KubeSchedulerConfiguration
from moorage.config.wire import to_wire, to_yaml

MAX_ENTRIES = 20
START, FILE, REQUEST = "start", "file", "request"
"""The origin of a configuration."""


def redacted_yaml(configuration: KubeSchedulerConfiguration) -> str:
    """Return the completed configuration as YAML without private keys, which its readers need not have."""
    wire = to_wire(configuration)
    for extender in wire.get("extenders") or ():
        if (extender.get("tlsConfig") or {}).get("keyData"):
            extender["tlsConfig"]["keyData"] = ""
    return to_yaml(wire)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A configuration that was applied or rejected."""

    number: int
    time: float
    """Seconds since the epoch."""
    origin: str
    generation: int
    """The generation in use afterwards."""
    error: str = ""
    """Why the configuration was rejected; empty if it was applied."""
    needs_restart: tuple[str, ...] = ()
    text: str = ""
    """The completed configuration from `redacted_yaml`; empty if it was rejected."""

    def to_wire(self) -> dict[str, Any]:
        """Return the fields without the text."""
        return {
            "number": self.number,
            "time": self.time,
            "origin": self.origin,
            "generation": self.generation,
            "error": self.error,
            "needsRestart": list(self.needs_restart),
        }


@dataclass(slots=True)
class ConfigurationHistory:
    """The latest entries; the oldest is dropped first."""

    _entries: deque[HistoryEntry] = field(default_factory=lambda: deque(maxlen=MAX_ENTRIES))

    def add(self, time: float, origin: str, generation: int, **about: Any) -> HistoryEntry:
        last = self._entries[-1].number if self._entries else 0
        self._entries.append(HistoryEntry(last + 1, time, origin, generation, **about))
        return self._entries[-1]

    def find(self, number: int) -> HistoryEntry | None:
        return next((entry for entry in self if entry.number == number), None)

    def __iter__(self) -> Iterator[HistoryEntry]:
        """Iterate from the newest to the oldest. Safe while another thread adds an entry."""
        return iter(tuple(reversed(self._entries)))
