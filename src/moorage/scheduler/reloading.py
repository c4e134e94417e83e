"""Replaces one generation by the next, between two cycles.

The next generation is built completely before anything changes. If a plugin cannot be built, the current
generation stays. Pods are treated as follows:

    active, backoff       stay, unless a PreEnqueue plugin of the new profile gates them
    unschedulable, gated  are tried again after their backoff
    waiting on Permit     keep waiting; a plugin of the same name may allow or reject them
    being bound           continue with the plugins that placed them, and return to the new ones if they fail
    of a new profile      are added to the queue
    of a removed profile  leave the queue, with an event that says so
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.resources import PODS
from moorage.config.resolving import ResolvedProfile
from moorage.config.types import KubeSchedulerConfiguration
from moorage.framework.points import Plugin
from moorage.framework.ports import Extender
from moorage.queue.places import INFLIGHT
from moorage.scheduler.engine import Engine
from moorage.scheduler.generation import Generation
from moorage.scheduler.handlers import PodStage, stage_of
from moorage.scheduler.queue_hooks import sort_by

SPAWNED_SECONDS = 60.0
"""How long tasks that plugins of a replaced generation have spawned may continue, in seconds."""


async def reload(
    engine: Engine,
    config: KubeSchedulerConfiguration,
    resolved: Sequence[ResolvedProfile],
    registry: Mapping[str, type[Plugin]],
    extenders: Sequence[Extender],
) -> None:
    """Switch the engine to a new configuration, and return once it schedules by it.

    If a PluginError is raised, the engine keeps its current configuration. In both cases the engine closes `extenders`.
    """

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
    """Drop the pods whose profile was removed. Pods in flight are dropped when they are requeued."""
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
    """Enqueue the pods that have been waiting for these profiles."""
    if not profiles:
        return
    for pod in list(engine.stores.lister(PODS).list()):
        known = pod.uid in engine.queue or engine.cache.is_assumed(pod.uid)
        if pod.scheduler_name in profiles and stage_of(pod) is PodStage.PENDING and not known:
            engine.cache.expect(pod)
            engine.queue.add(pod)


async def _hand_over(engine: Engine, old: Generation, new: Generation, on_their_way: set[asyncio.Task[Any]]) -> None:
    """Start the new `run` methods, and end the old generation when no pod needs it any more."""
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
