"""Facts and remedies for nodes without enough free resources: the largest node, the nodes with the most free, what the
request consists of; reduce the pod's requests, or delete one pod on the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from moorage.api import quantity
from moorage.api.pod import Container, Pod, ResourceRequirements
from moorage.api.quantity import format_amount
from moorage.api.requests import CPU, PODS, pod_requests, resource_value
from moorage.framework.nodes import IntArray, Nodes, NodeView
from moorage.framework.optional import Proposal, deletion

MAX_AMOUNTS = 4
MAX_NODES = 3


def facts(requests: Sequence[tuple[str, int]], pod: Pod, nodes: Nodes) -> Iterator[str]:
    """Yield, for every resource that some node lacks, how much is requested and what the nodes have."""
    for name, ask in requests:
        free = nodes.free(name)
        if not (free < ask).any():
            continue
        yield from _composition(name, ask, pod)
        allocatable, asked = nodes.allocatable(name), format_amount(name, ask)
        place = int(allocatable.argmax())
        most = int(allocatable[place])
        if not most:
            yield f"No node offers {name}."
        elif ask > most:
            yield f"No node has {asked} {name}: the largest is {_named(nodes[place])} with {format_amount(name, most)}."
        else:
            yield f"{asked} {name} requested; most free: {_most_free(name, free, nodes)}."


def _composition(name: str, ask: int, pod: Pod) -> Iterator[str]:
    """Say what is behind an amount that no single container requests."""
    level = pod.spec.resources
    if level is not None and name in level.requests:
        amount = format_amount(name, resource_value(name, level.requests[name]))
        yield f"The pod-level resources request {amount} {name}."
    if name in pod.spec.overhead:
        overhead = resource_value(name, pod.spec.overhead[name])
        of = f" of RuntimeClass {pod.spec.runtime_class_name}" if pod.spec.runtime_class_name else ""
        parts = f"{format_amount(name, ask - overhead)} requested + {format_amount(name, overhead)} overhead{of}"
        yield f"{name}: {parts} = {format_amount(name, ask)}."


def _most_free(name: str, free: IntArray, nodes: Nodes) -> str:
    parts = []
    for amount in -np.unique(-free)[:MAX_AMOUNTS]:
        places = np.flatnonzero(free == amount)
        names = [_named(nodes[int(place)]) for place in places[:MAX_NODES]]
        more = len(places) - len(names)
        listed = f"{', '.join(names)} and {more} more" if more > 0 else " and ".join(names)
        parts.append(f"{format_amount(name, int(amount))} on {listed}")
    return "; ".join(parts)


def _named(node: NodeView) -> str:
    return node.name if node.node.metadata.deletion_timestamp is None else f"{node.name} (being deleted)"


def proposals(
    requests: Mapping[str, int], pod: Pod, node: NodeView, largest: Callable[[str], int]
) -> Iterator[Proposal]:
    """Propose to reduce requests, and to delete the least important pod that frees enough. `requests` are the amounts
    that count for the plugin. The overhead of the pod's RuntimeClass is among them, and no request reduces it.

    `largest` returns what the largest node has of a resource. If no node is large enough for the pod, it is not
    proposed to get by with less than half of what it requests."""
    missing = {name: ask - node.free(name) for name, ask in requests.items() if 0 < ask > node.free(name)}
    full = node.free(PODS) < 1
    overhead = {name: _counted(name, amount) for name, amount in pod.spec.overhead.items()}
    most = {name: requests[name] - less - overhead.get(name, 0) for name, less in missing.items()}
    own = {name: requests[name] - overhead.get(name, 0) for name in missing}
    sensible = all(requests[name] <= largest(name) or 2 * amount >= own[name] for name, amount in most.items())
    if missing and not full and sensible and all(amount > 0 for amount in most.values()):
        parts = [f"{format_amount(name, amount)} {name}" for name, amount in most.items()]
        yield Proposal(
            f"request less {' and '.join(missing)}",
            f"request at most {' and '.join(parts)}",
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


def _written(name: str, amount: int) -> str:
    """Return an amount as a quantity that people read easily, if that is exact: `32Gi`."""
    text = format_amount(name, amount)
    exact = f"{amount}m" if name == CPU else str(amount)
    return text if _counted(name, text) == amount else exact


def _reduced(resources: ResourceRequirements, name: str, less: int) -> tuple[ResourceRequirements, int]:
    """Reduce one request. Return the new requirements, and the part of `less` that could not be taken here.
    Limits of extended resources come down with their requests, because both must be equal."""
    asked = _counted(name, resources.requests.get(name, 0))
    taken = min(asked, less)
    kept = _written(name, asked - taken)
    limits = dict(resources.limits)
    if "/" in name and name in limits:
        limits[name] = kept
    changed = replace(resources, requests={**resources.requests, name: kept}, limits=limits)
    return (changed if taken else resources), less - taken
