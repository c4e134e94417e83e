"""Builds an engine from a resolved configuration, the known plugins and the ports to the world."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.api.resources import NODES, PODS, Resource
from mooring.config.resolving import ResolvedProfile
from mooring.config.types import KubeSchedulerConfiguration
from mooring.framework.extending import Extender
from mooring.framework.extension_points import FILTER, PRE_FILTER, PRE_SCORE, SCORE
from mooring.framework.points import Plugin, SortKeyPlugin
from mooring.framework.ports import ApiClient, Clock, EventRecorder
from mooring.queue.scheduling_queue import SchedulingQueue
from mooring.runtime.building import build_profile
from mooring.runtime.profile import Profile
from mooring.runtime.registry import PluginError
from mooring.runtime.reuse.cache import ReuseCache
from mooring.runtime.services import FencedClient, MayWrite, Services, Tasks, WaitingPods, always
from mooring.scheduler.binding import BindingCycle
from mooring.scheduler.callbacks import ChangeCallbacks
from mooring.scheduler.choosing import NodeChooser
from mooring.scheduler.cluster import ClusterState
from mooring.scheduler.cycle import SchedulingCycle
from mooring.scheduler.engine import Engine, Inbox
from mooring.scheduler.failing import FailureHandler
from mooring.scheduler.handlers import Handlers
from mooring.scheduler.instructions import Activate, Executor, Resort, Wake
from mooring.scheduler.overcommitting import OvercommitWatch
from mooring.scheduler.placements import Placements
from mooring.scheduler.queue_hooks import ProfileHooks, goes_before, sort_key
from mooring.scheduler.records import DEFAULT_BYTES, RecordRing
from mooring.scheduler.status_writer import StatusWriter
from mooring.telemetry.metrics import METRICS, ProfileMeter, SchedulerMetrics

FLUSH_AFTER = 300.0
"""Seconds that a pod may stay parked before it is tried again without a reason."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The world outside."""

    client: ApiClient
    clock: Clock
    random: random.Random
    recorder: EventRecorder
    extenders: Sequence[Extender] = ()
    metrics: SchedulerMetrics | None = None
    """None: nothing is measured."""
    may_bind: MayWrite = always
    """Asked right before every write; False once this replica no longer leads."""


def assemble(
    config: KubeSchedulerConfiguration,
    resolved: Sequence[ResolvedProfile],
    registry: Mapping[str, type[Plugin]],
    ports: Ports,
    *,
    flush_after: float | None = FLUSH_AFTER,
    record_bytes: int = DEFAULT_BYTES,
) -> Engine:
    """An engine that is ready to run: profiles built, queue empty, nothing started."""
    ports = dataclasses.replace(ports, client=FencedClient(ports.client, ports.may_bind))
    inbox, tasks, bindings, cluster = Inbox(), Tasks(), Tasks(), ClusterState()
    profiles: dict[str, Profile] = {}
    hooks = ProfileHooks(profiles)
    queue = SchedulingQueue(
        clock=ports.clock,
        hooks=hooks,
        initial_backoff=float(config.pod_initial_backoff_seconds),
        max_backoff=float(config.pod_max_backoff_seconds),
        flush_after=flush_after,
        on_incoming=ports.metrics.came if ports.metrics is not None else None,
        on_hint=ports.metrics.hinted if ports.metrics is not None else None,
    )
    writer, waiting = StatusWriter(ports.client, ports.clock, tasks), WaitingPods(ports.clock)
    binding = BindingCycle(
        ports.client, ports.clock, ports.recorder, writer, waiting, inbox.post, ports.may_bind
    )
    callbacks = ChangeCallbacks(cluster.stores)
    services = _services(ports, inbox, cluster, queue, tasks, waiting, binding, callbacks)
    if ports.metrics is not None:
        services.shared[METRICS] = ports.metrics
    profiles.update(_build(resolved, registry, services, tasks))
    for built in profiles.values():
        built.meter = _meter(built, ports.metrics)
    _sort_by(queue, next(iter(profiles.values())))
    records, chooser = RecordRing(record_bytes), NodeChooser(ReuseCache(cluster.version))
    overcommits = OvercommitWatch(cluster.cache, ports.recorder, next(iter(profiles)), ports.metrics)
    failures = FailureHandler(queue, cluster.stores.lister(PODS), ports.recorder, writer)
    return Engine(
        inbox=inbox,
        stores=cluster.stores,
        cache=cluster.cache,
        queue=queue,
        profiles=profiles,
        handlers=Handlers(
            cluster.stores,
            cluster.cache,
            waiting,
            hooks.serves,
            overcommits.appeared,
        ),
        placements=Placements(cluster.cache, ports.clock, ports.metrics),
        callbacks=callbacks,
        executor=Executor(queue, cluster.cache, failures),
        cycle=SchedulingCycle(cluster.cache, queue.nominator, ports.clock, ports.recorder, records, chooser),
        binding=binding,
        records=records,
        services=services,
        clock=ports.clock,
        tasks=tasks,
        bindings=bindings,
        may_bind=ports.may_bind,
        metrics=ports.metrics,
    )


