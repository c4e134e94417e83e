"""Handle: everything that a plugin can reach of the scheduler. Follows Handle in
pkg/scheduler/framework/interface.go."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from moorage.api.pod import Pod
from moorage.api.resources import Resource
from moorage.api.versions import Behaviour
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import EventResource
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
from moorage.framework.ports import ApiClient, Clock, EventRecorder, Extender
from moorage.framework.preemption import Budgets, Candidates, Preemption, PreemptionPolicy, VictimsOn
from moorage.framework.status import Status
from moorage.framework.statuses import NodeStatuses

T = TypeVar("T")

OnChange = Callable[[Any | None, Any | None], object]
"""`callback(old, new)`: `old` is None for an added object, `new` is None for a deleted one."""


class Lister(Protocol):
    """Read access to the informer's store of one kind. Objects are shared; never change them."""

    @property
    def known(self) -> bool:
        """False while the API server does not serve the kind because its definition is not installed. When a
        definition is installed or removed, all unschedulable pods are tried again within two seconds."""

    def get(self, name: str, namespace: str = "") -> Any | None:
        """Return one object, or None."""

    def list(self, namespace: str = "") -> Iterator[Any]:
        """Iterate over all objects, or those of one namespace, in the order of their first appearance."""

    def __len__(self) -> int: ...


class AssumeCache(Protocol):
    """A store of one kind that can run ahead of the API server: `assume` shows a newer object at once,
    until the informer delivers a version that is at least as new, or `restore` takes it back."""

    def get(self, key: str) -> Any | None: ...

    def list(self) -> Iterator[Any]: ...

    def assume(self, obj: Any) -> None: ...

    def restore(self, key: str) -> None: ...


class WaitingPod(Protocol):
    """A pod that waits in Permit. The first decision wins; later ones change nothing."""

    @property
    def pod(self) -> Pod: ...

    @property
    def node_name(self) -> str: ...

    def pending_plugins(self) -> Collection[str]:
        """Return the plugins that have not allowed it yet."""

    def allow(self, plugin: str) -> None:
        """Allow the pod for `plugin`. It proceeds when all plugins have allowed it."""

    def reject(self, plugin: str, message: str) -> None:
        """Reject the pod as unschedulable."""

    def preempt(self, plugin: str, message: str) -> bool:
        """Stop the pod for a preemptor; it retries with error backoff. Return False if it was decided before."""


