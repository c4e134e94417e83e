"""Build plugin instances from a resolved profile, each with its Handle: the scheduler's services, guarded by
`needs`."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from moorage.api.failures import failure_text, is_interruption
from moorage.api.pod import Pod
from moorage.api.resources import Resource
from moorage.api.versions import Behaviour
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
from moorage.state.cluster import ChangeWatcher

_OWN_PACKAGE = __name__.partition(".")[0]


def may_block(cls: type[Plugin]) -> bool:
    """Return whether the constructor of a plugin may take long. Those of Moorage's own plugins never do."""
    return cls.__module__.partition(".")[0] != _OWN_PACKAGE


def build_plugins(
    resolved: ResolvedProfile, registry: Mapping[str, type[Plugin]], handles: Mapping[str, PluginHandle], slow: bool
) -> None:
    """Construct every plugin of the profile that its handle does not have yet; unless `slow`, only those whose
    constructor never blocks. Raises a PluginError with all constructors that failed."""
    problems: list[str] = []
    for name, handle in handles.items():
        cls = registry[name]
        if handle.instance is not None or (may_block(cls) and not slow):
            continue
        try:
            handle.instance = cls(_args(cls, resolved.plugin_args.get(name)), handle)
        except BaseException as error:
            if is_interruption(error):
                raise
            problems.append(f'initializing plugin "{name}": {failure_text(error)}')
    if problems:
        raise PluginError(f'profile "{resolved.scheduler_name}": ' + "; ".join(problems))


def build_profile(resolved: ResolvedProfile, handles: Mapping[str, PluginHandle], services: Services) -> Profile:
    """Build a profile from its plugins, all of which are constructed."""
    plugins = {name: handle.instance for name, handle in handles.items() if handle.instance is not None}
    try:
        return Profile(
            resolved.scheduler_name,
            {point: [plugins[ref.name] for ref in refs] for point, refs in resolved.points.items()},
            {ref.name: ref.weight or 1 for ref in resolved.points.get("score", ())},
            services,
            resolved.percentage_of_nodes_to_score or 0,
        )
    except PluginError as error:
        raise PluginError(f'profile "{resolved.scheduler_name}": {error}') from error


def plugin_names(resolved: ResolvedProfile) -> list[str]:
    """Return the plugins of a profile, each once."""
    return list(dict.fromkeys(ref.name for refs in resolved.points.values() for ref in refs))


def _args(cls: type[Plugin], configured: object) -> Any:
    """Return the arguments of the plugin: decoded arguments, its defaults, or the plain mapping."""
    if cls.Args is None:
        return copy.deepcopy(configured) if configured is not None else {}
    return configured if isinstance(configured, cls.Args) else msgspec.convert(configured or {}, cls.Args)


T = TypeVar("T")


class LoopCall(Protocol):
    """Calls a function on the scheduler's loop, between two cycles, and returns its result."""

    def __call__(self, work: Callable[[], T]) -> T: ...


def directly(work: Callable[[], T]) -> T:
    """Call a function here, for callers on the scheduler's loop."""
    return work()


def _abandoned(work: Callable[[], T]) -> T:
    raise RuntimeError("the reload that constructs this plugin has ended")