def _build(
    resolved: Sequence[ResolvedProfile],
    registry: Mapping[str, type[Plugin]],
    services: Services,
    tasks: Tasks,
) -> dict[str, Profile]:
    """All profiles by name, or a PluginError with what is wrong in any of them."""
    built: dict[str, Profile] = {}
    problems: list[str] = []
    for profile in resolved:
        try:
            built[profile.scheduler_name] = build_profile(profile, registry, services, tasks)
        except PluginError as error:
            problems.append(str(error))
    if problems:
        raise PluginError("; ".join(problems))
    return built


def _meter(profile: Profile, metrics: SchedulerMetrics | None) -> ProfileMeter | None:
    if metrics is None:
        return None
    filters = {PRE_FILTER: _names(profile.pre_filter), FILTER: _names(profile.filter)}
    scores = {PRE_SCORE: _names(profile.pre_score), SCORE: _names(profile.score)}
    return metrics.profile(profile.name, filters, scores)


def _names(plugins: Iterable[Plugin]) -> list[str]:
    return [plugin.name for plugin in plugins]


def _services(
    ports: Ports,
    inbox: Inbox,
    cluster: ClusterState,
    queue: SchedulingQueue,
    tasks: Tasks,
    waiting: WaitingPods,
    binding: BindingCycle,
    callbacks: ChangeCallbacks,
) -> Services:
    return Services(
        client=ports.client,
        clock=ports.clock,
        random=ports.random,
        recorder=ports.recorder,
        nominator=queue.nominator,
        nodes=cluster.table.listing.nodes,
        dry_run_rows=cluster.dry_run_rows,
        lister=cluster.stores.lister,
        assume_cache=cluster.assume_cache,
        pod_index=cluster.indexes.pod_index,
        node_index=cluster.indexes.node_index,
        object_index=cluster.object_indexes.object_index,
        topology=cluster.topologies.topology,
        pod_counters=cluster.counting.pod_counters,
        affinity_terms=cluster.counting.affinity_terms,
        activate=lambda pods, plugin: inbox.post(Activate(tuple(pods), plugin)),
        wake=lambda event, old, new: inbox.post(Wake(event, old, new)),
        on_change=callbacks.add,
        resort=lambda uids: inbox.post(Resort(tuple(uids))),
        stop_binding=binding.stop_pre_bind,
        waiting=waiting,
        tasks=tasks,
        extenders=sorted(ports.extenders, key=lambda extender: extender.ignorable),
    )


def _sort_by(queue: SchedulingQueue, profile: Profile) -> None:
    """All profiles have the same QueueSort; the first one's instance orders the queue."""
    sort = profile.queue_sort
    if isinstance(sort, SortKeyPlugin):
        queue.sort_by(key=functools.partial(sort_key, sort))
    else:
        queue.sort_by(less=functools.partial(goes_before, profile))


def needed_resources(profiles: Iterable[Profile]) -> list[Resource]:
    """The kinds that informers must keep: pods, nodes, and whatever plugins declared that they read."""
    needs = [need for profile in profiles for plugin in profile.plugins.values() for need in plugin.needs]
    wanted = {need.resource for need in needs if need.reads} - {PODS, NODES}
    return [NODES, PODS, *sorted(wanted, key=str)]
