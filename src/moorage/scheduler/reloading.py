"""Replaces one generation by the next, between two cycles.

The plugins of the next generation are constructed in another thread while the current one schedules, except for
Moorage's own, whose constructors never block. If one cannot be constructed, the current generation stays. Plugins
whose class and arguments have not changed stay, too. Pods are treated as follows:

    active, backoff       stay, unless a PreEnqueue plugin of the new profile gates them
    unschedulable, gated  are tried again after their backoff
    waiting on Permit     keep waiting; a plugin of the same name may allow or reject them
    being bound           continue with the plugins that placed them, and return to the new ones if they fail
    of a new profile      are added to the queue
    of a removed profile  leave the queue, with an event that says so
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from moorage.api.resources import PODS
from moorage.config.resolving import ResolvedProfile
from moorage.config.types import KubeSchedulerConfiguration
from moorage.framework.points import Plugin
from moorage.framework.ports import Extender
from moorage.queue.places import INFLIGHT
from moorage.runtime.building import LoopCall, directly
from moorage.scheduler.engine import Engine
from moorage.scheduler.generation import Generation
from moorage.scheduler.handlers import PodStage, stage_of
from moorage.scheduler.queue_hooks import sort_by

T = TypeVar("T")
InThread = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function, which may block, in another thread, and waits for its end."""
SPAWNED_SECONDS = 60.0
"""How long tasks that plugins of a replaced generation have spawned may continue, in seconds."""


async def reload(
    engine: Engine,
    config: KubeSchedulerConfiguration,
    resolved: Sequence[ResolvedProfile],
    registry: Mapping[str, type[Plugin]],
    extenders: Sequence[Extender],
    in_thread: InThread | None = None,
) -> None:
    """Switch the engine to a new configuration, and return once it schedules by it.

    Plugins are constructed by means of `in_thread`; without it, between two cycles, for virtual time. If a PluginError
    is raised, the engine keeps its current configuration. In both cases the engine closes `extenders`.
    """
    async with engine.builder.lock:
        call = directly if in_thread is None else _from_thread(engine)
        draft = engine.builder.draft(resolved, registry, extenders, engine.generation, call)

        def swap() -> None:
            if in_thread is None:
                draft.build_plugins()
            _swap(engine, draft.finish(), config)

        try:
            if in_thread is not None:
                # Every question of a constructor in the thread waits for the end of a cycle.
                await engine.between_cycles(lambda: draft.build_plugins(slow=False))
                if draft.is_incomplete:
                    await in_thread(draft.build_plugins)
            await engine.between_cycles(swap)
        except BaseException:
            if engine.generation is not draft.made:
                draft.abandon()
            for extender in extenders:
                await extender.close()
            raise


def _from_thread(engine: Engine) -> LoopCall:
    """Return a function with which another thread calls functions between two cycles."""
    loop = asyncio.get_running_loop()

    def call(work: Callable[[], T]) -> T:
        results: list[T] = []
        asyncio.run_coroutine_threadsafe(engine.between_cycles(lambda: results.append(work())), loop).result()
        return results[0]

    return call


def _swap(engine: Engine, new: Generation, config: KubeSchedulerConfiguration) -> None:
    old, engine.generation = engine.generation, new
    old.callbacks.close()  # of the plugins that do not stay
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
