"""The nodes and pods of a workload on an API server: created with a label, and deleted by it.

Nodes and prepared pods of one measurement are kept for the next if they are still as the next one needs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeVar

from moorage.api import resources as kinds
from moorage.api.errors import AlreadyExists, MoorageError, NotFound
from moorage.api.resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Resource
from moorage.bench.cluster.templates import Json, WorkloadError
from moorage.bench.cluster.workloads import ClusterWorkload, Step
from moorage.client.lists import ChunkedLister
from moorage.framework.ports import ApiClient

LABEL = "moorage.dev/bench"
STEP_LABEL = "moorage.dev/bench-step"
MADE, PREPARED, PENDING, MEASURED = "made", "prepared", "pending", "measured"
"""Values of the label: objects other than pods, and pods that are bound at once, stay pending or are measured."""
HOSTNAME = "kubernetes.io/hostname"
AT_ONCE = 32
PAGE_SIZE = 500
DELETABLE = (
    PODS, kinds.SERVICES, kinds.REPLICA_SETS, kinds.POD_DISRUPTION_BUDGETS, kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.PERSISTENT_VOLUMES, kinds.STORAGE_CLASSES, kinds.CSI_NODES, PRIORITY_CLASSES, NODES, NAMESPACES,
)  # fmt: skip
"""The kinds that can be created, in the order in which they are deleted."""

T = TypeVar("T")


async def each(items: Iterable[T], action: Callable[[T], Awaitable[Any]], at_once: int = AT_ONCE) -> None:
    """Await the action for all items, several at once. The first error ends the others and is raised."""
    iterator = iter(items)

    async def work() -> None:
        for item in iterator:
            await action(item)

    tasks = [asyncio.ensure_future(work()) for _ in range(at_once)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class ClusterBed:
    """The objects of this run on one API server. `run` is part of the names of its namespaces."""

    def __init__(self, client: ApiClient, run: str) -> None:
        self._client = client
        self.scheduler = self._prefix = f"moorage-bench-{run}"
        """The schedulerName of the pods, which is also the namespace of leases."""
        self._ensured: set[tuple[Resource, str]] = set()

    # The cluster before and after.

    async def begin(self, *, force: bool) -> None:
        """Refuse a cluster with other nodes, and delete what a killed run has left."""
        others = [node.name for node in await self._listed(NODES) if LABEL not in node.labels]
        if others and not force:
            shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
            raise MoorageError(
                f"The cluster has {len(others)} nodes that this command did not create ({shown}). Use a cluster "
                "without other load, or pass --force; pods may then be placed on these nodes."
            )
        await self.remove()
        await self._ensure(NAMESPACES, self._prefix)

    async def remove(self) -> None:
        """Delete everything with our label."""
        for resource in DELETABLE:
            await self._delete(resource, await self._listed(resource, LABEL))
        self._ensured.clear()

    # One measurement.

    async def prepare(self, workload: ClusterWorkload) -> None:
        """Make nodes and pods as the workload has them when the scheduler starts; other pods are deleted."""
        steps = [step for step in workload.steps if step.is_prepared]
        nodes = [node for step in steps if step.opcode == "createNodes" for node in self._nodes(step)]
        await self._reconcile(NODES, nodes)
        for step in steps:
            if step.opcode == "createNamespaces":
                for index in range(step.count):
                    made = step.render(index) if step.templates else {}
                    await self._ensure(NAMESPACES, self._space(f"{step.fields.get('prefix')}-{index}"), made)
            elif step.opcode == "createAny":
                for index in range(step.count):
                    await self.create_any(step, index, str(step.fields.get("namespace") or ""))
        names = [node["metadata"]["name"] for node in nodes]
        if not names:
            raise WorkloadError(f"Workload {workload.name} creates no nodes; add a createNodes step.")
        pods = [
            pod for step in steps if step.opcode == "createPods" for pod in await self.pods(step, PREPARED, on=names)
        ]
        await self._reconcile(PODS, pods)

    async def pods(self, step: Step, role: str, on: list[str] | None = None) -> list[Json]:
        """Return the pods of a step, and create what they refer to. `on` names nodes to bind them to in turn."""
        space = self._space(str(step.fields.get("namespace") or f"namespace-{step.number}"))
        await self._ensure(NAMESPACES, space)
        made = [self._object(step, index, role, space) for index in range(step.count)]
        for index, pod in enumerate(made):
            await self._finish(pod)
            if on:
                pod["spec"]["nodeName"] = on[index % len(on)]
        return made

    async def create_pods(self, step: Step, role: str) -> None:
        """Create the pods of a step, which wait for the scheduler."""
        await each(await self.pods(step, role), lambda pod: self._create(PODS, pod))

    async def create_any(
        self, step: Step, index: int, namespace: str, template: int | None = None
    ) -> Callable[[], Any]:
        """Create one object of any supported kind. Return a function that deletes it."""
        space = self._space(namespace) if namespace else ""
        obj = self._object(step, index, PENDING if step.opcode == "churn" else MADE, space, template)
        resource = kinds.by_kind(str(obj.get("kind")), obj.get("apiVersion"))
        if resource is None or resource not in DELETABLE:
            raise WorkloadError(
                f"Step {step.number} ({step.opcode}) creates a {obj.get('kind')} ({obj.get('apiVersion')}), which is "
                f"not supported; supported are {', '.join(kind.kind for kind in DELETABLE)}."
            )
        if not resource.namespaced:
            obj["metadata"].pop("namespace", None)
        elif space:
            await self._ensure(NAMESPACES, space)
        if resource == PODS:
            await self._finish(obj)
        await self._create(resource, obj)
        meta = obj["metadata"]
        return lambda: self._delete_one(resource, meta["name"], meta.get("namespace", ""))

    async def is_passed(self, barrier: Step) -> bool:
        """Return whether the pods of a barrier are scheduled, or were at least tried or are gated."""
        labels = barrier.fields.get("labelSelector") or {}
        selector = ",".join([LABEL, *(f"{key}={value}" for key, value in labels.items())])
        spaces = {self._space(name) for name in barrier.fields.get("namespaces") or ()}
        attempted = barrier.fields.get("stageRequirement") == "Attempted"
        return all(
            pod.spec.node_name
            or (attempted and any(condition.type == "PodScheduled" for condition in pod.status.conditions))
            for pod in await self._listed(PODS, selector)
            if not spaces or pod.namespace in spaces
        )

    # Objects.

    def _nodes(self, step: Step) -> Iterator[Json]:
        prepared = step.fields.get("labelNodePrepareStrategy") or {}
        unique = step.fields.get("uniqueNodeLabelStrategy") or {}
        for index in range(step.count):
            node = self._object(step, index, MADE)
            meta, status = node["metadata"], node.setdefault("status", {})
            meta["labels"][HOSTNAME] = meta["name"]
            if values := prepared.get("labelValues"):
                meta["labels"][prepared["labelKey"]] = values[index % len(values)]
            if unique:
                meta["labels"][unique["labelKey"]] = str(index)
            status.setdefault("allocatable", status.get("capacity", {}))
            status["conditions"] = [{"type": "Ready", "status": "True", "reason": "Benchmark"}]
            yield node

    def _object(self, step: Step, index: int, role: str, space: str = "", template: int | None = None) -> Json:
        obj = step.render(index if template is None else template)
        meta = obj.setdefault("metadata", {})
        prefix = meta.pop("generateName", "").rstrip("-") or step.opcode.removeprefix("create").lower()
        meta["name"] = meta.get("name") or f"{prefix}-{step.digest}-{index}"
        meta["labels"] = {**(meta.get("labels") or {}), LABEL: role, STEP_LABEL: step.digest}
        if space:
            meta["namespace"] = space
        return obj

    async def _finish(self, pod: Json) -> None:
        """Give a pod the scheduler of this run, and the names that namespaces and priorities have here."""
        spec = pod.setdefault("spec", {})
        spec["schedulerName"] = self.scheduler
        if "priority" in spec and not spec.get("priorityClassName"):
            value = int(spec.pop("priority"))
            spec["priorityClassName"] = f"{self._prefix}-priority-{value}"
            await self._ensure(PRIORITY_CLASSES, spec["priorityClassName"], {"value": value})
        self._rename_spaces(spec.get("affinity"))

    def _rename_spaces(self, part: Any) -> None:
        if isinstance(part, list):
            for item in part:
                self._rename_spaces(item)
        elif isinstance(part, dict):
            if part.get("namespaces"):
                part["namespaces"] = [self._space(name) for name in part["namespaces"]]
            for value in part.values():
                self._rename_spaces(value)

    def _space(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    # Requests.

    async def _ensure(self, resource: Resource, name: str, made: Json | None = None) -> None:
        """Create a namespace or priority class once."""
        if (resource, name) in self._ensured:
            return
        made = made or {}
        meta = made.get("metadata") or {}
        labels = {**(meta.get("labels") or {}), LABEL: MADE}
        await self._create(resource, {**made, "metadata": {**meta, "name": name, "labels": labels}})
        if resource == NAMESPACES:  # admission asks for an account that only a controller would create
            await self._create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": name}})
        self._ensured.add((resource, name))

    async def _reconcile(self, resource: Resource, wanted: list[Json]) -> None:
        """Delete the objects with our label that are not wanted or not as wanted, and create the missing ones."""
        missing = {_key(obj["metadata"]): obj for obj in wanted}
        wrong = []
        for found in await self._listed(resource, LABEL):
            key = (found.metadata.namespace, found.name, found.labels.get(STEP_LABEL, ""))
            usable = not found.metadata.deletion_timestamp and (resource != PODS or found.spec.node_name)
            if not (usable and missing.pop(key, None)):
                wrong.append(found)
        await self._delete(resource, wrong)
        await each(missing.values(), lambda obj: self._create(resource, obj))

    async def _create(self, resource: Resource, obj: Json) -> None:
        try:
            made = await self._client.create(resource, obj)
        except AlreadyExists:
            return
        if resource == NODES and len(made.spec.taints) > len((obj.get("spec") or {}).get("taints") or ()):
            raise MoorageError(
                f"The API server tainted node {made.name} when it was created, so no pod can run there. Start it with "
                "--disable-admission-plugins=TaintNodesByCondition."
            )

    async def _listed(self, resource: Resource, selector: str = "") -> list[Any]:
        try:
            items, _ = await ChunkedLister(self._client, resource, PAGE_SIZE, {"label_selector": selector}).snapshot("")
        except NotFound:  # the server does not serve this kind
            return []
        return [item for item in items if hasattr(item, "metadata")]

    async def _delete(self, resource: Resource, found: Iterable[Any]) -> None:
        alive = (obj for obj in found if resource != NAMESPACES or not obj.metadata.deletion_timestamp)
        await each(alive, lambda obj: self._delete_one(resource, obj.name, obj.metadata.namespace))

    async def _delete_one(self, resource: Resource, name: str, namespace: str) -> None:
        try:
            await self._client.delete(resource, name, namespace=namespace, grace_period=0)
        except NotFound:
            return


def _key(meta: Json) -> tuple[str, str, str]:
    return meta.get("namespace", ""), meta["name"], meta["labels"][STEP_LABEL]
