"""Builds an engine from a resolved configuration, the known plugins and the ports to the world."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.api.pod import Pod
from mooring.api.resources import NODES, PODS, Resource
from mooring.config.resolving import ResolvedProfile
from mooring.config.types import KubeSchedulerConfiguration
from mooring.framework.extending import Extender
from mooring.framework.lifting import writes
from mooring.framework.points import Plugin
from mooring.framework.ports import ApiClient, Clock, EventRecorder
from mooring.queue.scheduling_queue import SchedulingQueue
from mooring.runtime.building import build_profile
from mooring.runtime.enqueuing import goes_before, sort_key
from mooring.runtime.profile import Profile
from mooring.runtime.services import Services
from mooring.runtime.tasks import Tasks
from mooring.runtime.waiting import WaitingPods
from mooring.scheduler.binding import Aftermath, BindingCycle
from mooring.scheduler.choosing import NodeChooser
from mooring.scheduler.cluster import ClusterState
from mooring.scheduler.cycle import SchedulingCycle
from mooring.scheduler.engine import Engine
from mooring.scheduler.failing import FailureHandler
from mooring.scheduler.fencing import FencedClient, MayWrite, always
from mooring.scheduler.handlers import Handlers
from mooring.scheduler.hooks import ProfileHooks
from mooring.scheduler.inbox import Inbox
from mooring.scheduler.overcommitting import OvercommitWatch
from mooring.scheduler.recalling import Recaller
from mooring.scheduler.records import DEFAULT_BYTES, RecordRing
from mooring.scheduler.status_writer import StatusWriter
from mooring.state.cache import ClusterCache
from mooring.state.counters import Counting
from mooring.state.derived import Topologies
from mooring.state.indexes import Indexes, ObjectIndexes
from mooring.state.node_table import NodeTable
from mooring.state.overlay import DryRunRows
from mooring.state.stores import AssumeStore, Stores
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
    inbox, stores, tasks, bindings = Inbox(), Stores(), Tasks(), Tasks()
    table = NodeTable()
    cache = ClusterCache(table)
    profiles: dict[str, Profile] = {}
    queue = SchedulingQueue(
        clock=ports.clock,
        hooks=ProfileHooks(profiles),
        initial_backoff=float(config.pod_initial_backoff_seconds),
        max_backoff=float(config.pod_max_backoff_seconds),
        flush_after=flush_after,
        on_incoming=ports.metrics.came if ports.metrics is not None else None,
        on_hint=ports.metrics.hinted if ports.metrics is not None else None,
    )
    after = Aftermath(
        permitted=lambda placement: engine.permitted(placement),
        bound=lambda placement: engine.bound(placement),
        failed=lambda placement, failure: engine.failed(placement, failure),
        dropped=lambda placement: engine.dropped(placement),
    )
    writer, waiting = StatusWriter(ports.client, ports.clock, tasks), WaitingPods(ports.clock)
    binding = BindingCycle(ports.client, ports.clock, ports.recorder, writer, waiting, after, ports.may_bind)
    services = _services(ports, inbox, stores, cache, queue, tasks, waiting, binding)
    if ports.metrics is not None:
        services.shared[METRICS] = ports.metrics
    for profile in resolved:
        built = profiles[profile.scheduler_name] = build_profile(profile, registry, services, tasks)
        built.meter = _meter(built, ports.metrics)
    _sort_by(queue, next(iter(profiles.values())))
    records = RecordRing(record_bytes)
    cluster = ClusterState(table, cache, queue)
    cycle = SchedulingCycle(
        cluster,
        ports.clock,
        ports.recorder,
        records,
        NodeChooser(Recaller(lambda resource: stores[resource].version)),
    )
    overcommits = OvercommitWatch(cache, ports.recorder, next(iter(profiles)), ports.metrics)
    handlers = Handlers(
        stores, cache, queue, waiting, lambda pod: pod.scheduler_name in profiles, overcommits.appeared
    )
    engine = Engine(
        inbox=inbox,
        stores=stores,
        cache=cache,
        queue=queue,
        profiles=profiles,
        handlers=handlers,
        cycle=cycle,
        binding=binding,
        failures=FailureHandler(queue, stores.lister(PODS), ports.recorder, writer),
        records=records,
        services=services,
        clock=ports.clock,
        tasks=tasks,
        bindings=bindings,
        may_bind=ports.may_bind,
        metrics=ports.metrics,
    )
    return engine


def _meter(profile: Profile, metrics: SchedulerMetrics | None) -> ProfileMeter | None:
    if metrics is None:
        return None
    points: dict[str, Sequence[Plugin]] = {
        "PreFilter": profile.pre_filter,
        "Filter": profile.filter,
        "PreScore": profile.pre_score,
        "Score": profile.score,
    }
    names = {point: [plugin.name for plugin in plugins] for point, plugins in points.items()}
    return metrics.profile(profile.name, names)


def _services(
    ports: Ports,
    inbox: Inbox,
    stores: Stores,
    cache: ClusterCache,
    queue: SchedulingQueue,
    tasks: Tasks,
    waiting: WaitingPods,
    binding: BindingCycle,
) -> Services:
    def activate(pods: Iterable[Pod]) -> None:
        wanted = list(pods)
        inbox.post(lambda: lambda: queue.activate(wanted))

    def resort(uids: Iterable[str]) -> None:
        wanted = list(uids)
        inbox.post(lambda: lambda: queue.resort(wanted))

    table = cache.table
    indexes, counting = Indexes(table.observers), Counting(table)
    assumed: dict[Resource, AssumeStore] = {}

    def assume_cache(resource: Resource) -> AssumeStore:
        return assumed.setdefault(resource, AssumeStore(stores.lister(resource)))

    return Services(
        client=ports.client,
        clock=ports.clock,
        random=ports.random,
        recorder=ports.recorder,
        nominator=queue.nominator,
        nodes=table.listing.nodes,
        dry_run_rows=lambda names: DryRunRows(table, cache.entry, names),
        lister=stores.lister,
        assume_cache=assume_cache,
        pod_index=indexes.pod_index,
        node_index=indexes.node_index,
        object_index=ObjectIndexes(stores.lister).object_index,
        topology=Topologies(table).topology,
        pod_counters=counting.pod_counters,
        affinity_terms=counting.affinity_terms,
        activate=activate,
        resort=resort,
        stop_binding=binding.stop_pre_bind,
        waiting=waiting,
        tasks=tasks,
        extenders=sorted(ports.extenders, key=lambda extender: extender.ignorable),
    )


def _sort_by(queue: SchedulingQueue, profile: Profile) -> None:
    """All profiles have the same QueueSort; the first one's instance orders the queue."""
    if writes(profile.queue_sort, "key"):
        queue.sort_by(key=functools.partial(sort_key, profile))
    else:
        queue.sort_by(less=functools.partial(goes_before, profile))


def needed_resources(profiles: Iterable[Profile]) -> list[Resource]:
    """The kinds that informers must keep: pods, nodes, and whatever plugins declared that they read."""
    needs = [need for profile in profiles for plugin in profile.plugins.values() for need in plugin.needs]
    wanted = {need.resource for need in needs if need.reads} - {PODS, NODES}
    return [NODES, PODS, *sorted(wanted, key=str)]
