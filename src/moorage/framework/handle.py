"""Handle: what a plugin may touch of the scheduler it runs in."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from moorage.api.pod import Pod
from moorage.api.resources import Resource
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
"""`callback(old, new)`: `old` is None for an object that appeared, `new` is None for one that went."""


class Lister(Protocol):
    """Read access to the informer's store of one kind. Objects are shared: never change them."""

    @property
    def known(self) -> bool:
        """False while the API server does not serve the kind, which then has no objects: its
        CustomResourceDefinition is not installed. A definition that comes later is noticed within two
        seconds, and brings back all refused pods, as one that goes does."""
        ...

    def get(self, name: str, namespace: str = "") -> Any | None:
        """One object; None where there is none."""
        ...

    def list(self, namespace: str = "") -> Iterator[Any]:
        """All objects, or those of one namespace, in the order in which they first appeared."""
        ...

    def __len__(self) -> int: ...


class AssumeCache(Protocol):
    """A store of one kind in which a plugin may run ahead of the API server.

    `assume` shows a newer object at once, until the informer delivers a version that is at least as new, or
    `restore` takes it back.
    """

    def get(self, key: str) -> Any | None: ...

    def list(self) -> Iterator[Any]: ...

    def assume(self, obj: Any) -> None: ...

    def restore(self, key: str) -> None: ...


class WaitingPod(Protocol):
    """A pod that Permit plugins hold back. The first decision wins; later ones change nothing."""

    @property
    def pod(self) -> Pod: ...

    @property
    def node_name(self) -> str: ...

    def pending_plugins(self) -> Collection[str]:
        """Plugins that have not allowed it yet."""
        ...

    def allow(self, plugin: str) -> None:
        """`plugin` agrees; the pod proceeds when no plugin is left."""
        ...

    def reject(self, plugin: str, message: str) -> None:
        """Refuse the pod as unschedulable."""
        ...

    def preempt(self, plugin: str, message: str) -> bool:
        """Stop the pod for a preemptor: it returns by error backoff. False when it was decided before."""
        ...


class Nominator(Protocol):
    """Pods that are to run on a node once their victims are gone."""

    def nodes(self) -> Collection[str]:
        """Names of the nodes that a pod is nominated to."""
        ...

    def nominated_on(self, node_name: str) -> Sequence[Pod]: ...

    def nominate(self, pod: Pod, node_name: str) -> None:
        """From now on filters count the pod on this node, for pods of equal or lower priority."""
        ...

    def forget(self, uid: str) -> None:
        """Take the nomination back."""
        ...


class Trial(Protocol):
    """One pod in a dry run. Changes are seen by this trial and its forks only."""

    @property
    def state(self) -> CycleState: ...

    @property
    def status(self) -> Status:
        """PreFilter's answer for the pod."""
        ...

    def add_pod(self, node_name: str, pod: Pod) -> None: ...

    def remove_pod(self, node_name: str, pod: Pod) -> None: ...

    def filter(self, node_name: str) -> Status:
        """All Filter plugins on one node, nominated pods of equal or higher priority included."""
        ...

    def filter_all(self) -> NodeStatuses:
        """All Filter plugins on all nodes."""
        ...

    def node(self, node_name: str) -> NodeView:
        """The node as it is in this trial."""
        ...

    def fork(self) -> Trial:
        """A trial that starts from here and goes its own way."""
        ...


class DryRun(Protocol):
    """A session in which pods come and go; nothing that happens here is seen outside or written anywhere.

    Pods added or removed on the session are seen by every trial that is started later.
    """

    def add_pod(self, node_name: str, pod: Pod) -> None: ...

    def remove_pod(self, node_name: str, pod: Pod) -> None: ...

    def trial(self, pod: Pod, state: CycleState | None = None) -> Trial:
        """Start judging `pod`. With the `state` of a cycle under way its PreFilter results are used (on a
        clone); without it PreFilter runs anew."""
        ...

    def candidates(
        self, pod: Pod, state: CycleState, nodes: Nodes, wanted: int, victims_on: VictimsOn, budgets: Budgets
    ) -> Candidates:
        """Try the nodes in order, each without the pods of `victims_on`, until there are enough candidates
        for preemption. Changes of the session count. `state` holds PreFilter's results for the cluster as it
        is. The default victims, `nodes.columns.lower_pods_on`, are the fastest."""
        ...


