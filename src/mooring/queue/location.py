"""Where a pending pod is and why: the queue's answer to "why is my pod pending?"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from mooring.framework.queued import QueuedPod

Place = Literal["active", "backoff", "parked", "gated", "inflight"]
ACTIVE: Place = "active"
BACKOFF: Place = "backoff"
PARKED: Place = "parked"
GATED: Place = "gated"
INFLIGHT: Place = "inflight"


@dataclass(frozen=True, slots=True)
class Location:
    """One pod's place. Times are monotonic seconds of the queue's clock."""

    place: Place
    why: str
    """A sentence for people."""
    since: float
    until: float | None = None
    """When it moves on by itself; None when only an event or its turn moves it."""
    plugins: tuple[str, ...] = ()
    """Who holds it there, sorted."""


def locate(info: QueuedPod, place: Place, since: float, until: float | None) -> Location:
    """Describe a place that has been found."""
    plugins = (info.gating_plugin,) if place == GATED else tuple(sorted(info.unschedulable_plugins))
    return Location(place, _WHY[place](info), since, until, plugins)


def _active(info: QueuedPod) -> str:
    cause = f", moved by {info.woken_by}" if info.woken_by else ""
    asked = f" (hint of {info.woken_hint})" if info.woken_hint else ""
    return f"Waits for its turn{cause}{asked}."


def _backoff(info: QueuedPod) -> str:
    if info.unschedulable_plugins:
        refused = f"Refused {_times(info.unschedulable_count)}"
        return f"{refused}, last by {_names(info.unschedulable_plugins)}; backs off."
    return f"Failed by an error {_times(info.consecutive_errors)} in a row; backs off."


def _parked(info: QueuedPod) -> str:
    return f"Refused by {_names(info.unschedulable_plugins)}; waits for an event that may change that."


def _gated(info: QueuedPod) -> str:
    reason = f": {info.gating_reason}" if info.gating_reason else ""
    return f"Held back by {info.gating_plugin}{reason}."


def _inflight(info: QueuedPod) -> str:
    return f"Attempt {info.attempts} is under way."


_WHY = {ACTIVE: _active, BACKOFF: _backoff, PARKED: _parked, GATED: _gated, INFLIGHT: _inflight}


def _names(plugins: Iterable[str]) -> str:
    return ", ".join(sorted(plugins))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
