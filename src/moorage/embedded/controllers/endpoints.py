"""Endpoints and EndpointSlices of Services that select pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api.errors import AlreadyExists
from moorage.api.resources import Resource, Unstructured
from moorage.api.selectors import selector_from_labels
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Cache
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import is_finished, is_ready, is_terminating, node_name
from moorage.embedded.controllers.ownership import owner_reference

Raw = dict[str, Any]

PER_SLICE = 100
MAX_ENDPOINTS = 1000
"""Addresses in one Endpoints object; more are left out, as upstream does."""
SERVICE_LABEL, MANAGED_BY = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"
_MANAGER = "endpointslice-controller.k8s.io"


class ServiceEndpoints(Controller):
    """The controller of both kinds."""

    name = "endpoint-slice-controller"
    spacing = 1.0

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.services = self.watch(kinds.SERVICES, own_key)
        self.pods = self.watch(kinds.PODS, self._services_of, _concerns)
        self.endpoints = self.caches.of(kinds.ENDPOINTS)
        self.slices = self.watch(kinds.ENDPOINT_SLICES, self._service_of)

    def _services_of(self, pod: Unstructured) -> Iterable[str]:
        return [s.key for s in self.services.in_namespace(pod.namespace) if _selects(s, pod)]

    def _service_of(self, one: Unstructured) -> Iterable[str]:
        return [f"{one.namespace}/{o.name}" for o in one.metadata.owner_references if o.kind == "Service"]

    async def reconcile(self, key: str) -> float | None:
        service = self.services.get(key)
        if service is None or is_terminating(service) or not _selector(service):
            return None
        pods = [p for p in self.pods.in_namespace(service.namespace) if _selects(service, p)]
        pods = sorted((p for p in pods if _address(p) and not is_finished(p)), key=lambda p: p.name)
        await self._write(kinds.ENDPOINTS, self.endpoints, endpoints_of(service, pods))
        await self._write_slices(service, pods)
        return None

    async def _write_slices(self, service: Unstructured, pods: list[Unstructured]) -> None:
        chunks = [pods[i : i + PER_SLICE] for i in range(0, len(pods), PER_SLICE)] or [[]]
        wanted = {}
        for number, chunk in enumerate(chunks):
            raw = slice_of(service, chunk, number)
            wanted[raw["metadata"]["name"]] = raw
            await self._write(kinds.ENDPOINT_SLICES, self.slices, raw)
        for one in self.slices.owned_by(service):
            if one.name not in wanted and not is_terminating(one):
                await self.writer.delete(kinds.ENDPOINT_SLICES, one)

    async def _write(self, resource: Resource, cache: Cache, raw: Raw) -> None:
        """Creates the object, or brings the fields of it that are ours in line."""
        meta = raw["metadata"]
        found = cache.get(f"{meta['namespace']}/{meta['name']}")
        if found is None:
            try:
                await self.writer.create(resource, raw)
            except AlreadyExists:
                await self.writer.refresh(resource, meta["name"], meta["namespace"])
                raise
            return
        ours = {field: value for field, value in raw.items() if field != "metadata"}
        if any(found.raw.get(field) != value for field, value in ours.items()):
            await self.writer.replace(resource, {**found.raw, **ours})


def endpoints_of(service: Unstructured, pods: list[Unstructured]) -> Raw:
    subset: Raw = {}
    shown = pods[:MAX_ENDPOINTS]
    ready = [_endpoint_address(p) for p in shown if _is_ready(service, p)]
    unready = [_endpoint_address(p) for p in shown if not _is_ready(service, p)]
    if ready:
        subset["addresses"] = ready
    if unready:
        subset["notReadyAddresses"] = unready
    ports = _ports(service, pods)
    if ports:
        subset["ports"] = ports
    meta: Raw = {"name": service.name, "namespace": service.namespace}
    meta["labels"] = {**service.labels, "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    return {"metadata": meta, **({"subsets": [subset]} if pods else {"subsets": []})}


def slice_of(service: Unstructured, pods: list[Unstructured], number: int) -> Raw:
    return {
        "metadata": {
            "name": f"{service.name}-{number}",
            "namespace": service.namespace,
            "labels": {SERVICE_LABEL: service.name, MANAGED_BY: _MANAGER},
            "ownerReferences": [owner_reference(kinds.SERVICES, service)],
        },
        "addressType": "IPv4",
        "endpoints": [_slice_endpoint(service, pod) for pod in pods],
        "ports": _ports(service, pods),
    }


def _slice_endpoint(service: Unstructured, pod: Unstructured) -> Raw:
    serving = is_ready(pod)
    return {
        "addresses": [_address(pod)],
        "conditions": {"ready": _is_ready(service, pod), "serving": serving, "terminating": is_terminating(pod)},
        "nodeName": node_name(pod),
        "targetRef": _target(pod),
    }


def _endpoint_address(pod: Unstructured) -> Raw:
    return {"ip": _address(pod), "nodeName": node_name(pod), "targetRef": _target(pod)}


def _target(pod: Unstructured) -> Raw:
    return {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


def _is_ready(service: Unstructured, pod: Unstructured) -> bool:
    if (service.raw.get("spec") or {}).get("publishNotReadyAddresses"):
        return True
    return is_ready(pod) and not is_terminating(pod)


def _ports(service: Unstructured, pods: list[Unstructured]) -> list[Raw]:
    found = []
    for port in (service.raw.get("spec") or {}).get("ports") or ():
        number = _target_port(port, pods)
        if number is not None:
            made = {"port": number, "protocol": port.get("protocol") or "TCP"}
            found.append({**({"name": port["name"]} if port.get("name") else {}), **made})
    return found


def _target_port(port: Raw, pods: list[Unstructured]) -> int | None:
    """The number, or the container port of that name in the first pod."""
    target = port.get("targetPort", port.get("port"))
    if not isinstance(target, str):
        return int(target) if target is not None else None
    for pod in pods[:1]:
        for container in (pod.raw.get("spec") or {}).get("containers") or ():
            for declared in container.get("ports") or ():
                if declared.get("name") == target:
                    return int(declared["containerPort"])
    return None


def _selector(service: Unstructured) -> dict[str, str]:
    selector: dict[str, str] = (service.raw.get("spec") or {}).get("selector") or {}
    return selector


def _selects(service: Unstructured, pod: Unstructured) -> bool:
    selector = _selector(service)
    return bool(selector) and selector_from_labels(selector).matches(pod.labels)


def _address(pod: Unstructured) -> str:
    return str((pod.raw.get("status") or {}).get("podIP") or "")


def _concerns(old: Unstructured, new: Unstructured) -> bool:
    return (
        _address(old) != _address(new)
        or is_ready(old) != is_ready(new)
        or is_finished(old) != is_finished(new)
        or is_terminating(old) != is_terminating(new)
        or old.labels != new.labels
    )
