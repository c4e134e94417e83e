"""A random world: nodes, pods and faults come and go; afterwards everything must have come right."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import Any

from moorage.api.errors import ApiError
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.api.taints import find_untolerated
from moorage.framework import ActionType, ClusterEvent, FilterPlugin, Registration, ReservePlugin, Status
from moorage.framework.events import ASSIGNED_POD, NODE
from moorage.framework.ports import PatchType
from moorage.store import faults as effects
from moorage.store.faults import Fault
from moorage.store.local import LocalClient
from moorage.store.objects import Stored
from moorage.store.refusals import failure
from moorage.testing import Cluster, make_node, make_pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: room}, {name: chosen}, {name: ledger}]}}
"""


class FreePods(FilterPlugin):
    """As many pods as the node allows: what makes pods compete."""

    name = "room"

    def filter(self, state, pod, node):
        return None if node.free("pods") > 0 else Status.unschedulable("no room")

    def events_to_register(self):
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        return [Registration(node), Registration(ClusterEvent(ASSIGNED_POD, ActionType.DELETE))]


class Chosen(FilterPlugin):
    """The node's labels are those that the pod selects."""

    name = "chosen"

    def filter(self, state, pod, node):
        return None if selected(pod, node.labels) else Status.unresolvable("not selected")

    def events_to_register(self):
        return [Registration(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL))]


class Ledger(ReservePlugin):
    """Reservations per UID, given back or not."""

    name = "ledger"

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.open: Counter[str] = handle.shared("ledger", Counter)

    def reserve(self, state, pod, node_name):
        self.open[pod.uid] += 1

    def unreserve(self, state, pod, node_name):
        self.open[pod.uid] -= 1


def selected(pod: Pod, labels: Any) -> bool:
    return all(labels.get(key) == value for key, value in pod.spec.node_selector.items())


