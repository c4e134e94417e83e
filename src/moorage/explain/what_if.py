"""Try changes on a copy of a cluster: new pods, added or drained nodes, another configuration.

The real scheduler runs on the copy in virtual time. The objects that were read are not changed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api import decoding
from moorage.api.errors import MoorageError
from moorage.api.node import Node
from moorage.api.pod import Pod, controller_of
from moorage.api.resources import NODES, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, AnyObject, by_kind
from moorage.api.selectors import compile_label_selector
from moorage.app.configuration import Configuration
from moorage.app.offline import AnyEngine, NoEvents
from moorage.explain.comparing import Difference, EngineDecider, Placement, compare
from moorage.explain.explanation import Explanation, explain
from moorage.explain.judging import Judge, find_pod, unassigned
from moorage.explain.other_remedies import node_like
from moorage.framework.ports import Extender, Served
from moorage.sim.cluster import SimulatedCluster
from moorage.sim.loop import VirtualClock, VirtualLoop, finish
from moorage.sim.objects import typed
from moorage.sim.simulation import simulated_engine
from moorage.snapshots.cluster import ClusterObjects

T = TypeVar("T")

MAX_SECONDS = 600.0
"""Virtual seconds after which pods that are still being tried count as pending."""
POLL_SECONDS = 0.25
"""Virtual seconds between two checks whether the scheduler is done."""
MAX_REPLICAS = 100_000
WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")


@dataclass(slots=True)
class WhatIfOutcome:
    """What the changes lead to."""

    placed: dict[str, str] = field(default_factory=dict)
    """Pod → node, of new pods and of pods that were pending."""
    pending: dict[str, str] = field(default_factory=dict)
    """Pod → FailedScheduling message, of new pods and of pods that lost their node."""
    preempted: tuple[str, ...] = ()
    moved: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Pod → the nodes before and after, of pods that a drain moves."""
    lost: tuple[str, ...] = ()
    """Pods of a drained node that no controller recreates."""
    blocked: dict[str, str] = field(default_factory=dict)
    """Pod → why it stays on a drained node."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "placed": self.placed,
            "pending": self.pending,
            "preempted": list(self.preempted),
            "moved": {pod: {"from": old, "to": new} for pod, (old, new) in self.moved.items()},
            "lost": list(self.lost),
            "blocked": self.blocked,
        }


class ClusterCopy:
    """A copy of a cluster on which the scheduler runs. A context manager: change it, then `settle`."""

    def __init__(
        self, cluster: ClusterObjects, configured: Configuration, seed: int = 0, extenders: Sequence[Extender] = ()
    ) -> None:
        self.namespace = cluster.namespace
        self._loop = VirtualLoop()
        asyncio.set_event_loop(self._loop)
        self._world = SimulatedCluster(VirtualClock(self._loop))
        own = configured.looking_at_all_nodes()
        self.engine = simulated_engine(own, self._world, seed, NoEvents(), extenders=extenders)
        for resource in (*cluster.unserved, *cluster.unread):
            self.engine.inbox.post(Served(resource, known=False))
        for objects in cluster.objects.values():
            for obj in objects:
                self._world.add(obj)
        self.engine.drain()
        self._scheduling: asyncio.Task[None] | None = None
        self._before = {key: pod.spec.node_name for key, pod in self._world.pods.items()}
        self._came: dict[str, None] = {}
        self._drained: dict[str, str] = {}
        """Pod → the node that it was drained from."""
        self._lost: list[str] = []
        self._blocked: dict[str, str] = {}
        self._removed: set[str] = set()
        self._sets: set[str] = set()
        """UIDs of the ReplicaSets that were added for Deployments."""

    def __enter__(self) -> ClusterCopy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        finish(self._loop)
        asyncio.set_event_loop(None)
        self._loop.close()

    # Changes

    def add(self, manifests: Iterable[Mapping[str, Any]], replicas: int | None = None) -> int:
        """Add pods, workloads with their pods, and other objects; return the number of new pods.

        `replicas` is the number of pods of each workload, or of copies of each pod."""
        before = len(self._came)
        for manifest in manifests:
            for obj in self._expanded(manifest, replicas):
                self._world.add(obj)
                if isinstance(obj, Pod):
                    self._came[obj.key] = None
        return len(self._came) - before

    def _expanded(self, manifest: Mapping[str, Any], replicas: int | None) -> Iterator[AnyObject]:
        kind, meta = str(manifest.get("kind")), dict(manifest.get("metadata") or {})
        resource = by_kind(kind)
        if resource is None or resource.namespaced:
            meta.setdefault("namespace", self.namespace)
        meta["name"] = meta.get("name") or f"{meta.get('generateName', 'pod-')}0"
        if kind == "Pod":
            raw = {**manifest, "metadata": meta}
            if replicas is None:
                yield typed(raw)
            for _ in range(replicas or 0):
                yield typed({**raw, "metadata": {**meta, "name": self._fresh(meta, meta["name"])}})
        elif kind in WORKLOADS:
            yield from self._workload(manifest, meta, kind, replicas)
        elif kind == "DaemonSet":
            raise MoorageError(f"DaemonSet {meta['name']} cannot be tried: its pods name their nodes; try a Pod")
        else:
            yield typed({**manifest, "metadata": meta})

    def _workload(
        self, manifest: Mapping[str, Any], meta: Mapping[str, Any], kind: str, replicas: int | None
    ) -> Iterator[AnyObject]:
        spec = manifest.get("spec") or {}
        template = spec.get("template")
        if not isinstance(template, Mapping):
            raise MoorageError(f"{kind} {meta['name']}: spec.template is missing; add the pod template")
        number = spec.get("parallelism" if kind == "Job" else "replicas", 1) if replicas is None else replicas
        uid = f"what-if/{kind}/{meta['namespace']}/{meta['name']}"
        owner_kind = "ReplicaSet" if kind == "Deployment" else kind
        if owner_kind == "ReplicaSet" and uid not in self._sets:
            self._sets.add(uid)
            identity = {"name": meta["name"], "namespace": meta["namespace"], "uid": uid}
            raw = {"metadata": identity, "spec": {"replicas": number, "selector": spec.get("selector")}}
            yield decoding.convert(REPLICA_SETS, raw)
        owner = {"kind": owner_kind, "apiVersion": "apps/v1", "name": meta["name"], "uid": uid}
        shared = {
            **(template.get("metadata") or {}),
            "namespace": meta["namespace"],
            "ownerReferences": [{**owner, "controller": True}],
        }
        for _ in range(int(number)):
            name = self._fresh(meta, f"{meta['name']}-")
            yield typed(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {**shared, "name": name},
                    "spec": template.get("spec") or {},
                }
            )

    def _fresh(self, meta: Mapping[str, Any], stem: str) -> str:
        number = len(self._came)
        while f"{meta['namespace']}/{stem}{number}" in self._world.pods:
            number += 1
        return f"{stem}{number}"

    def cordon(self, name: str) -> None:
        self._node(name)
        self._world.update(NODES, name, _cordoned)

    def drain(self, name: str) -> None:
        """Cordon a node and evict its pods, except those of DaemonSets. Pods with a controller are recreated,
        the others are lost. As with kubectl drain, pods stay whose disruption budget allows no eviction."""
        self.cordon(name)
        for pod in self._world.pods_on(name):
            owner = controller_of(pod)
            if owner is not None and owner.kind == "DaemonSet":
                continue
            if why := self._objection(pod):
                self._blocked[pod.key] = why
                continue
            self._removed.add(pod.key)
            self._world.remove_pod(pod, "deleted")
            if owner is None:
                self._lost.append(pod.key)
                continue
            again = unassigned(pod)
            uid = f"{pod.uid}/again"
            self._world.add(replace(again, metadata=replace(again.metadata, uid=uid)))
            self._drained[pod.key] = name

    def _objection(self, pod: Pod) -> str:
        """Return why the API server would refuse to evict a pod, or an empty text.

        A budget that allows one eviction lets all pods go, one after the other, because each is replaced in between.
        Follows pkg/registry/core/pod/storage/eviction.go."""
        budgets = [
            budget
            for budget in self.engine.stores.lister(POD_DISRUPTION_BUDGETS).list()
            if budget.namespace == pod.namespace and compile_label_selector(budget.spec.selector).matches(pod.labels)
        ]
        if len(budgets) > 1:
            names = " and ".join(budget.name for budget in budgets)
            return f"the disruption budgets {names} both select it, which eviction does not support"
        if budgets and budgets[0].status.disruptions_allowed < 1:
            status = budgets[0].status
            healthy = f"{status.current_healthy} pods are healthy and {status.desired_healthy} must be"
            return f"the disruption budget {budgets[0].name} allows no eviction: {healthy}"
        return ""

    def remove(self, name: str, namespace: str = "") -> None:
        """Delete a pod."""
        key = f"{namespace or self.namespace}/{name}"
        if key not in self._world.pods:
            raise MoorageError(f"pod {name!r} does not exist in namespace {namespace or self.namespace!r}")
        self._removed.add(key)
        self._world.remove(PODS, key)

    def add_nodes(self, number: int, like: str) -> None:
        """Add empty copies of a node, not cordoned."""
        node = self._node(like)
        for index in range(number):
            self._world.add(node_like(node, f"{like}-copy-{index}"))

    def _node(self, name: str) -> Node:
        node = self._world.nodes.get(name)
        if node is None:
            raise MoorageError(f"node {name!r} does not exist; `kubectl get nodes` lists the nodes")
        return node

    # The answer

    def settle(self) -> WhatIfOutcome:
        """Run the scheduler until it is done, and return the outcome."""
        self._loop.run_until_complete(self._run())
        pods, found = self._world.pods, WhatIfOutcome()
        for key in (*self._before, *self._came):
            pod, node = pods.get(key), self._before.get(key, "")
            if pod is None or (pod.spec.node_name == node and key not in self._came and node):
                continue
            if pod.spec.node_name:
                if key in self._drained:
                    found.moved[key] = self._drained[key], pod.spec.node_name
                elif not node:
                    found.placed[key] = pod.spec.node_name
            elif key in self._came or key in self._drained:
                record = self.engine.records.last(key)
                found.pending[key] = record.message if record is not None else "The scheduler has not tried this pod."
        gone = [key for key, node in self._before.items() if node and key not in pods]
        found.preempted = tuple(key for key in gone if key not in self._removed)
        found.lost = tuple(self._lost)
        found.blocked = dict(self._blocked)
        return found

    def ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Run a question about the copy in its present state."""
        return self._loop.run_until_complete(question)

    async def _run(self) -> None:
        clock = self._world.clock
        if self._scheduling is None:
            self._scheduling = asyncio.ensure_future(self.engine.run())
        until = clock.now() + MAX_SECONDS
        await clock.sleep(POLL_SECONDS)
        while self._is_busy() and clock.now() < until:
            await clock.sleep(POLL_SECONDS)
        if self._scheduling.done():
            self._scheduling.result()

    def _is_busy(self) -> bool:
        waiting = self.engine.queue.pending.counts()
        return bool(waiting["active"] + waiting["backoff"] + len(self.engine.bindings))

    def fill(self, manifests: Sequence[Mapping[str, Any]], most: int = MAX_REPLICAS) -> WhatIfOutcome:
        """Add replicas until one stays pending; the outcome has the first pending one only."""
        step = 16
        while True:
            self.add(manifests, replicas=min(step, most - len(self._came)))
            outcome = self.settle()
            if outcome.pending or len(self._came) >= most:
                outcome.pending = dict(list(outcome.pending.items())[:1])
                outcome.placed = {key: node for key, node in outcome.placed.items() if key in self._came}
                return outcome
            step *= 2


def ended_by(copy: ClusterCopy, outcome: WhatIfOutcome) -> Explanation | None:
    """Explain the first pending pod, on the copy in its final state."""
    for key in outcome.pending:
        namespace, _, name = key.partition("/")
        pod = find_pod(copy.engine, name, namespace)
        return copy.ask(explain(Judge.of(copy.engine, pod), pod, remedies=0))
    return None


def _cordoned(node: Node) -> Node:
    return replace(node, spec=replace(node.spec, unschedulable=True))


async def placed_elsewhere(engine: AnyEngine) -> list[dict[str, Any]]:
    """Return the running pods that would go to another node, or to none, if they were scheduled again now.

    Each pod is tried alone, with itself removed. Nodes with equal scores count as one."""
    running = [pod for pod in engine.stores.lister(PODS).list() if pod.is_assigned]
    found = compare(Placement(), EngineDecider(engine, nodes_only=True), running)
    return [_moved(difference) async for difference in found]


def _moved(found: Difference) -> dict[str, Any]:
    to, verdicts = found.after.node, found.after.verdicts
    why = [] if verdicts is None else verdicts.why_not(found.runs_on, to)
    return {"pod": found.pod, "from": found.runs_on, "to": to, "decidedBy": why}
