"""Builds an engine from a resolved configuration, the known plugins and the ports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, Resource
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.config.resolving import ResolvedProfile
from moorage.config.types import KubeSchedulerConfiguration
from moorage.framework.points import Plugin
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.runtime.profile import Profile
from moorage.runtime.reuse.cache import ReuseCache
from moorage.runtime.services import FencedClient, Tasks, WaitingPods
from moorage.scheduler.binding import BindingCycle
from moorage.scheduler.choosing import NodeChooser
from moorage.scheduler.cycle import SchedulingCycle
from moorage.scheduler.engine import Engine, Inbox
from moorage.scheduler.failing import FailureHandler
from moorage.scheduler.generation import Builder, Ports
from moorage.scheduler.handlers import Handlers, OvercommitWatch
from moorage.scheduler.instructions import InstructionExecutor
from moorage.scheduler.placements import Placements
from moorage.scheduler.queue_hooks import ProfileHooks, sort_by
from moorage.scheduler.records import RecordRing
from moorage.scheduler.status_writer import PodStatusWriter
from moorage.state.cluster import ClusterState

FLUSH_AFTER = 300.0
"""Seconds after which an unschedulable pod is tried again without an event."""


def assemble(
    config: KubeSchedulerConfiguration,
    resolved: Sequence[ResolvedProfile],
    registry: Mapping[str, type[Plugin]],
    ports: Ports,
    *,
    flush_after: float | None = FLUSH_AFTER,
    records: RecordRing | None = None,
    behaviour: Behaviour = DEFAULT_BEHAVIOUR,
) -> Engine:
    """Build an engine that is ready to run: its profiles are built, its queue is empty, and nothing is started.

    Decision records go to `records`, or to a ring of the default size. `behaviour` stays when the configuration is
    reloaded.
    """
    ports = dataclasses.replace(ports, client=FencedClient(ports.client, ports.may_bind))
    inbox, tasks, bindings, cluster = Inbox(), Tasks(), Tasks(), ClusterState(behaviour)
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
        behaviour=behaviour,
    )
    writer, waiting = PodStatusWriter(ports.client, ports.clock, tasks), WaitingPods(ports.clock)
    binding = BindingCycle(ports.client, ports.clock, ports.recorder, writer, waiting, inbox.post, ports.may_bind)
    builder = Builder(ports, inbox.post, cluster, queue.nominator, tasks, waiting, binding.stop_pre_bind)
    generation = builder.build(resolved, registry, ports.extenders)
    profiles.update(generation.profiles)
    sort_by(queue, next(iter(profiles.values())))
    records = RecordRing() if records is None else records  # an empty ring is false
    chooser = NodeChooser(ReuseCache(cluster.version))
    overcommits = OvercommitWatch(cluster.cache, ports.recorder, next(iter(profiles)), ports.metrics)
    failures = FailureHandler(queue, cluster.stores.lister(PODS), ports.recorder, writer, hooks.serves)

    def serves(pod: Pod) -> bool:
        """Return whether a profile schedules the pod, or a removed profile is still binding it."""
        return hooks.serves(pod) or cluster.cache.is_assumed(pod.uid)

    return Engine(
        inbox=inbox,
        stores=cluster.stores,
        cache=cluster.cache,
        queue=queue,
        profiles=profiles,
        hooks=hooks,
        builder=builder,
        generation=generation,
        handlers=Handlers(cluster.stores, cluster.cache, waiting, serves, overcommits.appeared, behaviour),
        placements=Placements(cluster.cache, ports.clock, ports.metrics),
        failures=failures,
        executor=InstructionExecutor(queue, cluster.cache, failures),
        cycle=SchedulingCycle(cluster.cache, queue.nominator, ports.clock, ports.recorder, records, chooser),
        binding=binding,
        records=records,
        clock=ports.clock,
        tasks=tasks,
        bindings=bindings,
        may_bind=ports.may_bind,
        metrics=ports.metrics,
        tracing=ports.tracing,
    )


def needed_resources(plugins: Iterable[type[Plugin]]) -> list[Resource]:
    """Return the kinds that informers must watch: pods, nodes, and the kinds that plugins declare to read."""
    needs = [need for plugin in plugins for need in plugin.needs]
    wanted = {need.resource for need in needs if need.reads} - {PODS, NODES}
    return [NODES, PODS, *sorted(wanted, key=str)]
