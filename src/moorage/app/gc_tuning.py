"""Garbage collection at times that suit the scheduler, and memory given back to the system.

What the first listing brought lives as long as the process: it is frozen, so that no collection walks over it
again. The oldest generation is collected when nothing is to be scheduled, or when that was long ago. Pods
that come and go leave holes between what stays, which the C library keeps unless it is asked for them.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moorage.framework.ports import Clock
from moorage.telemetry import logs

_log = logs.get(__name__)

YOUNG, MIDDLE, OLD = 10_000, 20, 1_000_000
"""Thresholds of the three generations; the last one is never reached by itself."""
LOOK = 5.0
"""Seconds between two looks whether the scheduler is idle."""
OFTEN, SELDOM = 300.0, 600.0
"""Seconds between two collections: of an idle scheduler, and of one that is never idle. One takes a tenth
of a second, in which a pod may come, and finds next to nothing: what a scheduler keeps has no cycles."""
TRIM = 30.0
"""Seconds between two times that free memory is given back, which takes a millisecond."""


def settle() -> None:
    """Everything that is there now stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


@contextmanager
def collected_as_when_running() -> Iterator[None]:
    """For the time of a measurement or a simulation in a process that goes on afterwards."""
    before = gc.get_threshold()
    settle()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


@contextmanager
def nothing_collected() -> Iterator[None]:
    """While much is read that stays: looking through it for garbage would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


async def run(clock: Clock, is_idle: Callable[[], bool]) -> None:
    """Until cancelled."""
    collected = trimmed = clock.now()
    while True:
        await clock.sleep(LOOK)
        if clock.now() - trimmed >= TRIM:
            give_back()
            trimmed = clock.now()
        age = clock.now() - collected
        if age >= SELDOM or (age >= OFTEN and is_idle()):
            began = clock.now()
            freed = gc.collect()
            collected = clock.now()
            _log.info(4, "Collected garbage", objects=freed, seconds=round(collected - began, 3))


def give_back() -> None:
    """Return free pages to the system. Only glibc has a call for that, and only glibc keeps them."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
