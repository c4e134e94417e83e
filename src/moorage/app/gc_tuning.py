"""Collect garbage at times that suit the scheduler, empty caches, and return free memory to the system.

Objects from the first listing live as long as the process. They are frozen, so that no collection visits them
again. The oldest generation is collected when the scheduler is idle, or after a longer time. Pods that come
and go leave holes in the heap, which the C library keeps unless asked to return them.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moorage.api import recent
from moorage.framework.ports import Clock
from moorage.telemetry import logs

_log = logs.get(__name__)

YOUNG, MIDDLE, OLD = 10_000, 20, 1_000_000
"""Thresholds of the three generations. The last one is never reached on its own."""
POLL_SECONDS = 5.0
"""Seconds between two checks whether the scheduler is idle."""
IDLE_INTERVAL, BUSY_INTERVAL = 300.0, 600.0
"""Seconds between two collections of an idle and of a busy scheduler. A collection takes a tenth of a second, in which
a pod may arrive, and finds almost nothing: the objects of a scheduler form no cycles."""
FORGET_INTERVAL = 300.0
"""Seconds for which caches keep what no pod needs."""
TRIM_INTERVAL = 30.0
"""Seconds between two returns of free memory, which take a millisecond each."""


def settle() -> None:
    """Freeze all present objects and set the thresholds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


@contextmanager
def production_gc() -> Iterator[None]:
    """Collect as a running scheduler does, for a measurement or a simulation."""
    before = gc.get_threshold()
    settle()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable collection while many objects are read that stay. It would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


async def run(clock: Clock, is_idle: Callable[[], bool]) -> None:
    """Collect, forget and trim until cancelled."""
    collected = forgot = trimmed = clock.now()
    while True:
        await clock.sleep(POLL_SECONDS)
        if clock.now() - forgot >= FORGET_INTERVAL:
            recent.forget_unused()
            forgot = clock.now()
        if clock.now() - trimmed >= TRIM_INTERVAL:
            return_free_memory()
            trimmed = clock.now()
        age = clock.now() - collected
        if age >= BUSY_INTERVAL or (age >= IDLE_INTERVAL and is_idle()):
            began = clock.now()
            freed = gc.collect()
            collected = clock.now()
            _log.info(4, "Collected garbage", objects=freed, seconds=round(collected - began, 3))


def return_free_memory() -> None:
    """Return free pages to the system. Only glibc keeps them, and only glibc has a call for it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