class Handle(Protocol):
    """Given to each plugin at construction, one per profile.

    `needs` decides which kinds `lister`, `assume_cache` and `client` serve; an undeclared one raises
    `PermissionError` with the line to add.
    """

    @property
    def profile_name(self) -> str:
        """The scheduler name that pods of this profile have."""
        ...

    @property
    def clock(self) -> Clock:
        """Time, which tests make pass; never `time` or `asyncio.sleep`."""
        ...

    @property
    def random(self) -> random.Random:
        """Randomness that a seed repeats."""
        ...

    @property
    def client(self) -> ApiClient:
        """Requests to the API server. A write while another replica leads raises `NotSent`."""
        ...

    @property
    def recorder(self) -> EventRecorder:
        """Events for users, as `kubectl describe` shows them."""
        ...

    @property
    def nominator(self) -> Nominator:
        """The pods that wait for victims to end."""
        ...

    @property
    def extenders(self) -> Sequence[Extender]: ...

    @property
    def nodes(self) -> Nodes:
        """All nodes of the snapshot. During a cycle it does not change."""
        ...

    def node(self, name: str) -> NodeView | None:
        """One node of the snapshot; None where there is none of that name."""
        ...

    def lister(self, resource: Resource) -> Lister:
        """The objects of a kind that `needs` declares, as the informer last saw them."""
        ...

    def assume_cache(self, resource: Resource) -> AssumeCache:
        """One per process and kind; survives a reload, updated before any wake-up."""
        ...

    def pod_index(self, name: str, extract: PodKeys) -> PodIndex:
        """The index of that name over all pods on nodes; made on the first call, one per process."""
        ...

    def node_index(self, name: str, extract: NodeKeys) -> NodeIndex:
        """The index of that name over the nodes."""
        ...

    def object_index(self, name: str, resource: Resource, extract: ObjectKeys) -> ObjectIndex:
        """The index of that name over the objects of a kind that the plugin declared in `needs`."""
        ...

    def topology(self, key: str) -> Topology:
        """The domains of a label key; made once and kept while no node changes."""
        ...

    @property
    def pod_counters(self) -> PodCounters:
        """Pods that match a selector, counted per row. Ask for it in the constructor: the first caller makes
        the index behind it, from all pods that are there."""
        ...

    @property
    def affinity_terms(self) -> AffinityTerms:
        """The affinity terms of running pods; ask for it in the constructor too."""
        ...

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """All pods that wait in Permit, of every profile; one that was decided about waits no longer."""
        ...

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """One of them; None when it does not wait."""
        ...

    def stop_binding(self, uid: str, reason: str) -> bool:
        """Stop a pod that is in PreBind: it gives its node back and returns by error backoff with `reason`.
        False when it is not there (or no longer)."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pending pods to the active queue now, whoever refused them and without backoff. For pods that
        the plugin knows by name and can vouch for; where data has changed that may help, use `wake`."""
        ...

    def wake(self, resource: EventResource, old: Any = None, new: Any = None) -> None:
        """Data from outside the cluster has changed. As an event of the cluster does, this brings back the
        pods that the plugin refused, where its hint for an UPDATE of `resource` says Queue, after their
        backoff. The hint gets `old` and `new` as they are. `resource` is one of the plugin's own, and
        registered; another one raises a ValueError. Nothing happens where the profile asks the plugin at no
        point at which it could have refused a pod."""
        ...

    def on_change(self, resource: Resource, callback: OnChange) -> None:
        """Call `callback` with every change of a kind that `needs` declares, the objects of the first listing
        included: between two cycles, when all that has arrived is in the stores, and before any pod is woken
        by it. Ask for it in the constructor. What it raises is logged with the plugin's name."""
        ...

    def resort(self, uids: Iterable[str]) -> None:
        """The QueueSort key of these pods has changed."""
        ...

    def spawn(self, coro: Coroutine[Any, Any, Any], name: str = "") -> None:
        """Run a coroutine that the runtime tracks: cancelled on stop, and a minute after a reload that
        replaces the plugin; its failure is logged with the plugin's name. What runs for ever is for `run`."""
        ...

    def shared(self, key: Hashable, factory: Callable[[], T]) -> T:
        """What must exist once per process, whatever the number of profiles; survives a reload."""
        ...

    def dry_run(self) -> DryRun:
        """A session for "what if"; not in the constructor."""
        ...

    def preemption(self, policy: PreemptionPolicy) -> Preemption:
        """Build preemption with the decisions of `policy`; the plugin must declare `preemption.NEEDS`."""
        ...