class Nominator(Protocol):
    """The pods that are nominated to a node, where they will run once their victims are gone."""

    def nodes(self) -> Collection[str]:
        """Return the names of the nodes that a pod is nominated to."""

    def nominated_on(self, node_name: str) -> Sequence[Pod]: ...

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Make filters count the pod on this node, for pods of equal or lower priority."""

    def forget(self, uid: str) -> None:
        """Remove the nomination of a pod."""


class Trial(Protocol):
    """One pod in a dry run. Only this trial and its forks see its changes."""

    @property
    def state(self) -> CycleState: ...

    @property
    def status(self) -> Status:
        """The answer of PreFilter for the pod."""

    def add_pod(self, node_name: str, pod: Pod) -> None: ...

    def remove_pod(self, node_name: str, pod: Pod) -> None: ...

    def filter(self, node_name: str) -> Status:
        """Run all Filter plugins on one node, with the nominated pods of equal or higher priority."""

    def filter_all(self) -> NodeStatuses:
        """Run all Filter plugins on all nodes."""

    def node(self, node_name: str) -> NodeView:
        """Return the node as it is in this trial."""

    def fork(self) -> Trial:
        """Return an independent trial that starts from here."""


class DryRun(Protocol):
    """A session in which pods are added and removed. Nothing is seen outside or written anywhere; trials
    see the changes that the session had when they started."""

    def add_pod(self, node_name: str, pod: Pod) -> None: ...

    def remove_pod(self, node_name: str, pod: Pod) -> None: ...

    def trial(self, pod: Pod, state: CycleState | None = None) -> Trial:
        """Start to judge `pod`. With the `state` of a running cycle, a clone of its PreFilter results is
        used; without it PreFilter runs again."""

    def candidates(
        self, pod: Pod, state: CycleState, nodes: Nodes, wanted: int, victims_on: VictimsOn, budgets: Budgets
    ) -> Candidates:
        """Try the nodes in order, each without the pods of `victims_on`, until there are enough candidates
        for preemption. Changes of the session count. `state` holds PreFilter's results for the cluster as it
        is. The default victims, `nodes.columns.lower_pods_on`, are the fastest."""


class Handle(Protocol):
    """What a plugin gets at construction, one for each plugin and profile. It stays valid as long as the plugin lives,
    also across reloads. `lister`, `assume_cache` and `client` serve only the kinds in `needs`; an undeclared one raises
    `PermissionError` with the line to add. On a reload, the constructor runs in another thread: its calls of the
    handle are done on the scheduler's loop, and callbacks and tasks begin when the new configuration takes effect."""

    @property
    def profile_name(self) -> str:
        """The scheduler name of the profile's pods."""

    @property
    def behaviour(self) -> Behaviour:
        """What kube-scheduler of the emulated version does where versions differ."""

    @property
    def clock(self) -> Clock:
        """The clock, which tests control. Never use `time` or `asyncio.sleep`."""

    @property
    def random(self) -> random.Random:
        """Random numbers that a seed reproduces."""

    @property
    def client(self) -> ApiClient:
        """The client of the API server. A write while another replica leads raises `NotSent`."""

    @property
    def recorder(self) -> EventRecorder:
        """Sends events to users, as `kubectl describe` shows them."""

    @property
    def nominator(self) -> Nominator:
        """The pods that wait for their victims to terminate."""

    @property
    def extenders(self) -> Sequence[Extender]: ...

    @property
    def nodes(self) -> Nodes:
        """All nodes of the snapshot, which does not change during a cycle."""

    def node(self, name: str) -> NodeView | None:
        """Return one node of the snapshot, or None."""

    def lister(self, resource: Resource) -> Lister:
        """Return the objects of a kind as the informer last saw them."""

    def assume_cache(self, resource: Resource) -> AssumeCache:
        """Return the cache of a kind, one per process. It survives a reload and is updated before any wake-up."""

    def pod_index(self, name: str, extract: PodKeys) -> PodIndex:
        """Return the index of that name over all pods on nodes. It is built at the first call, one per process."""

    def node_index(self, name: str, extract: NodeKeys) -> NodeIndex:
        """Return the index of that name over the nodes."""

    def object_index(self, name: str, resource: Resource, extract: ObjectKeys) -> ObjectIndex:
        """Return the index of that name over the objects of a kind in `needs`."""

    def topology(self, key: str) -> Topology:
        """Return the domains of a label key, kept until a node changes."""

    @property
    def pod_counters(self) -> PodCounters:
        """Counts pods that match a selector, per row. Get it in the constructor: the first caller builds
        the index behind it from all pods."""

    @property
    def affinity_terms(self) -> AffinityTerms:
        """The affinity terms of running pods; get it in the constructor too."""

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """Return the pods of all profiles that are waiting in Permit, without those already decided."""

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return a pod that is waiting in Permit, or None."""

    def stop_binding(self, uid: str, reason: str) -> bool:
        """Stop a pod in PreBind: it gives its node back and retries with error backoff. Return False if it
        is not in PreBind."""

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pending pods to the active queue now, without backoff, whichever plugin refused them. Use
        it for pods that the plugin knows can proceed; use `wake` if data has changed that may help."""

    def wake(self, resource: EventResource, old: Any = None, new: Any = None) -> None:
        """Report that data from outside the cluster has changed. Like an event of the cluster, this brings
        back the pods that the plugin refused, after their backoff, if its hint for an UPDATE of `resource`
        answers Queue. The hint gets `old` and `new`. A `resource` that the plugin has not registered
        raises a ValueError. Nothing happens if the plugin is enabled at no point that can refuse a pod."""

    def on_change(self, resource: Resource, callback: OnChange) -> None:
        """Call `callback` with every change of a kind in `needs`, including the objects of the first
        listing: between two cycles, when all changes are in the stores, and before any pod is woken.
        Register it in the constructor. An exception is logged with the plugin's name."""

    def resort(self, uids: Iterable[str]) -> None:
        """Sort these pods again, because their QueueSort key has changed."""

    def spawn(self, coro: Coroutine[Any, Any, Any], name: str = "") -> None:
        """Run a coroutine in the background. It is cancelled on stop, and a minute after a reload that
        replaces the plugin; its failure is logged. Use `run` for work that never ends."""

    def shared(self, key: Hashable, factory: Callable[[], T]) -> T:
        """Return a value that exists once per process, for all profiles; it survives a reload."""

    def dry_run(self) -> DryRun:
        """Start a dry run; not in the constructor."""

    def preemption(self, policy: PreemptionPolicy) -> Preemption:
        """Build preemption with the decisions of `policy`; the plugin must declare `preemption.NEEDS`."""
