"""A whole embedded cluster for tests: store, controllers, kubelets, a simple scheduler, virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from moorage.api.errors import NotFound
from moorage.api.resources import Resource
from moorage.embedded.builtin import CONTROLLERS, strict_rules
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, ControllerManager
from moorage.embedded.kubelet.decisions import KubeletSettings
from moorage.embedded.kubelet.kubelets import Kubelets
from moorage.framework.ports import PatchType
from moorage.sim.loop import VirtualClock, VirtualLoop, finish
from moorage.store.faults import Faults
from moorage.store.local import LocalClient
from moorage.store.store import Store

T = TypeVar("T")
Raw = dict[str, Any]

WRITES = ("create", "replace", "patch", "delete", "bind")
FAST = KubeletSettings(start_seconds=(0.1, 0.3), stop_seconds=0.2)


class World:
    """Time stands still between calls. `schedule` binds pending pods to nodes in turn, each 0.1 s.

    `strict`: what is written is checked as the API server does it.
    """

    def __init__(
        self,
        *,
        nodes: int = 3,
        seed: int = 0,
        kubelets: KubeletSettings | None = FAST,
        controllers: Iterable[type[Controller]] = CONTROLLERS,
        schedule: bool = True,
        strict: bool = True,
    ) -> None:
        self.seed = seed
        self.loop = VirtualLoop(seed)
        asyncio.set_event_loop(self.loop)
        self.clock = VirtualClock(self.loop)
        self.random = random.Random(seed)
        self.store = Store(self.clock.wall, random.Random(seed + 1), rules=strict_rules() if strict else None)
        self.faults = Faults(random.Random(seed + 2))
        self.client = LocalClient(self.store, self.clock, self.faults)
        self.user = LocalClient(self.store, self.clock)
        self._tasks: list[asyncio.Task[Any]] = []
        self.manager: ControllerManager
        self.kubelets: Kubelets | None = None
        self.run(self._start(nodes, kubelets, tuple(controllers), schedule))

    async def _start(self, nodes: int, kubelets: KubeletSettings | None, controllers: Any, schedule: bool) -> None:
        for number in range(nodes):
            await self.user.create(kinds.NODES, node(f"n{number}"))
        self._controllers = controllers
        await self._start_manager()
        if kubelets is not None:
            await self._start_kubelets(kubelets)
        if schedule:
            self._tasks.append(asyncio.create_task(self._schedule()))
        await asyncio.sleep(1.0)

    async def _start_kubelets(self, settings: KubeletSettings) -> None:
        self.kubelets = Kubelets(self.client, self.clock, self.random, settings)
        self._tasks.append(asyncio.create_task(self.kubelets.run()))
        await self.kubelets.wait_synced()

    def restart_kubelets(self) -> None:
        """As another process: nothing is known but what the API says."""
        assert self.kubelets is not None
        self.run(self.kubelets.stop())
        self.run(self._start_kubelets(self.kubelets.settings))

    def restart_manager(self) -> None:
        """As another process."""
        self.run(self.manager.stop())
        self.run(self._start_manager())

    async def _start_manager(self) -> None:
        self.manager = ControllerManager(self.client, self.clock, self.random, controllers=self._controllers)
        self._tasks.append(asyncio.create_task(self.manager.run()))
        await self.manager.wait_synced()

    async def _schedule(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            self.bind_pending()

    def bind_pending(self) -> None:
        """Every pending pod to the node with the fewest pods that it may go to."""
        pods = [stored.raw for stored in self.store.list(kinds.PODS).items]
        load = {n["metadata"]["name"]: 0 for n in self.all(kinds.NODES) if _takes_pods(n)}
        for pod in pods:
            if pod["spec"].get("nodeName") in load:
                load[pod["spec"]["nodeName"]] += 1
        for pod in pods:
            meta = pod["metadata"]
            if pod["spec"].get("nodeName") or meta.get("deletionTimestamp"):
                continue
            fitting = _named_nodes(pod) or sorted(load, key=lambda n: (load[n], n))
            if fitting:
                self.store.bind(meta["name"], meta["namespace"], fitting[0])
                load[fitting[0]] = load.get(fitting[0], 0) + 1

    # Driving

    def run(self, coro: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coro)

    def settle(self, seconds: float = 5.0) -> None:
        self.run(asyncio.sleep(seconds))

    def until(self, condition: Callable[[], object], timeout: float = 120.0, step: float = 0.1) -> None:
        deadline = self.clock.now() + timeout
        while not condition():
            if self.clock.now() >= deadline:
                raise AssertionError(f"not within {timeout:g} virtual seconds (seed {self.seed})")
            self.settle(step)

    def create(self, resource: Resource, raw: Raw) -> Raw:
        return dict(self.run(self.user.create(resource, raw)).raw)

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Raw:
        return self.store.get(resource, name, namespace).raw

    def find(self, resource: Resource, name: str, namespace: str = "default") -> Raw | None:
        try:
            return self.get(resource, name, namespace)
        except NotFound:
            return None

    def all(self, resource: Resource, labels: str = "", namespace: str = "") -> list[Raw]:
        return [s.raw for s in self.store.list(resource, label_selector=labels, namespace=namespace).items]

    def patch(
        self, resource: Resource, name: str, patch: Raw, namespace: str = "default", subresource: str = ""
    ) -> Raw:
        namespace = namespace if resource.namespaced else ""
        return dict(
            self.run(
                self.user.patch(
                    resource, name, patch, namespace=namespace, subresource=subresource, patch_type=PatchType.MERGE
                )
            ).raw
        )

    def delete(self, resource: Resource, name: str, namespace: str = "default", **options: Any) -> None:
        namespace = namespace if resource.namespaced else ""
        self.run(self.user.delete(resource, name, namespace=namespace, **options))

    def events(self, reason: str = "", name: str = "") -> list[Raw]:
        from moorage.api.resources import EVENTS

        return [
            e
            for e in self.all(EVENTS)
            if (not reason or e["reason"] == reason) and (not name or e["regarding"]["name"] == name)
        ]

    def writes(self, since: float) -> list[Any]:
        """What stand-ins have sent since then, without heartbeats and events."""
        return [
            call
            for call in self.faults.calls
            if call.time >= since and call.verb in WRITES and call.resource.plural not in ("leases", "events")
        ]

    def close(self) -> None:
        try:
            for task in self._tasks:
                task.cancel()
            self.run(_gathered(self._tasks))
        finally:
            finish(self.loop)
            asyncio.set_event_loop(None)
            self.loop.close()
        if self.loop.failures:
            raise BaseExceptionGroup(f"background failures (seed {self.seed})", self.loop.failures)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


async def _gathered(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _takes_pods(raw: Raw) -> bool:
    spec = raw.get("spec") or {}
    hard = [t for t in spec.get("taints") or () if t["effect"] in ("NoSchedule", "NoExecute")]
    ready = [
        c for c in (raw.get("status") or {}).get("conditions") or () if c["type"] == "Ready" and c["status"] == "True"
    ]
    return not spec.get("unschedulable") and not hard and bool(ready)


def _named_nodes(pod: Raw) -> list[str]:
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    return [
        value
        for term in affinity.get("nodeSelectorTerms") or ()
        for field in term.get("matchFields") or ()
        for value in field["values"]
    ]


def node(name: str, cpu: str = "16", **meta: Any) -> Raw:
    return {"metadata": {"name": name, **meta}, "status": {"capacity": {"cpu": cpu, "memory": "64Gi", "pods": "110"}}}


def template(labels: dict[str, str] | None = None, annotations: Raw | None = None, **spec: Any) -> Raw:
    meta: Raw = {"labels": labels or {"app": "web"}}
    if annotations:
        meta["annotations"] = annotations
    return {"metadata": meta, "spec": {"containers": [{"name": "main", "image": "app:1"}], **spec}}


def workload(name: str = "web", replicas: int | None = 3, **spec: Any) -> Raw:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    wanted: Raw = {"selector": {"matchLabels": {"app": name}}, "template": template({"app": name})}
    if replicas is not None:
        wanted["replicas"] = replicas
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**wanted, **spec}}