class World:
    """One run. `live` lets things happen, `heal` ends all faults, `check` says what is wrong."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.cluster = Cluster(
            config=CONFIG, plugins=[FreePods, Chosen, Ledger], seed=seed, flush_after=None, start=False
        )
        self.driver = LocalClient(self.cluster.store, self.cluster.clock)
        self.problems: list[str] = []
        self.binds: Counter[str] = Counter()
        self.names = 0
        self._watch_binds()

    def _watch_binds(self) -> None:
        """Look at every bind that the API server takes, at that very moment."""
        store, really = self.cluster.store, self.cluster.store.bind

        def bind(name: str, namespace: str, node: str, *, uid: str = "", resource_version: str = "") -> Stored:
            answer = really(name, namespace, node, uid=uid, resource_version=resource_version)
            self.binds[uid] += 1
            there = [pod for pod in self.cluster.pods() if pod.spec.node_name == node]
            known = [n for n in self.nodes() if n.name == node]
            if known and len(there) > int(known[0].status.allocatable["pods"]):
                self.problems.append(f"I1: {node} has {len(there)} pods")
            return answer

        store.bind = bind  # type: ignore[method-assign]

    # What happens

    def live(self, steps: int) -> None:
        for _ in range(self.rng.randrange(3, 8)):
            self.add_node()
        self.cluster.start()
        actions = [
            (self.add_pod, 45), (self.delete_pod, 10), (self.touch_pod, 6), (self.open_gate, 4),
            (self.add_node, 4), (self.delete_node, 3), (self.label_node, 6), (self.taint_node, 5),
            (self.cordon_node, 3), (self.fault_bind, 8), (self.fault_status, 4), (self.cut_watches, 4),
            (self.fault_watch, 4), (self.recreate_pod, 3), (self.pass_time, 25), (self.end_terminating, 6),
        ]  # fmt: skip
        chosen = self.rng.choices([a for a, _ in actions], [w for _, w in actions], k=steps)
        for action in chosen:
            action()
            if self.rng.random() < 0.5:
                self.cluster.settle(self.rng.choice((0, 0, 0.001, 0.05)))
        self.pass_time()
        # The last events before the end: whoever misses them is not woken by another one.
        last = self.rng.choice((self.delete_bound_pod, self.delete_bound_pod, self.label_node, self.taint_node))
        for _ in range(self.rng.randrange(6)):
            last()

    def nodes(self) -> list[Node]:
        return [stored.typed for stored in self.cluster.store.list(NODES).items]  # type: ignore[misc]

    def some_node(self) -> Node | None:
        return self.rng.choice(self.nodes() or [None])

    def some_pod(self) -> Pod | None:
        return self.rng.choice(self.cluster.pods() or [None])

    def do(self, coro: Any) -> None:
        with suppress(ApiError):  # the world does not insist
            self.cluster.run(coro)

    def patch(self, resource: Any, obj: Any, patch: dict[str, Any]) -> None:
        kind = PatchType.MERGE
        self.do(self.driver.patch(resource, obj.name, patch, namespace=obj.namespace, patch_type=kind))

    def add_node(self) -> None:
        self.names += 1
        name = f"n{self.rng.randrange(20)}"
        labels = {"color": self.rng.choice(("red", "blue"))}
        # A name always has the same room, so that a node that comes back is judged by one number.
        node = make_node(name, pods=1 + int(name[1:]) % 3, labels=labels, uid=f"node-{self.names}")
        self.do(self.driver.create(NODES, node))

    def delete_node(self) -> None:
        if node := self.some_node():
            self.do(self.driver.delete(NODES, node.name))

    def label_node(self) -> None:
        if node := self.some_node():
            color = self.rng.choice(("red", "blue", None))
            self.patch(NODES, node, {"metadata": {"labels": {"color": color}}})

    def taint_node(self) -> None:
        if node := self.some_node():
            taints = [] if node.taints else [{"key": "k", "value": "v", "effect": "NoSchedule"}]
            self.patch(NODES, node, {"spec": {"taints": taints}})

    def cordon_node(self) -> None:
        if node := self.some_node():
            self.patch(NODES, node, {"spec": {"unschedulable": not node.unschedulable}})

    def add_pod(self, name: str = "") -> None:
        self.names += 1
        selector = {"color": self.rng.choice(("red", "blue"))} if self.rng.random() < 0.4 else {}
        pod = make_pod(
            name or f"p{self.names}",
            uid=f"pod-{self.names}",
            priority=self.rng.choice((0, 0, 5)),
            node_selector=selector,
            gates=["wait"] if self.rng.random() < 0.1 else [],
            tolerations=["k=v:NoSchedule"] if self.rng.random() < 0.2 else [],
        )
        self.do(self.driver.create(PODS, pod))

    def delete_pod(self) -> None:
        if pod := self.some_pod():
            self.do(self.driver.delete(PODS, pod.name, namespace=pod.namespace, grace_period=0))

    def delete_bound_pod(self) -> None:
        bound = [pod for pod in self.cluster.pods() if pod.spec.node_name]
        if bound:
            pod = self.rng.choice(bound)
            self.do(self.driver.delete(PODS, pod.name, namespace=pod.namespace, grace_period=0))

    def recreate_pod(self) -> None:
        """Recreate a pod under its name with another UID, at once: the informer may see one update."""
        if pod := self.some_pod():
            self.do(self.driver.delete(PODS, pod.name, namespace=pod.namespace, grace_period=0))
            self.add_pod(pod.name)

    def touch_pod(self) -> None:
        if pod := self.some_pod():
            self.patch(PODS, pod, {"metadata": {"labels": {"touched": str(self.rng.random())}}})

    def open_gate(self) -> None:
        for pod in self.cluster.pods():
            if pod.spec.scheduling_gates:
                self.patch(PODS, pod, {"spec": {"schedulingGates": []}})
                return

    def fault_bind(self) -> None:
        effect = self.rng.choice(
            (
                effects.lost_answer(self.rng.random()),
                effects.lost_request(self.rng.random()),
                effects.not_sent(),
                effects.server_error(500),
                effects.too_many_requests(1),
                effects.delay(self.rng.random() * 3),
                effects.slow_answer(self.rng.random() * 3),
                effects.conflict(),
                effects.not_found(),
            )
        )
        self.fault(Fault(effect, verb="bind", times=self.rng.randrange(1, 4)))

    def fault_status(self) -> None:
        effect = self.rng.choice(
            (effects.server_error(503), effects.conflict(), effects.delay(2), effects.lost_answer(1))
        )
        verb = self.rng.choice(("patch", "get"))
        self.fault(Fault(effect, verb=verb, resource=PODS, times=self.rng.randrange(1, 4)))

    def fault_watch(self) -> None:
        resource = self.rng.choice((NODES, PODS))
        effect = self.rng.choice(
            (
                effects.gone(),
                effects.cut_watch(self.rng.randrange(4)),
                effects.delay_events(self.rng.random() * 2),
                effects.server_error(500),
                effects.not_sent(),
            )
        )
        self.fault(Fault(effect, verb=self.rng.choice(("watch", "watch", "list")), resource=resource))
        self.cluster.client.cut_watches(resource)

    def cut_watches(self) -> None:
        error = self.rng.choice((None, failure(410, "Expired", "too old resource version")))
        self.cluster.client.cut_watches(self.rng.choice((None, NODES, PODS)), error)

    def fault(self, fault: Fault) -> None:
        self.cluster.faults.add(fault)

    def pass_time(self) -> None:
        self.cluster.settle(self.rng.choice((0.01, 0.2, 1.5, 12)))

    # And what must be true in the end

    def heal(self) -> None:
        """No faults from now on; late watches are opened anew, and everything has the time it needs."""
        self.cluster.faults.clear()
        self.cluster.client.cut_watches()
        for _ in range(20):
            self.cluster.settle(20)
            self.end_terminating()
        self.cluster.settle(60)

    def end_terminating(self) -> None:
        """What kubelets do with the victims of preemption."""
        for pod in self.cluster.pods():
            if pod.is_terminating:
                self.do(self.driver.delete(PODS, pod.name, namespace=pod.namespace, grace_period=0))

    def check(self) -> list[str]:
        found = list(self.problems)
        engine, pods, nodes = self.cluster.scheduler.engine, self.cluster.pods(), self.nodes()
        found += [f"I2: {uid} bound {count} times" for uid, count in self.binds.items() if count > 1]
        engine.queue.pending.validate()
        waiting = {info.uid for info, _ in engine.queue.pending}
        pending = {pod.uid for pod in pods if not pod.spec.node_name}
        found += [f"I4: {uid} is in no place" for uid in sorted(pending - waiting)]
        found += [f"I4: {uid} is in the queue for nothing" for uid in sorted(waiting - pending)]
        found += (
            [f"I4: left in flight: {engine.queue.pending.inflight_events()}"]
            if engine.queue.pending.inflight_events()
            else []
        )
        engine.cache.validate()
        found += [f"I5: {difference}" for difference in engine.cache.compare(nodes, pods)]
        found += [f"I5: {cached.pod.key} is still assumed" for cached in engine.cache.assumed()]
        found += [f"I5: {uid} is expected for nothing" for uid in set(engine.cache.expected()) - pending]
        ledger = engine.services.shared["ledger"]
        for pod in pods:
            if ledger[pod.uid] != (1 if pod.spec.node_name else 0):
                found.append(f"I9: {pod.key} is reserved {ledger[pod.uid]} times, node {pod.spec.node_name!r}")
        found += [f"I9: {uid} is reserved {n} times" for uid, n in ledger.items() if n not in (0, 1)]
        return found + self.lost_wake_ups(nodes, pods)

    def lost_wake_ups(self, nodes: list[Node], pods: list[Pod]) -> list[str]:
        """L2: by plain rules, no pod that is still pending fits anywhere."""
        used = Counter(pod.spec.node_name for pod in pods)
        found = []
        for pod in pods:
            if pod.spec.node_name or pod.spec.scheduling_gates:
                continue
            fits = [node.name for node in nodes if self.fits(pod, node, used[node.name])]
            if fits:
                place = self.cluster.scheduler.where(pod)
                found.append(f"L2: {pod.key} fits on {fits} but is {place}")
        return found

    def fits(self, pod: Pod, node: Node, used: int) -> bool:
        return (
            used < int(node.status.allocatable["pods"])
            and not node.unschedulable
            and selected(pod, node.labels)
            and find_untolerated(node.taints, pod.spec.tolerations) is None
        )
