"""Filter: find the nodes that have no zone for a pod or for one of its containers. This computes what the kubelet would
decide with policy single-numa-node, on arrays of all nodes. Follows pkg/noderesourcetopology/filter.go of
scheduler-plugins.

A zone must have every resource of a request. The kubelet takes the first zone that does; its resources are then missing
for the next container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from moorage.api.pod import Container, Pod
from moorage.api.quantity import format_amount, unit_of
from moorage.api.requests import CPU, is_scalar_resource, resource_value
from moorage.contrib.topology_match.demands import NumaDemand, ZoneRequest, is_host_resource
from moorage.framework.nodes import BoolArray, FloatArray, NodeView
from moorage.framework.optional import Detail, Proposal

Stock = Mapping[str, Sequence[FloatArray]]
"""Resource → zone → what is available there, one entry per node; below 0 where a zone does not report the
resource. An array per zone, because larger ones go back to the system after each use and come anew."""


class Misaligned(NamedTuple):
    mask: BoolArray
    what: str
    amounts: Sequence[tuple[str, int]]


def misaligned(
    demand: NumaDemand, requests: Sequence[ZoneRequest], stock: Stock, known: Mapping[str, BoolArray]
) -> Iterator[Misaligned]:
    """Yield the nodes without a zone for a request, each once. `known` tells which nodes have a resource that some
    nodes lack. Assigned resources are taken out of `stock`, so it shows what is available for the request that was
    yielded."""
    refused = np.zeros(len(next(iter(stock.values()))[0]), dtype=np.bool_)
    for number, request in enumerate(requests, 1):
        amounts = [(name, amount) for name, amount in request.amounts if amount]
        if not amounts:
            continue
        zones = fitting_zones(demand, amounts, stock, known)
        lacking: BoolArray = ~(refused | reduce(np.logical_or, zones))
        refused |= lacking
        if lacking.any():
            yield Misaligned(lacking, request.what, amounts)
        if request.runs_on and number < len(requests):
            exact = [(name, amount) for name, amount in amounts if demand.exact(name)]
            take(stock, exact, zones)


def fitting_zones(
    demand: NumaDemand, amounts: Sequence[tuple[str, int]], stock: Stock, known: Mapping[str, BoolArray]
) -> list[BoolArray]:
    """Return by zone the nodes where it has everything that is requested."""
    fitting = [np.ones(len(zone), dtype=np.bool_) for zone in stock[amounts[0][0]]]
    for name, amount in amounts:
        least = amount if demand.exact(name) else 0
        of_the_node = is_host_resource(name) and reduce(np.logical_and, (zone < 0 for zone in stock[name]))
        for fits, available in zip(fitting, stock[name], strict=True):
            fits &= (available >= least) | of_the_node
            fits &= known.get(name, True)
    return fitting


def take(stock: Stock, amounts: Sequence[tuple[str, int]], fitting: Sequence[BoolArray]) -> None:
    """Take the resources out of the first fitting zone of each node, if the zone reports them."""
    done = np.zeros(len(fitting[0]), dtype=np.bool_)
    for zone, fits in enumerate(fitting):
        here = fits & ~done
        done |= fits
        for name, amount in amounts:
            available = stock[name][zone]
            np.subtract(available, amount, out=available, where=here & (available >= amount))


def lacking(demand: NumaDemand, found: Misaligned, stock: Stock, node: NodeView) -> Iterator[Detail]:
    """Return the resources that no zone has. If some zone has each of them but none has all, return all. `stock` is of
    this node alone."""
    somewhere = True
    for name, amount in found.amounts:
        most = max(int(zone[0]) for zone in stock[name])
        subject, unit = f"{name} in one NUMA zone for the {found.what}", unit_of(name)
        if is_scalar_resource(name) and not node.allocatable.get(name):
            yield Detail(subject, amount, "none on the node", unit=unit)
        elif most < 0 and not is_host_resource(name):
            yield Detail(subject, amount, "not reported", unit=unit)
        elif 0 <= most < amount and demand.exact(name):
            yield Detail(subject, amount, most, amount - most, unit)
        else:
            continue
        somewhere = False
    if somewhere:
        names = ", ".join(name for name, _ in found.amounts)
        yield Detail(f"{names} together in one NUMA zone for the {found.what}")


def fitting_one_zone(demand: NumaDemand, found: Misaligned, stock: Stock, pod: Pod) -> Iterator[Proposal]:
    """Propose the amounts of the zone that lacks the least, for the container with this request. `stock` is of one
    node. A pod of several containers that is aligned as a whole gets no proposal: which of them to reduce is not
    known."""
    containers = [each for each in pod.spec.containers if _requests(each) == dict(found.amounts)]
    if not containers or (found.what == "pod" and len(pod.spec.containers) > 1):
        return
    zones = range(len(stock[found.amounts[0][0]]))
    best: dict[str, int] = {}
    for zone in zones:
        there = {name: int(stock[name][zone][0]) for name, _ in found.amounts}
        less = {name: there[name] for name, ask in found.amounts if demand.exact(name) and 0 <= there[name] < ask}
        if less and min(less.values()) > 0 and (not best or len(less) < len(best)):
            best = less
    if best:
        name = containers[0].name
        amounts = " and ".join(f"{format_amount(each, amount)} {each}" for each, amount in sorted(best.items()))
        text = f"request at most {amounts} in container {name}, as much as one NUMA zone has"
        yield Proposal(f"fit a NUMA zone: {name}", text, 3 * len(best), partial(_with_less, name=name, amounts=best))


def _requests(container: Container) -> dict[str, int]:
    """Return the amounts above zero."""
    found = {name: resource_value(name, amount) for name, amount in container.resources.requests.items()}
    return {name: amount for name, amount in found.items() if amount}


def _with_less(pod: Pod, name: str, amounts: Mapping[str, int]) -> Pod:
    """Return the pod with other requests of one container. Limits follow, so that the pod stays Guaranteed."""
    written = {each: f"{amount}m" if each == CPU else str(amount) for each, amount in amounts.items()}
    containers = []
    for each in pod.spec.containers:
        if each.name == name:
            own = each.resources
            limits = {**own.limits, **{key: value for key, value in written.items() if key in own.limits}}
            each = replace(each, resources=replace(own, requests={**own.requests, **written}, limits=limits))
        containers.append(each)
    return replace(pod, spec=replace(pod.spec, containers=tuple(containers)))
