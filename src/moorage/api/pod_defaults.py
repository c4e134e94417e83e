"""Defaults that the API server gives to pods and that scheduling depends on: requests and host ports.

Follows SetDefaults_Pod and defaultHostNetworkPorts of pkg/apis/core/v1/defaults.go, and defaultPodLevelRequests of
pkg/api/pod/util.go. Pods of an API server have them already; hand-written manifests may not. The functions on plain
objects tolerate wrong types, which decoding or validation reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from moorage.api import quantity
from moorage.api.errors import QuantityError
from moorage.api.pod import Container, Pod, PodSpec, ResourceRequirements
from moorage.api.requests import CPU, MEMORY, is_huge_page_resource
from moorage.api.versions import Behaviour

Raw = dict[str, Any]
"""A part of an object as it is on the wire."""

_LISTS = ("containers", "initContainers")


def with_defaults(pod: Pod, *, pod_level: bool = True) -> Pod:
    """Return a pod with all requests and host ports that the API server fills in when it stores the pod.

    Without `pod_level`, pod-level requests stay as they are.
    """
    if not _lacks_defaults(pod.spec):
        return pod
    spec = msgspec.convert(fill_in_resources(msgspec.to_builtins(pod.spec), pod_level=pod_level), PodSpec)
    return msgspec.structs.replace(pod, spec=spec)


def with_decoding_defaults(pod: Pod, behaviour: Behaviour) -> Pod:
    """Return a pod with the defaults that it gets by being decoded, as recorded evaluations have them.

    Up to 1.36 these include pod-level requests if there are pod-level limits. From 1.37 on these are filled in when
    the pod is stored (PodLevelResourcesFixDefaulting).
    """
    limited = pod.spec.resources is not None and bool(pod.spec.resources.limits)
    return with_defaults(pod, pod_level=behaviour.decoding_fills_pod_level and limited)


def _lacks_defaults(spec: PodSpec) -> bool:
    for container in (*spec.containers, *spec.init_containers):
        amounts = container.resources
        if amounts.limits and amounts.limits.keys() - amounts.requests.keys():
            return True
        if spec.host_network and any(port.container_port and not port.host_port for port in container.ports):
            return True
    return spec.resources is not None and _is_partial(spec.resources, (*spec.containers, *spec.init_containers))


def _is_partial(whole: ResourceRequirements, containers: tuple[Container, ...]) -> bool:
    named = {name for container in containers for name in container.resources.requests} | whole.limits.keys()
    return any(_is_pod_level(name) and name not in whole.requests for name in named)


def fill_in_resources(given: Mapping[str, Any], *, pod_level: bool = True) -> Raw:
    """Return a pod's spec with requests and host ports filled in."""
    spec = dict(given)
    for field in _LISTS:
        if isinstance(spec.get(field), (list, tuple)):
            spec[field] = [_with_requests(container) for container in spec[field]]
            if spec.get("hostNetwork"):
                spec[field] = [_with_host_ports(container) for container in spec[field]]
    if pod_level and isinstance(spec.get("resources"), dict) and spec["resources"]:
        spec["resources"] = with_pod_requests(spec)
    return spec


def _with_requests(container: Any) -> Any:
    """Requests default to limits."""
    limits, requests = _amounts(container, "limits"), _amounts(container, "requests")
    if not limits or limits.keys() <= requests.keys():
        return container
    return {**container, "resources": {**container["resources"], "requests": {**limits, **requests}}}


def _with_host_ports(container: Any) -> Any:
    """In the network of the node, the ports of containers are ports of the node."""
    ports = container.get("ports") if isinstance(container, dict) else None
    if not isinstance(ports, (list, tuple)) or not all(isinstance(port, dict) for port in ports):
        return container
    ports = [{**port, "hostPort": port.get("hostPort") or port.get("containerPort") or 0} for port in ports]
    return {**container, "ports": ports}


def with_pod_requests(spec: Raw) -> Raw:
    """Return the pod-level resources of a spec with requests filled in (KEP-2837).

    They default to the sum of the containers' requests, and if no container requests the resource, to the limit. Huge
    pages cannot be overcommitted, so they default to the limit only.
    """
    given: Raw = spec["resources"]
    limits, requests = _own(given, "limits"), dict(_own(given, "requests"))
    if not limits and not requests:
        return given
    for resource in (CPU, MEMORY):
        if resource not in requests and (sum_of_all := total(spec, resource, "requests")):
            requests[resource] = sum_of_all
    for resource, limit in limits.items():
        if resource not in requests and _is_pod_level(resource):
            requests[resource] = limit
    return {**given, "requests": requests} if requests else given


def total(spec: Raw, resource: str, field: str) -> str:
    """Return the effective request or limit (`field`) of all containers; empty if none has one for the resource."""
    found = [_amounts(container, field).get(resource) for container in _containers(spec, "containers")]
    running, highest, first = 0, 0, []
    for container in _containers(spec, "initContainers"):
        first.append(_amounts(container, field).get(resource))
        nanos = nanos_of(first[-1])
        if container.get("restartPolicy") == "Always":
            running += nanos
            highest = max(highest, running)
        else:
            highest = max(highest, running + nanos)
    texts = [str(text) for text in (*found, *first) if text is not None]
    if not texts:
        return ""
    nanos = max(sum(nanos_of(text) for text in found) + running, highest)
    return quantity.format_nanos(nanos, binary=any(text.endswith("i") for text in texts))


def nanos_of(text: Any) -> int:
    """Return a quantity in nano-units. A bad one counts as none; validation rejects it."""
    try:
        return quantity.parse(text) if text is not None else 0
    except (QuantityError, TypeError):
        return 0


def _is_pod_level(resource: str) -> bool:
    return resource in (CPU, MEMORY) or is_huge_page_resource(resource)


def _containers(spec: Raw, field: str) -> Iterator[Raw]:
    listed = spec.get(field)
    return (each for each in listed if isinstance(each, dict)) if isinstance(listed, (list, tuple)) else iter(())


def _amounts(container: Any, field: str) -> Mapping[str, Any]:
    resources = container.get("resources") if isinstance(container, dict) else None
    return _own(resources, field) if isinstance(resources, dict) else {}


def _own(resources: Raw, field: str) -> Mapping[str, Any]:
    found = resources.get(field)
    return found if isinstance(found, dict) else {}
