"""What the endpoints of a process show of its scheduler; `moorage run` and `moorage up` have the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.app.reloading import Reloader
from moorage.app.scheduler import Scheduler
from moorage.config.types import API_VERSION, KIND
from moorage.config.wire import to_wire
from moorage.endpoints.health import Check, Health, Inside
from moorage.endpoints.loop_bridge import LoopDoor
from moorage.endpoints.v1.configuration import ConfigurationPage
from moorage.endpoints.v1.views import Pages
from moorage.run import gauges
from moorage.run.endpoints import Exposition, status_page
from moorage.run.watchdog import Heart
from moorage.telemetry.metrics import SchedulerMetrics

LOOP_TOLERANCE = 30.0
"""Seconds without a heartbeat from which the process is no longer alive."""


def inside_of(
    scheduler: Scheduler,
    metrics: SchedulerMetrics,
    health: Health,
    *,
    started: float,
    leads: Callable[[], bool] = lambda: True,
    reloader: Reloader | None = None,
    flags: Mapping[str, str],
    without: frozenset[str] = frozenset(),
    writable: bool = False,
) -> Inside:
    """Call it on the scheduler's loop. `without` names metrics that are not shown; `writable`: the
    configuration may be changed."""
    engine, door = scheduler.engine, LoopDoor(asyncio.get_running_loop())
    exposition = Exposition(
        metrics,
        lambda: gauges.refresh(metrics, engine, scheduler.recorder),
        lambda: _pods(scheduler),
        leads,
        health,
        door,
        without,
    )
    return Inside(
        health=health,
        metrics=exposition.metrics,
        resource_metrics=exposition.resource_metrics,
        slis=exposition.slis,
        config=lambda: _configz(scheduler, reloader),
        flags=flags,
        status=status_page(started, engine.profiles, leads),
        views=Pages(scheduler, door, leads, lambda: reloader.outcome.generation if reloader else 1),
        configurations=ConfigurationPage(scheduler, reloader, door, writable),
    )


def loop_check(heart: Heart) -> Check:
    """Whether the scheduling loop beats."""

    def late() -> str:
        age = heart.age()
        return f"no heartbeat for {age:.0f}s" if age > LOOP_TOLERANCE else ""

    return Check("scheduling-loop", late)


def _configz(scheduler: Scheduler, reloader: Reloader | None) -> dict[str, Any]:
    config = scheduler.configuration.config
    shown: dict[str, Any] = {"componentconfig": {"apiVersion": API_VERSION, "kind": KIND, **to_wire(config)}}
    if reloader is not None:
        shown["reload"] = reloader.outcome.to_wire()
    return shown


def _pods(scheduler: Scheduler) -> list[Pod]:
    informer = scheduler.informers.informers[PODS]
    return [pod for pod in informer.objects.values() if isinstance(pod, Pod) and not pod.is_terminal]
