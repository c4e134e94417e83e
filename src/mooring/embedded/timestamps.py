"""Timestamps as objects carry them, made once a second and not once an object."""

from __future__ import annotations

from functools import lru_cache

from mooring.api.times import format_time


def timestamp(wall: float) -> str:
    """Whole seconds, as metav1.Time."""
    return _of_second(int(wall))


@lru_cache(maxsize=64)
def _of_second(second: int) -> str:
    return format_time(second)
