"""The cast of `mooring demo`: nodes, a pod, a plugin and its configuration, on a store and a real scheduler.

Says nothing itself; `demo` tells what happens here.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mooring.api.events import Event
from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.resources import EVENTS, NODES, PODS
from mooring.app.clock import SystemClock
from mooring.app.scheduler import Scheduler
from mooring.embedded.local import LocalClient
from mooring.embedded.store import Store
from mooring.framework import (
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
from mooring.framework.record import DecisionRecord

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
POD_NAME = "test-scheduler-78c89768cf-5d9ct"
POD_KEY = f"default/{POD_NAME}"
LABELLED = "node1"
PATIENCE = 10.0
"""Seconds to wait for something that takes milliseconds; longer means that the story is broken."""


class Sample(FilterPlugin):
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
    """Something that the story tells of did not happen."""


class Story:
    """The cluster in memory, with the scheduler that `start` brings to life."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.client = LocalClient(Store(self.clock.wall, random.Random()), self.clock)
        # Without the five-minute flush nothing but an event can bring a refused pod back.
        self.scheduler = Scheduler(
            self.client, config=CONFIG, plugins=[Sample], clock=self.clock, discover=False, flush_after=None
        )

    async def create_nodes(self) -> list[Node]:
        away = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
        specs: Mapping[str, dict[str, Any]] = {
            "k8s": {},
            LABELLED: {},
            "node2": {"taints": [away]},
            "node3": {"unschedulable": True},
        }
        return [await self._create_node(name, spec) for name, spec in specs.items()]

    async def _create_node(self, name: str, spec: dict[str, Any]) -> Node:
        ready = {"type": "Ready", "status": "Unknown" if "taints" in spec else "True"}
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        node = {"metadata": {"name": name}, "spec": spec, "status": status}
        created: Node = await self.client.create(NODES, node)
        return created

    async def create_pod(self) -> Pod:
        metadata = {"name": POD_NAME, "namespace": "default", "labels": {"app": "test-scheduler"}}
        container = {"name": "nginx", "image": "nginx:1.23-alpine"}
        spec = {"schedulerName": "sample-scheduler", "containers": [container]}
        created: Pod = await self.client.create(PODS, {"metadata": metadata, "spec": spec})
        return created

    async def label_node(self) -> None:
        await self.client.patch(NODES, LABELLED, {"metadata": {"labels": {"cpu": "true"}}})

    async def pod(self) -> Pod:
        found: Pod = await self.client.get(PODS, POD_NAME, "default")
        return found

    async def attempt(self, number: int) -> DecisionRecord:
        """The record of the pod's n-th attempt, as soon as it exists and its event is written."""
        await self._until(
            lambda: len(self.scheduler.records.of(POD_KEY)) >= number and len(self.events()) >= number,
            f"attempt {number} of pod {POD_KEY}",
        )
        return self.scheduler.records.of(POD_KEY)[number - 1]

    def events(self) -> list[Event]:
        """What happened to the pod, oldest first."""
        found = [stored.typed for stored in self.client.store.list(EVENTS).items]
        own = [event for event in found if isinstance(event, Event) and event.regarding.name == POD_NAME]
        return sorted(own, key=lambda event: event.event_time or "")

    async def _until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = self.clock.now() + PATIENCE
        while not happened():
            if self.clock.now() > deadline:
                raise StoryError(f"waited {PATIENCE:g} seconds for {what}, in vain")
            await asyncio.sleep(0.005)
