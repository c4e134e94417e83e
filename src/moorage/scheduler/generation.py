"""A generation: the profiles of one configuration, with everything that their plugins registered or started.

    build ──▶ serves ──next one is built──▶ leaves ──its pods are bound or requeued──▶ ends
                                              │                                          │
                            callbacks and `run` stop here      tasks, indexes and extenders stop here

A plugin whose class and arguments are the same in the next generation stays: the next generation takes over the
instance with everything that it has registered and started. Stores, cache, queue, waiting pods and `handle.shared`
belong to the process and outlive generations. `reloading` replaces one generation by the next.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.config.resolving import ResolvedProfile
from moorage.framework._contract import writes
from moorage.framework.handle import Nominator
from moorage.framework.points import FILTER, PRE_FILTER, PRE_SCORE, SCORE, Plugin
from moorage.framework.ports import ApiClient, Clock, EventRecorder, Extender
from moorage.runtime.background import keep_running
from moorage.runtime.building import (
    LoopCall,
    PluginHandle,
    build_plugins,
    build_profile,
    directly,
    may_block,
    plugin_names,
)
from moorage.runtime.profile import Profile
from moorage.runtime.registry import PluginError
from moorage.runtime.services import MayWrite, Services, Tasks, WaitingPods, always
from moorage.scheduler.instructions import Activate, Instruction, Resort, Wake
from moorage.state.cluster import ChangeCallbacks, ClusterState
from moorage.state.indexes import Indexes, ObjectIndexes
from moorage.telemetry.metrics import METRICS, ProfileMeter, SchedulerMetrics
from moorage.telemetry.tracing import Tracing


@dataclass(frozen=True, slots=True)
class Ports:
    """The interfaces through which the engine reaches the outside world."""

    client: ApiClient
    clock: Clock
    random: random.Random
    recorder: EventRecorder
    extenders: Sequence[Extender] = ()
    """The extenders of the first generation."""
    metrics: SchedulerMetrics | None = None
    """None disables metrics."""
    tracing: Tracing | None = None
    """None disables traces."""
    may_bind: MayWrite = always
    """Called right before every write. Returns False once this replica no longer leads."""


@dataclass(slots=True)
class Generation:
    """The profiles of one configuration. `Builder` builds it."""

    profiles: Mapping[str, Profile]
    services: Services
    callbacks: ChangeCallbacks
    tasks: Tasks
    """Tasks that plugins have spawned."""
    runs: Tasks
    """The `run` methods of the plugins."""
    run_failures: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Plugin → how often its `run` has failed, and when it last failed."""
    handles: dict[tuple[str, str], PluginHandle] = field(default_factory=dict)
    """Profile and plugin → the handle of the plugin."""
    running: dict[tuple[str, str], Tasks] = field(default_factory=dict)
    """Profile and plugin → its `run` method, which was started."""

    def start(self, clock: Clock, metrics: SchedulerMetrics | None) -> None:
        """Start the `run` method of every plugin that has one. Called on the leader only."""

        def failed(plugin: str, error: BaseException) -> None:
            if metrics is not None:
                metrics.plugin_run_failures.inc(plugin)
            times, _ = self.run_failures.get(plugin, (0, 0.0))
            self.run_failures[plugin] = times + 1, clock.now()
            self.runs.failed(plugin, error)

        for profile in self.profiles.values():
            for plugin in profile.plugins.values():
                key = profile.name, plugin.name
                if writes(plugin, "run") and key not in self.running:
                    self.running[key] = self.runs.branch()
                    self.running[key].spawn(keep_running(plugin, clock, failed), plugin.name, "run")

    def take_over(self, old: Generation) -> None:
        """Take over what the plugins that stay have registered and started. Called when this generation begins."""
        stays = {key: handle for key, handle in self.handles.items() if old.handles.get(key) is handle}
        indexes = [index for handle in stays.values() for index in handle.indexes]
        self.callbacks.take_over(old.callbacks, [each for handle in stays.values() for each in handle.watchers])
        old.services.indexes.hand_over(indexes)
        old.services.object_indexes.hand_over(indexes)
        # The `run` methods that continue count their failures there.
        self.run_failures = old.run_failures
        names = {name for _, name in stays}
        for name in [name for name in self.run_failures if name not in names]:
            del self.run_failures[name]
        for key in stays:
            if key in old.running:
                self.running[key] = old.running.pop(key)
                self.running[key].move_to(self.runs)

    def forget(self, old: Generation | None = None) -> None:
        """Unregister what the plugins have registered, and cancel their tasks, without what belongs to `old`."""
        self.callbacks.close()
        self.services.indexes.close(old.services.indexes if old is not None else None)
        self.services.object_indexes.close(old.services.object_indexes if old is not None else None)
        for task in self.tasks.now():
            task.cancel()

    async def end(self) -> None:
        """Stop everything that the plugins have started. Called when no pod needs this generation any more."""
        await self.runs.stop()
        self.forget()
        await self.tasks.stop()
        for extender in self.services.extenders:
            await extender.close()


