"""A cluster in memory for benchmarks: nodes, running pods, and an engine without an API server."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from moorage.api import decoding
from moorage.api.node import HOSTNAME, ZONE
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, Resource
from moorage.app.configuration import Configuration, configure
from moorage.app.offline import load, offline_engine
from moorage.framework.events import QueuedPod
from moorage.framework.ports import Change, Extender
from moorage.runtime.profile import Profile
from moorage.scheduler.engine import Engine

ZONES = 10


class BenchWorld:
    """An engine with a cluster of the given size; deterministic for a seed."""

    def __init__(
        self,
        nodes: int,
        pods: int,
        *,
        seed: int = 0,
        per_node: int = 0,
        configured: Configuration | None = None,
        extenders: Sequence[Extender] = (),
        finish_node: Callable[[dict[str, Any]], None] = lambda node: None,
    ) -> None:
        self.random = random.Random(seed)
        self.engine: Engine = offline_engine(configured or configure(discover=False), seed, extenders)
        self._finish_node = finish_node
        self.profile: Profile = next(iter(self.engine.profiles.values()))
        self.nodes = nodes
        self.put(NODES, (self._node(i) for i in range(nodes)))
        self.put(PODS, self._running(pods, per_node))

    def put(self, resource: Resource, raw: Iterable[dict[str, Any]]) -> None:
        """Deliver objects and apply them."""
        objects = (decoding.convert(resource, item) for item in raw)
        load(self.engine, (Change(resource, None, obj, initial=True) for obj in objects))

    def remove(self, resource: Resource, raw: Iterable[dict[str, Any]]) -> None:
        """Deliver the deletion of objects."""
        load(self.engine, (Change(resource, decoding.convert(resource, item), None) for item in raw))

    def _node(self, i: int) -> dict[str, Any]:
        size = self.random.choice((1, 2, 4))
        labels = {HOSTNAME: f"node-{i}", ZONE: f"zone-{i % ZONES}", "disk": ("ssd", "hdd")[i % 2]}
        amounts = {"cpu": str(8 * size), "memory": f"{32 * size}Gi", "pods": "110", "ephemeral-storage": "500Gi"}
        taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if i % 20 == 0 else []
        node = {
            "metadata": {"name": f"node-{i}", "uid": f"node-{i}", "labels": labels},
            "spec": {"taints": taints},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        self._finish_node(node)
        return node

    def _running(self, pods: int, per_node: int) -> Iterator[dict[str, Any]]:
        """Yield running pods, normally four per node.

        If there are more, they are smaller, so that nodes are not fuller: the benchmark measures the cost of
        pods, not of full nodes.
        """
        share = 1.0 if per_node else min(1.0, 4 * self.nodes / max(pods, 1))
        for i in range(pods):
            row = i // per_node if per_node else self.random.randrange(self.nodes)
            cpu = int(self.random.choice((100, 200, 400)) * share)
            memory = int(self.random.choice((128, 256, 512)) * share)
            pod = raw_pod(f"running-{i}", cpu=cpu, memory=memory, labels={"app": f"app-{i % 500}"})
            pod["spec"]["nodeName"] = f"node-{row % self.nodes}"
            pod["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
            yield pod

    def enqueue(self, raw: dict[str, Any]) -> None:
        """Deliver a pending pod of the profile, as the informer would."""
        raw["spec"]["schedulerName"] = self.profile.name
        self.put(PODS, [raw])

    def confirm(self, info: QueuedPod, node: str) -> None:
        """Deliver the watch event of the binding, which confirms the pod on its node."""
        self.engine.queue.done(info.uid)
        cached = self.engine.cache.get(info.uid)
        bound: Pod | None = cached.pod if cached else None
        if bound is not None:
            self.engine.inbox.post(Change(PODS, info.pod, bound))
            self.engine.drain()


def raw_meta(name: str) -> dict[str, str]:
    """Return the metadata of an object in the namespace default."""
    return {"name": name, "namespace": "default", "uid": name}


def raw_pod(
    name: str,
    *,
    cpu: int = 100,
    memory: int = 200,
    labels: dict[str, str] | None = None,
    namespace: str = "default",
    owner: str = "",
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod as the API server would send it; `cpu` in milli-units, `memory` in Mi."""
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    owners = [{"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": owner, "uid": owner, "controller": True}]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "labels": labels or {},
            **({"ownerReferences": owners} if owner else {}),
        },
        "spec": {
            "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }
