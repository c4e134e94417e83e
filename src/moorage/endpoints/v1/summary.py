"""The scheduler in one answer: pods per place, attempts of the last minutes, configuration.

Nothing is counted for this in advance: rates and latencies are worked out from the records that are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moorage.api.version import VERSION
from moorage.app.scheduler import Scheduler
from moorage.endpoints.cached import Kept
from moorage.endpoints.loop_bridge import LoopDoor
from moorage.endpoints.v1.queue import PERMIT
from moorage.endpoints.v1.routes import RESULTS
from moorage.queue.places import INFLIGHT
from moorage.scheduler.records import RecordRing

STEP_SECONDS, STEPS = 10, 30
"""Five minutes."""


class SummaryPage:
    def __init__(
        self,
        scheduler: Scheduler,
        door: LoopDoor,
        leads: Callable[[], bool],
        generation: Callable[[], int],
    ) -> None:
        self._scheduler = scheduler
        self._door = door
        self._leads = leads
        self._generation = generation
        self._steps = Kept(door, scheduler.clock.now, scheduler.records.copy, self._work)

    async def page(self) -> dict[str, Any]:
        pods, nodes = await self._door.ask(self._count)
        return {
            "version": VERSION,
            "leads": self._leads(),
            "configurationGeneration": self._generation(),
            "profiles": list(self._scheduler.engine.profiles),
            "nodes": nodes,
            "pods": pods,
            "steps": await self._steps.get(),
        }

    def _count(self) -> tuple[dict[str, int], int]:
        engine = self._scheduler.engine
        places = engine.queue.pending.by_place()
        places[PERMIT] = sum(1 for _ in engine.services.waiting)
        places[INFLIGHT] -= places[PERMIT]
        assumed = sum(1 for _ in engine.cache.assumed())
        return {**places, "assumed": assumed, "bound": len(engine.cache) - assumed}, len(engine.cache.table)

    def _work(self, ring: RecordRing) -> list[dict[str, Any]]:
        """Steps from the oldest kept record on, five minutes at most; the last one ends now."""
        now = self._scheduler.clock.wall()
        recent = [(r.started, r.duration, r.result) for r in ring if r.started > now - STEPS * STEP_SECONDS]
        if not recent:
            return []
        starts, seconds = np.array([one[0] for one in recent]), np.array([one[1] for one in recent])
        results = np.array([one[2] for one in recent])
        ago = np.maximum((now - starts) // STEP_SECONDS, 0)
        return [
            _step(now - (step + 1) * STEP_SECONDS, seconds[ago == step], results[ago == step])
            for step in range(int(ago.max()), -1, -1)
        ]


def _step(began: float, seconds: Any, results: Any) -> dict[str, Any]:
    p50, p99 = np.quantile(seconds, (0.5, 0.99)).tolist() if len(seconds) else (None, None)
    counts = {result: int((results == result).sum()) for result in RESULTS}
    return {"from": began, "seconds": STEP_SECONDS, **counts, "p50Seconds": p50, "p99Seconds": p99}