@dataclass(slots=True)
class Builder:
    """Builds generations from the parts that all generations of a process share."""

    ports: Ports
    post: Callable[[Instruction], None]
    """Posts an instruction to the inbox."""
    cluster: ClusterState
    nominator: Nominator
    tasks: Tasks
    waiting: WaitingPods
    stop_binding: Callable[[str, str], bool]
    """Stop a pod that is still in PreBind, for a reason."""
    shared: dict[Hashable, Any] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Allows one reload at a time."""

    def build(
        self, resolved: Sequence[ResolvedProfile], registry: Mapping[str, type[Plugin]], extenders: Sequence[Extender]
    ) -> Generation:
        """Build all profiles. Raise a PluginError with the problems of all of them, leaving nothing registered."""
        draft = self.draft(resolved, registry, extenders)
        try:
            draft.build_plugins()
            return draft.finish()
        except BaseException:
            draft.abandon()
            raise

    def draft(
        self,
        resolved: Sequence[ResolvedProfile],
        registry: Mapping[str, type[Plugin]],
        extenders: Sequence[Extender],
        old: Generation | None = None,
        call: LoopCall = directly,
    ) -> GenerationDraft:
        """Begin a generation that keeps the unchanged plugins of `old`. The constructors of the others may run in
        another thread; `call` then calls functions on the scheduler's loop."""
        handles: dict[tuple[str, str], PluginHandle] = {}
        for profile in resolved:
            for name in plugin_names(profile):
                key = profile.scheduler_name, name
                known = old.handles.get(key) if old is not None else None
                if known is not None and _is_same(known, registry[name], profile.plugin_args.get(name)):
                    handles[key] = known
        made = self._empty(extenders, old, [index for handle in handles.values() for index in handle.indexes])
        for profile in resolved:
            for name in plugin_names(profile):
                key = profile.scheduler_name, name
                if key not in handles:
                    about = registry[name], profile.plugin_args.get(name), profile.scheduler_name
                    how = call if may_block(registry[name]) else directly
                    handles[key] = PluginHandle(*about, made.services, made.tasks, how)
        made.handles = handles
        return GenerationDraft(made, old, resolved, registry, self.ports.metrics)

    def _empty(self, extenders: Sequence[Extender], old: Generation | None, stays: Sequence[object]) -> Generation:
        cluster, post = self.cluster, self.post
        callbacks = ChangeCallbacks(cluster.stores)
        if self.ports.metrics is not None:
            self.shared[METRICS] = self.ports.metrics
        services = Services(
            client=self.ports.client,
            clock=self.ports.clock,
            random=self.ports.random,
            recorder=self.ports.recorder,
            nominator=self.nominator,
            nodes=cluster.table.listing.nodes,
            dry_run_rows=cluster.dry_run_rows,
            lister=cluster.stores.lister,
            cluster=cluster,
            indexes=(
                Indexes(cluster.table.observers, cluster.pod_indexes)
                if old is None
                else old.services.indexes.successor(stays)
            ),
            object_indexes=(
                ObjectIndexes(cluster.stores.lister) if old is None else old.services.object_indexes.successor(stays)
            ),
            activate=lambda pods, plugin: post(Activate(tuple(pods), plugin)),
            wake=lambda event, old, new: post(Wake(event, old, new)),
            on_change=callbacks.add,
            resort=lambda uids: post(Resort(tuple(uids))),
            stop_binding=self.stop_binding,
            waiting=self.waiting,
            extenders=sorted(extenders, key=lambda extender: extender.ignorable),
            shared=self.shared,
        )
        tasks, runs = self.tasks.branch(), self.tasks.branch()
        return Generation({}, services, callbacks, tasks, runs)


def _is_same(known: PluginHandle, cls: type[Plugin], configured: object) -> bool:
    """Return whether a plugin is as it was. A module that is imported again has other classes."""
    return known.plugin_class is cls and known.configured == configured


@dataclass(slots=True)
class GenerationDraft:
    """A generation that is being built. Nothing of it takes effect before `finish`."""

    made: Generation
    old: Generation | None
    resolved: Sequence[ResolvedProfile]
    registry: Mapping[str, type[Plugin]]
    metrics: SchedulerMetrics | None

    def build_plugins(self, slow: bool = True) -> None:
        """Construct the plugins that are new. It may block, and may run in another thread. Unless `slow`, construct
        those whose constructors never block, between two cycles. Raises a PluginError."""
        problems: list[str] = []
        for profile in self.resolved:
            try:
                build_plugins(profile, self.registry, self._handles(profile), slow)
            except PluginError as error:
                problems.append(str(error))
        if problems:
            raise PluginError("; ".join(problems))

    @property
    def is_incomplete(self) -> bool:
        """Return whether a plugin is not constructed yet."""
        return any(handle.instance is None for handle in self.made.handles.values())

    def finish(self) -> Generation:
        """Build the profiles, and begin what the constructors have registered. Call it between two cycles."""
        made, built, problems = self.made, dict[str, Profile](), list[str]()
        for profile in self.resolved:
            try:
                built[profile.scheduler_name] = build_profile(profile, self._handles(profile), made.services)
            except PluginError as error:
                problems.append(str(error))
        if problems:
            raise PluginError("; ".join(problems))
        for name, found in built.items():
            found.meter = _meter(name, found, self.metrics)
        made.profiles = built
        if self.old is not None:
            made.take_over(self.old)
        for (profile_name, _), handle in made.handles.items():
            handle.attach(built[profile_name], made.services, made.tasks)
        return made

    def abandon(self) -> None:
        """Leave nothing registered."""
        self.made.forget(self.old)
        for key, handle in self.made.handles.items():
            if self.old is None or self.old.handles.get(key) is not handle:
                handle.abandon()

    def _handles(self, profile: ResolvedProfile) -> dict[str, PluginHandle]:
        return {name: self.made.handles[profile.scheduler_name, name] for name in plugin_names(profile)}


def _meter(name: str, profile: Profile, metrics: SchedulerMetrics | None) -> ProfileMeter | None:
    if metrics is None:
        return None
    filters = {PRE_FILTER: _names(profile.pre_filter), FILTER: _names(profile.filter)}
    scores = {PRE_SCORE: _names(profile.pre_score), SCORE: _names(profile.score)}
    return metrics.profile(name, filters, scores)


def _names(plugins: Iterable[Plugin]) -> list[str]:
    return [plugin.name for plugin in plugins]
