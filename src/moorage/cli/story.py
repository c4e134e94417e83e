"""The story of `moorage demo`: nodes, a Deployment, a plugin and its configuration on an embedded cluster.

As on any cluster, all requests go over HTTPS to an API server in another process. `demo` prints what happens.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from moorage.api import yaml_text
from moorage.api.core import Event
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import DEPLOYMENTS, EVENTS, NODES, PODS
from moorage.app.clock import SystemClock
from moorage.app.configuration import configure
from moorage.app.scheduler import Scheduler
from moorage.client.http_client import HttpClient
from moorage.framework import (
    ActionType,
    ClusterEvent,
    CycleState,
    FilterPlugin,
    NodeView,
    QueueingHint,
    Registration,
    Status,
    events,
)
from moorage.runtime.record import DecisionRecord
from moorage.up.cluster import EmbeddedCluster
from moorage.up.cluster_plan import ClusterPlan
from moorage.up.process import Orders

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: sample-scheduler
    plugins:
      filter:
        enabled:
          - name: sample
"""
APP = "test-scheduler"
DEPLOYMENT = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {APP}
spec:
  replicas: 1
  selector:
    matchLabels:
      app: {APP}
  template:
    metadata:
      labels:
        app: {APP}
    spec:
      schedulerName: sample-scheduler
      containers:
        - name: nginx
          image: nginx:1.23-alpine
"""
LABELLED = "node1"
PATIENCE = 30.0
"""Maximum seconds to wait for a step of the story."""
AWAY = "node.kubernetes.io/unreachable"
CORDONED = "node.kubernetes.io/unschedulable"
NODE_SPECS: Mapping[str, dict[str, Any]] = {
    "k8s": {},
    LABELLED: {},
    "node2": {"taints": [{"key": AWAY, "effect": "NoSchedule"}]},
    "node3": {"unschedulable": True},
}


class SamplePlugin(FilterPlugin):
    """Lets pods run only on nodes with the label cpu=true."""

    name = "sample"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        if node.labels.get("cpu") != "true":
            return Status.unschedulable(f"Node: {node.name}")
        return None

    def events_to_register(self) -> Sequence[Registration]:
        relabelled = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [Registration(relabelled, self.now_has_label)]

    def now_has_label(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        helps = new is not None and new.labels.get("cpu") == "true"
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP


class StoryError(Exception):
    """A step of the story did not happen."""


class Story:
    """The embedded cluster, which runs inside `async with`."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self._files = tempfile.TemporaryDirectory(prefix="moorage-demo-")
        self.kubeconfig = Path(self._files.name) / "kubeconfig"
        orders = Orders(objects=[_node(name, spec) for name, spec in NODE_SPECS.items()])
        configuration = configure(CONFIG, plugins=[SamplePlugin], discover=False)
        # Without the five-minute flush, only an event can requeue an unschedulable pod.
        self._cluster = EmbeddedCluster(ClusterPlan(orders, configuration, self.kubeconfig, flush_after=None))
        self._client: HttpClient | None = None

    async def __aenter__(self) -> Story:
        await self._cluster.start()
        self._client = self._cluster.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.close()
        await self._cluster.stop()
        self._files.cleanup()

    @property
    def client(self) -> HttpClient:
        assert self._client is not None
        return self._client

    @property
    def scheduler(self) -> Scheduler:
        assert self._cluster.scheduler is not None
        return self._cluster.scheduler

    @property
    def server(self) -> str:
        return self._cluster.ready.server

    async def nodes(self) -> list[Node]:
        """Return all nodes once controllers and kubelets have settled them and the scheduler has seen it."""
        found: list[Node] = []

        async def settled() -> bool:
            found[:] = (await self.client.list(NODES)).items
            known = {(node.name, node.resource_version) for node in self._known_nodes()}
            return all(map(_at_rest, found)) and known == {(node.name, node.resource_version) for node in found}

        await self._until(settled, "the nodes to become ready")
        return found

    def _known_nodes(self) -> Iterator[Node]:
        return self.scheduler.engine.stores.lister(NODES).list()

    async def create_deployment(self) -> Pod:
        """Create the Deployment, and return its pod once the controllers have created it."""
        await self.client.create(DEPLOYMENTS, yaml_text.load(DEPLOYMENT) | {"metadata": _in_default(APP)})
        return await self.first_pod()

    async def first_pod(self) -> Pod:
        async def exists() -> bool:
            return bool(await self._pods())

        await self._until(exists, f"a pod of deployment {APP}")
        return (await self._pods())[0]

    async def label_node(self) -> None:
        await self.client.patch(NODES, LABELLED, {"metadata": {"labels": {"cpu": "true"}}})

    async def pod(self) -> Pod:
        return (await self._pods())[0]

    async def running_pod(self) -> Pod:
        async def runs() -> bool:
            return (await self.pod()).status.phase == "Running"

        await self._until(runs, "the pod to run")
        return await self.pod()

    async def attempt(self, pod: Pod, number: int) -> DecisionRecord:
        """Return the decision record of the pod's n-th attempt, once it exists and its event is written."""
        records = self.scheduler.records

        async def happened() -> bool:
            return len(records.of(pod.key)) >= number and len(await self.events(pod)) >= number

        await self._until(happened, f"attempt {number} of pod {pod.key}")
        return records.of(pod.key)[number - 1]

    async def events(self, pod: Pod) -> list[Event]:
        """Return the scheduler's events about the pod, oldest first."""
        found: Sequence[Event] = (await self.client.list(EVENTS, namespace=pod.namespace)).items
        own = [event for event in found if event.regarding.uid == pod.uid]
        reported = [event for event in own if event.reporting_controller == "sample-scheduler"]
        return sorted(reported, key=lambda event: event.event_time or "")

    async def _pods(self) -> Sequence[Pod]:
        return (await self.client.list(PODS, namespace="default", label_selector=f"app={APP}")).items

    async def _until(self, happened: Callable[[], Awaitable[bool]], what: str) -> None:
        deadline = self.clock.now() + PATIENCE
        while not await happened():
            if self.clock.now() > deadline:
                raise StoryError(f"Timed out after {PATIENCE:g} seconds waiting for {what}.")
            await asyncio.sleep(0.005)


def _node(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    metadata: dict[str, Any] = {"name": name}
    status: dict[str, Any] = {"capacity": amounts, "allocatable": amounts}
    if "taints" in spec:
        metadata["annotations"] = {"moorage.dev/fail": "true"}
        status["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _at_rest(node: Node) -> bool:
    """Return whether the node has its final taints and, unless it has failed, is ready."""
    taints = {taint.key for taint in node.taints}
    if node.name == "node2":
        return taints == {AWAY}
    ready = any(entry.type == "Ready" and entry.status == "True" for entry in node.status.conditions)
    return ready and taints == ({CORDONED} if node.unschedulable else set())


def _in_default(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default"}
