"""The view of /moorage/v1/summary: pods by place, and the attempts of the last minutes.

Nothing is counted in advance: rates and latencies are computed from the records that are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moorage.api.version import VERSION
from moorage.app.scheduler import Scheduler
from moorage.endpoints.answers import RESULTS, SummaryAnswer, SummaryStep
from moorage.endpoints.loop_bridge import Cached, LoopBridge
from moorage.endpoints.v1.queue import PERMIT, is_connected
from moorage.queue.places import INFLIGHT
from moorage.scheduler.records import RecordRing

STEP_SECONDS, STEPS = 10, 30
"""Five minutes in all."""


class SummaryView:
    def __init__(
        self, scheduler: Scheduler, bridge: LoopBridge, leads: Callable[[], bool], generation: Callable[[], int]
    ) -> None:
        self._scheduler = scheduler
        self._bridge = bridge
        self._leads = leads
        self._generation = generation
        self._steps = Cached(bridge, scheduler.clock.now, scheduler.records.copy, self._compute_steps)

    async def answer(self) -> SummaryAnswer:
        pods, nodes, connected = await self._bridge.call(self._count)
        return SummaryAnswer(
            version=VERSION,
            leads=self._leads(),
            connected=connected,
            configuration_generation=self._generation(),
            profiles=list(self._scheduler.engine.profiles),
            nodes=nodes,
            pods=pods,
            steps=await self._steps.get(),
        )

    def _count(self) -> tuple[dict[str, int], int, bool]:
        engine = self._scheduler.engine
        places = dict(engine.queue.pending.by_place())
        places[PERMIT] = sum(1 for _ in engine.services.waiting)
        places[INFLIGHT] -= places[PERMIT]
        assumed = sum(1 for _ in engine.cache.assumed())
        pods = {**places, "assumed": assumed, "bound": len(engine.cache) - assumed}
        return pods, len(engine.cache.table), is_connected(self._scheduler)

    def _compute_steps(self, ring: RecordRing) -> list[SummaryStep]:
        """Return the steps since the oldest kept record, at most five minutes; the last one ends now."""
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


def _step(began: float, seconds: Any, results: Any) -> SummaryStep:
    p50, p99 = np.quantile(seconds, (0.5, 0.99)).tolist() if len(seconds) else (None, None)
    counts = {result: int((results == result).sum()) for result in RESULTS}
    return SummaryStep(from_=began, seconds=STEP_SECONDS, p50_seconds=p50, p99_seconds=p99, **counts)
