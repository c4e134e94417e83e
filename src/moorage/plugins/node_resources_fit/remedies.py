"""Remedies for a node without enough free resources: reduce the pod's requests, or delete one pod on the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api import quantity
from moorage.api.pod import Container, Pod, ResourceRequirements
from moorage.api.quantity import format_amount
from moorage.api.requests import CPU, PODS, pod_requests
from moorage.framework.nodes import NodeView
from moorage.framework.optional import Proposal, deletion


def proposals(requests: Mapping[str, int], node: NodeView) -> Iterator[Proposal]:
    """Propose to reduce requests, and to delete the least important pod that frees enough. `requests` are the amounts
    that count for the plugin."""
    missing = {name: ask - node.free(name) for name, ask in requests.items() if 0 < ask > node.free(name)}
    full = node.free(PODS) < 1
    if missing and not full and all(less < requests[name] for name, less in missing.items()):
        parts = [f"{format_amount(name, less)} less {name}" for name, less in missing.items()]
        yield Proposal(
            f"request less {' and '.join(missing)}",
            f"request {' and '.join(parts)}",
            3 * len(missing),
            lambda pod: _with_less(pod, missing),
            size=max(less / requests[name] for name, less in missing.items()),
        )
    enough = []
    for other in node.pods if missing or full else ():
        holds = pod_requests(other)
        if all(holds.get(name, 0) >= less for name, less in missing.items()):
            enough.append((other.priority, sum(holds.get(name, 0) for name in missing), other.key, other))
    for _, size, _, other in sorted(enough, key=lambda each: each[:3])[:1]:
        yield deletion(other, node, size)


def _with_less(given: Pod, missing: Mapping[str, int]) -> Pod:
    pod = given
    for name, less in missing.items():
        containers = list(pod.spec.containers)
        level = pod.spec.resources
        if level is not None and name in level.requests:
            level = _reduced(level, name, less)[0]
            pod = _with_spec(pod, resources=level)
            # A pod may not request less than its containers together.
            remaining = _counted(name, level.requests[name])
            together = pod_requests(_with_spec(pod, resources=None, overhead={})).get(name, 0)
            less = max(0, together - remaining)
        order = sorted(range(len(containers)), key=lambda i: -_asks(containers[i], name))
        for index in order:
            if not less:
                break
            resources, less = _reduced(containers[index].resources, name, less)
            containers[index] = replace(containers[index], resources=resources)
        if less:
            return given  # the init containers request too much
        pod = _with_spec(pod, containers=tuple(containers))
    return pod


def _with_spec(pod: Pod, **changes: Any) -> Pod:
    return replace(pod, spec=replace(pod.spec, **changes))


def _asks(container: Container, name: str) -> int:
    return _counted(name, container.resources.requests.get(name, 0))


def _counted(name: str, written: quantity.Quantity) -> int:
    return quantity.milli_value(written) if name == CPU else quantity.value(written)


def _reduced(resources: ResourceRequirements, name: str, less: int) -> tuple[ResourceRequirements, int]:
    """Reduce one request. Return the new requirements, and the part of `less` that could not be taken here.
    Limits of extended resources come down with their requests, because both must be equal."""
    asked = _counted(name, resources.requests.get(name, 0))
    taken = min(asked, less)
    kept = f"{asked - taken}m" if name == CPU else str(asked - taken)
    limits = dict(resources.limits)
    if "/" in name and name in limits:
        limits[name] = kept
    changed = replace(resources, requests={**resources.requests, name: kept}, limits=limits)
    return (changed if taken else resources), less - taken