class PluginHandle:
    """Implements `framework.handle.Handle` for one plugin of one profile. It stays with its plugin across reloads.

    A constructor may run in another thread. The handle then does on the scheduler's loop whatever touches the state of
    the cluster (`call`). Callbacks and tasks begin when the profile is attached: until then the plugin is not complete.
    """

    def __init__(
        self,
        plugin: type[Plugin],
        configured: object,
        profile_name: str,
        services: Services,
        tasks: Tasks,
        call: LoopCall = directly,
    ) -> None:
        self.plugin_class = plugin
        self.configured = configured
        """The arguments of the plugin in the configuration."""
        self.instance: Plugin | None = None
        """The plugin, once it is constructed."""
        self.indexes: list[object] = []
        """The indexes that the plugin has asked for."""
        self.watchers: list[ChangeWatcher] = []
        """Its callbacks."""
        self.tasks = tasks.branch()
        """Its tasks."""
        self._plugin = plugin
        self._services = services
        self._call = call
        self._profile: Profile | None = None
        self._callbacks: list[tuple[Resource, OnChange]] = []
        self._coroutines: list[tuple[Coroutine[Any, Any, Any], str]] = []
        """What the constructor has registered and spawned; both wait for `attach`."""
        self._reads = frozenset(need.resource for need in plugin.needs if need.reads)
        self.profile_name = profile_name
        self.client: ApiClient = GuardedClient(services.client, plugin.name, plugin.needs)

    def attach(self, profile: Profile, services: Services, tasks: Tasks) -> None:
        """Attach the profile that the plugin is in from now on, and the services and tasks of its generation. The first
        time, begin what the constructor asked for; dry runs work from now on."""
        self._call = directly
        self._profile, self._services = profile, services
        self.tasks.move_to(tasks)
        callbacks, self._callbacks = self._callbacks, []
        coroutines, self._coroutines = self._coroutines, []
        for resource, callback in callbacks:
            self.watchers.append(services.on_change(self._plugin.name, resource, callback))
        for coro, name in coroutines:
            self.tasks.spawn(coro, self._plugin.name, name)

    def abandon(self) -> None:
        """Discard a handle that was never attached. A constructor that still runs can register nothing more."""
        self._call = _abandoned
        for coro, _ in self._coroutines:
            coro.close()
        self._coroutines.clear()

    @property
    def behaviour(self) -> Behaviour:
        return self._services.cluster.behaviour

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
        return self._call(self._services.nodes)

    def node(self, name: str) -> NodeView | None:
        columns = self.nodes.columns
        row = columns.row_of(name)
        return columns.view(row) if row >= 0 else None

    def lister(self, resource: Resource) -> Lister:
        self._must_read(resource)
        return self._services.lister(resource)

    def assume_cache(self, resource: Resource) -> AssumeCache:
        self._must_read(resource)
        return self._call(lambda: self._services.cluster.assume_cache(resource))

    def _must_read(self, resource: Resource) -> None:
        if resource not in self._reads:
            raise undeclared(self._plugin.name, Access(resource))

    def pod_index(self, name: str, extract: PodKeys) -> PodIndex:
        return self._index(lambda: self._services.indexes.pod_index(name, extract))

    def node_index(self, name: str, extract: NodeKeys) -> NodeIndex:
        return self._index(lambda: self._services.indexes.node_index(name, extract))

    def object_index(self, name: str, resource: Resource, extract: ObjectKeys) -> ObjectIndex:
        self._must_read(resource)
        return self._index(lambda: self._services.object_indexes.object_index(name, resource, extract))

    def _index(self, make: Callable[[], T]) -> T:
        index = self._call(make)
        if not any(index is known for known in self.indexes):
            self.indexes.append(index)
        return index

    def topology(self, key: str) -> Topology:
        return self._call(lambda: self._services.cluster.topologies.topology(key))

    @property
    def pod_counters(self) -> PodCounters:
        return self._call(self._services.cluster.counting.pod_counters)

    @property
    def affinity_terms(self) -> AffinityTerms:
        return self._call(self._services.cluster.counting.affinity_terms)

    def waiting_pods(self) -> Iterable[WaitingPod]:
        return self._services.waiting

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        return self._services.waiting.get(uid)

    def stop_binding(self, uid: str, reason: str) -> bool:
        return self._call(lambda: self._services.stop_binding(uid, reason))

    def activate(self, pods: Iterable[Pod]) -> None:
        self._call(lambda: self._services.activate(pods, self._plugin.name))

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
        if self._profile is None:
            self._callbacks.append((resource, callback))
        else:
            self.watchers.append(self._services.on_change(self._plugin.name, resource, callback))

    def resort(self, uids: Iterable[str]) -> None:
        self._call(lambda: self._services.resort(uids))

    def spawn(self, coro: Coroutine[Any, Any, Any], name: str = "") -> None:
        if self._profile is None:
            self._coroutines.append((coro, name))
        else:
            self.tasks.spawn(coro, self._plugin.name, name)

    def shared(self, key: Hashable, factory: Callable[[], T]) -> T:
        shared = self._services.shared
        if key not in shared:
            made = factory()  # not on the loop, since it may take long
            self._call(lambda: shared.setdefault(key, made))
        found: T = shared[key]
        return found

    def dry_run(self) -> Session:
        if self._profile is None:
            raise RuntimeError(f"plugin {self._plugin.name!r}: dry_run() cannot be used in the constructor")
        return Session(self._profile)

    def preemption(self, policy: PreemptionPolicy) -> PreemptionEvaluator:
        return PreemptionEvaluator(self._plugin.name, self, policy, lambda: self.dry_run().remove_victims)
