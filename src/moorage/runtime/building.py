"""Build plugin instances from a resolved profile, each with its Handle: the scheduler's services, guarded by
`needs`."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from moorage.api.pod import Pod
from moorage.api.resources import Resource
from moorage.config.resolving import ResolvedProfile
from moorage.framework.access import Access
from moorage.framework.events import OF_THE_CLUSTER, ActionType, ClusterEvent, EventResource
from moorage.framework.handle import AssumeCache, Lister, Nominator, OnChange, WaitingPod
from moorage.framework.indexes import (
    AffinityTerms,
    NodeIndex,
    NodeKeys,
    ObjectIndex,
    ObjectKeys,
    PodCounters,
    PodIndex,
    PodKeys,
    Topology,
)
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.points import Plugin
from moorage.framework.ports import ApiClient, Clock, EventRecorder, Extender
from moorage.framework.preemption import PreemptionPolicy
from moorage.runtime.dry_run import Session
from moorage.runtime.preemption.evaluator import PreemptionEvaluator
from moorage.runtime.profile import Profile
from moorage.runtime.registry import PluginError
from moorage.runtime.services import GuardedClient, Services, Tasks, undeclared


def build_profile(
    resolved: ResolvedProfile, registry: Mapping[str, type[Plugin]], services: Services, tasks: Tasks
) -> Profile:
    """Build every plugin of the profile once. Raises a PluginError with all constructors that failed."""
    names = dict.fromkeys(ref.name for refs in resolved.points.values() for ref in refs)
    handles: list[PluginHandle] = []
    plugins: dict[str, Plugin] = {}
    problems: list[str] = []
    for name in names:
        cls = registry[name]
        handle = PluginHandle(cls, resolved.scheduler_name, services, tasks)
        try:
            plugins[name] = cls(_args(cls, resolved.plugin_args.get(name)), handle)
            handles.append(handle)
        except Exception as error:
            problems.append(f'initializing plugin "{name}": {type(error).__name__}: {error}')
    if problems:
        raise PluginError(f'profile "{resolved.scheduler_name}": ' + "; ".join(problems))
    try:
        profile = Profile(
            resolved.scheduler_name,
            {point: [plugins[ref.name] for ref in refs] for point, refs in resolved.points.items()},
            {ref.name: ref.weight or 1 for ref in resolved.points.get("score", ())},
            services,
            resolved.percentage_of_nodes_to_score or 0,
        )
    except PluginError as error:
        raise PluginError(f'profile "{resolved.scheduler_name}": {error}') from error
    for handle in handles:
        handle.attach(profile)
    return profile


def _args(cls: type[Plugin], configured: object) -> Any:
    """Return the arguments of the plugin: decoded arguments, its defaults, or the plain mapping."""
    if cls.Args is None:
        return configured if configured is not None else {}
    return configured if isinstance(configured, cls.Args) else msgspec.convert(configured or {}, cls.Args)


T = TypeVar("T")


class PluginHandle:
    """Implements `framework.handle.Handle` for one plugin of one profile."""

    def __init__(self, plugin: type[Plugin], profile_name: str, services: Services, tasks: Tasks) -> None:
        self._plugin = plugin
        self._services = services
        self._tasks = tasks
        self._profile: Profile | None = None
        self._reads = frozenset(need.resource for need in plugin.needs if need.reads)
        self.profile_name = profile_name
        self.client: ApiClient = GuardedClient(services.client, plugin.name, plugin.needs)

    def attach(self, profile: Profile) -> None:
        """Attach the profile, which exists only after its plugins do; dry runs work from now on."""
        self._profile = profile

    @property
    def clock(self) -> Clock:
        return self._services.clock

    @property
    def random(self) -> random.Random:
        return self._services.random

    @property
    def recorder(self) -> EventRecorder:
        return self._services.recorder

    @property
    def nominator(self) -> Nominator:
        return self._services.nominator

    @property
    def extenders(self) -> Sequence[Extender]:
        return self._services.extenders

    @property
    def nodes(self) -> Nodes:
        return self._services.nodes()

    def node(self, name: str) -> NodeView | None:
        columns = self._services.nodes().columns
        row = columns.row_of(name)
        return columns.view(row) if row >= 0 else None

    def lister(self, resource: Resource) -> Lister:
        self._must_read(resource)
        return self._services.lister(resource)

    def assume_cache(self, resource: Resource) -> AssumeCache:
        self._must_read(resource)
        return self._services.cluster.assume_cache(resource)

    def _must_read(self, resource: Resource) -> None:
        if resource not in self._reads:
            raise undeclared(self._plugin.name, Access(resource))

    def pod_index(self, name: str, extract: PodKeys) -> PodIndex:
        return self._services.indexes.pod_index(name, extract)

    def node_index(self, name: str, extract: NodeKeys) -> NodeIndex:
        return self._services.indexes.node_index(name, extract)

    def object_index(self, name: str, resource: Resource, extract: ObjectKeys) -> ObjectIndex:
        self._must_read(resource)
        return self._services.object_indexes.object_index(name, resource, extract)

    def topology(self, key: str) -> Topology:
        return self._services.cluster.topologies.topology(key)

    @property
    def pod_counters(self) -> PodCounters:
        return self._services.cluster.counting.pod_counters()

    @property
    def affinity_terms(self) -> AffinityTerms:
        return self._services.cluster.counting.affinity_terms()

    def waiting_pods(self) -> Iterable[WaitingPod]:
        return self._services.waiting

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        return self._services.waiting.get(uid)

    def stop_binding(self, uid: str, reason: str) -> bool:
        return self._services.stop_binding(uid, reason)

    def activate(self, pods: Iterable[Pod]) -> None:
        self._services.activate(pods, self._plugin.name)

    def wake(self, resource: EventResource, old: Any = None, new: Any = None) -> None:
        event = ClusterEvent(resource, ActionType.UPDATE)
        if self._must_register(event):
            self._services.wake(event, old, new)

    def _must_register(self, event: ClusterEvent) -> bool:
        """Return False if the profile calls the plugin at no point at which it could reject a pod: then no pod waits
        for its events."""
        name = self._plugin.name
        if self._profile is None:
            raise RuntimeError(f"plugin {name!r}: wake() cannot be used in the constructor")
        if event.resource in OF_THE_CLUSTER:
            raise ValueError(
                f"plugin {name!r}: wake({event.resource!s}): only the API server sends "
                f"such events; register and wake a kind of the plugin's own, such as EventResource({name!r})"
            )
        if name not in self._profile.registrations:
            return False
        if not any(entry.event.matches(event) for entry in self._profile.registrations[name]):
            raise ValueError(
                f"plugin {name!r} wakes pods for {event.resource!s} without having registered it: add "
                f"Registration(ClusterEvent(EventResource({str(event.resource)!r}), ActionType.UPDATE)) "
                "to what its events_to_register() returns"
            )
        return True

    def on_change(self, resource: Resource, callback: OnChange) -> None:
        self._must_read(resource)
        if inspect.iscoroutinefunction(callback):
            raise TypeError(
                f"plugin {self._plugin.name!r}: the callback of on_change({resource}) is called between two "
                "cycles and cannot be `async def`: make it plain, and start what takes long with handle.spawn"
            )
        self._services.on_change(self._plugin.name, resource, callback)

    def resort(self, uids: Iterable[str]) -> None:
        self._services.resort(uids)

    def spawn(self, coro: Coroutine[Any, Any, Any], name: str = "") -> None:
        self._tasks.spawn(coro, self._plugin.name, name)

    def shared(self, key: Hashable, factory: Callable[[], T]) -> T:
        if key not in self._services.shared:
            self._services.shared[key] = factory()
        found: T = self._services.shared[key]
        return found

    def dry_run(self) -> Session:
        if self._profile is None:
            raise RuntimeError(f"plugin {self._plugin.name!r}: dry_run() cannot be used in the constructor")
        return Session(self._profile)

    def preemption(self, policy: PreemptionPolicy) -> PreemptionEvaluator:
        return PreemptionEvaluator(self._plugin.name, self, policy, lambda: self.dry_run().remove_victims)
