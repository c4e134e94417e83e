"""Which configurations a scheduler was given, and what became of each; the newest, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from moorage.config.types import KubeSchedulerConfiguration
from moorage.config.wire import to_wire, to_yaml

KEPT = 20
START, FILE, REQUEST = "start", "file", "request"
"""Where a configuration came from."""


def shown(configuration: KubeSchedulerConfiguration) -> str:
    """The completed configuration as YAML, without private keys: whoever may read it need not have them."""
    wire = to_wire(configuration)
    for extender in wire.get("extenders") or ():
        if (extender.get("tlsConfig") or {}).get("keyData"):
            extender["tlsConfig"]["keyData"] = ""
    return to_yaml(wire)


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    time: float
    """Seconds since the epoch."""
    origin: str
    generation: int
    """In use afterwards."""
    error: str = ""
    """Why it was refused; empty when it was applied."""
    needs_restart: tuple[str, ...] = ()
    text: str = ""
    """Completed, as `shown`; empty when it was refused."""

    def to_wire(self) -> dict[str, Any]:
        """Without the text."""
        return {
            "number": self.number,
            "time": self.time,
            "origin": self.origin,
            "generation": self.generation,
            "error": self.error,
            "needsRestart": list(self.needs_restart),
        }


@dataclass(slots=True)
class History:
    _entries: deque[Entry] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, time: float, origin: str, generation: int, **about: Any) -> Entry:
        last = self._entries[-1].number if self._entries else 0
        self._entries.append(Entry(last + 1, time, origin, generation, **about))
        return self._entries[-1]

    def find(self, number: int) -> Entry | None:
        return next((entry for entry in self if entry.number == number), None)

    def __iter__(self) -> Iterator[Entry]:
        """Newest first; also while another thread adds one."""
        return iter(tuple(reversed(self._entries)))
