"""Garbage collection at times that suit the scheduler.

What the first listing brought lives as long as the process: it is frozen, so that no collection walks over it
again. The oldest generation is collected when nothing is to be scheduled, or when that was long ago.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from mooring.framework.ports import Clock
from mooring.telemetry import logs

_log = logs.get(__name__)

YOUNG, MIDDLE, OLD = 10_000, 20, 1_000_000
"""Thresholds of the three generations; the last one is never reached by itself."""
LOOK = 5.0
"""Seconds between two looks whether the scheduler is idle."""
OFTEN, SELDOM = 30.0, 600.0
"""Seconds between two collections: of an idle scheduler, and of one that is never idle."""


def settle() -> None:
    """Everything that is there now stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


async def run(clock: Clock, is_idle: Callable[[], bool]) -> None:
    """Until cancelled."""
    collected = clock.now()
    while True:
        await clock.sleep(LOOK)
        age = clock.now() - collected
        if age >= SELDOM or (age >= OFTEN and is_idle()):
            began = clock.now()
            freed = gc.collect()
            collected = clock.now()
            _log.info(4, "Collected garbage", objects=freed, seconds=round(collected - began, 3))
