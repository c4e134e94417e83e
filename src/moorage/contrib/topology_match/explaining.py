"""Why a node has no zone for a request, in figures."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.requests import is_scalar_resource
from moorage.contrib.topology_match.aligning import Misaligned, Stock
from moorage.contrib.topology_match.demands import Demand, is_host_resource
from moorage.framework.nodes import NodeView
from moorage.framework.optional import Detail, unit_of


def lacking(demand: Demand, found: Misaligned, stock: Stock, node: NodeView) -> Iterator[Detail]:
    """What no zone has; where one has each thing but none has all, that. `stock` is of this node alone."""
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
