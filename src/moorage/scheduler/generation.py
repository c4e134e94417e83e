"""A generation: the profiles of one configuration, with everything that their plugins registered or started.

    build ──▶ serves ──next one is built──▶ leaves ──its pods are bound or requeued──▶ ends
                                              │                                          │
                            callbacks and `run` stop here      tasks, indexes and extenders stop here

Stores, cache, queue, waiting pods and `handle.shared` belong to the process and outlive generations.
`reloading` replaces one generation by the next.
"""

from __future__ import annotations

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
from moorage.runtime.building import build_profile
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
                if writes(plugin, "run"):
                    self.runs.spawn(keep_running(plugin, clock, failed), plugin.name, "run")

    def forget(self) -> None:
        """Unregister what the plugins have registered, and cancel their tasks."""
        self.callbacks.close()
        self.services.indexes.close()
        self.services.object_indexes.close()
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

    def build(
        self, resolved: Sequence[ResolvedProfile], registry: Mapping[str, type[Plugin]], extenders: Sequence[Extender]
    ) -> Generation:
        """Build all profiles. Raise a PluginError with the problems of all of them, leaving nothing registered."""
        made = self._empty(extenders)
        built: dict[str, Profile] = {}
        problems: list[str] = []
        for profile in resolved:
            try:
                built[profile.scheduler_name] = build_profile(profile, registry, made.services, made.tasks)
            except PluginError as error:
                problems.append(str(error))
        if problems:
            made.forget()
            raise PluginError("; ".join(problems))
        for name, found in built.items():
            found.meter = _meter(name, found, self.ports.metrics)
        made.profiles = built
        return made

    def _empty(self, extenders: Sequence[Extender]) -> Generation:
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
            indexes=Indexes(cluster.table.observers, cluster.pod_indexes),
            object_indexes=ObjectIndexes(cluster.stores.lister),
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


def _meter(name: str, profile: Profile, metrics: SchedulerMetrics | None) -> ProfileMeter | None:
    if metrics is None:
        return None
    filters = {PRE_FILTER: _names(profile.pre_filter), FILTER: _names(profile.filter)}
    scores = {PRE_SCORE: _names(profile.pre_score), SCORE: _names(profile.score)}
    return metrics.profile(name, filters, scores)


def _names(plugins: Iterable[Plugin]) -> list[str]:
    return [plugin.name for plugin in plugins]
