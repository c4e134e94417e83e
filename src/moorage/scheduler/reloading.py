"""One generation in the place of another, between two cycles.

The next generation is built in full before anything changes; if a plugin cannot be built, the present one
stays. What happens to pods:

    active, backoff    stay, unless a PreEnqueue plugin of the new profile holds them back
    parked, gated      are tried again, after their backoff
    waiting in Permit  stay held; a plugin of the same name may allow or reject them
    being bound        go on with the plugins that placed them; if they fail they return to the new ones
    of a new profile   come into the queue
    of a gone profile  leave the queue, with an event that says so
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.resources import PODS
from moorage.config.resolving import ResolvedProfile
from moorage.config.types import KubeSchedulerConfiguration
from moorage.framework.extending import Extender
from moorage.framework.points import Plugin
from moorage.queue.places import INFLIGHT
from moorage.scheduler.engine import Engine
from moorage.scheduler.generation import Generation
from moorage.scheduler.handlers import Place, place_of
from moorage.scheduler.queue_hooks import sort_by

SPAWNED_SECONDS = 60.0
"""How long tasks that plugins of a replaced generation have spawned may go on."""


async def reload(
    engine: Engine,
    config: KubeSchedulerConfiguration,
    resolved: Sequence[ResolvedProfile],
    registry: Mapping[str, type[Plugin]],
    extenders: Sequence[Extender],
) -> None:
    """Returns when the engine schedules by the new configuration. A PluginError: it goes on by the present
    one. `extenders` are the engine's to close in both cases."""

    def swap() -> None:
        _swap(engine, engine.builder.build(resolved, registry, extenders), config)

    try:
        await engine.between_cycles(swap)
    except BaseException:
        for extender in extenders:
            await extender.close()
        raise


def _swap(engine: Engine, new: Generation, config: KubeSchedulerConfiguration) -> None:
    old, engine.generation = engine.generation, new
    old.callbacks.close()
    engine.profiles.clear()
    engine.profiles.update(new.profiles)
    engine.hooks.forget()
    engine.cycle.chooser.reuse.clear()
    engine.cache.table.forget_derived()
    _let_go(engine)
    sort_by(engine.queue, next(iter(new.profiles.values())))
    engine.queue.reconfigure(float(config.pod_initial_backoff_seconds), float(config.pod_max_backoff_seconds))
    _take_up(engine, new.profiles.keys() - old.profiles.keys())
    engine.tasks.spawn(_hand_over(engine, old, new, engine.bindings.now()), "reload", "hand over")


def _let_go(engine: Engine) -> None:
    """Of the pods whose profile is gone. Those in flight follow if they come back."""
    orphans = [
        info.pod
        for info, location in engine.queue.pending
        if location.place != INFLIGHT and not engine.hooks.serves(info.pod)
    ]
    for pod in orphans:
        engine.cache.forget_expected(pod.uid)
        engine.queue.delete(pod)
        engine.failures.leave(pod)


def _take_up(engine: Engine, profiles: set[str]) -> None:
    """Enqueue the pods that have waited for these profiles."""
    if not profiles:
        return
    for pod in list(engine.stores.lister(PODS).list()):
        known = pod.uid in engine.queue or engine.cache.is_assumed(pod.uid)
        if pod.scheduler_name in profiles and place_of(pod) is Place.PENDING and not known:
            engine.cache.expect(pod)
            engine.queue.add(pod)


async def _hand_over(
    engine: Engine, old: Generation, new: Generation, on_their_way: set[asyncio.Task[Any]]
) -> None:
    """Exchange what runs in the background, and end the old generation when no pod needs it any more."""
    try:
        await old.runs.stop()
        if engine.generation is new:
            engine.start_runs()
        if on_their_way:
            await asyncio.wait(on_their_way)
        if spawned := old.tasks.now():
            await asyncio.wait(spawned, timeout=SPAWNED_SECONDS)
    finally:
        await old.end()
