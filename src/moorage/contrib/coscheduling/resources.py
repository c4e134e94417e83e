"""minResources: whether the nodes have enough free in sum, whoever could use it where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.api.requests import pod_requests, resource_value
from moorage.contrib.coscheduling.groups import PodGroup
from moorage.framework.nodes import Nodes

_UNITS = (("Ei", 2**60), ("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def missing(group: PodGroup, placed: Sequence[tuple[Pod, str]], nodes: Nodes) -> str:
    """`gaps` as a text; empty if there are none."""
    found = gaps(group, placed, nodes).items()
    return ", ".join(f"{name} {_amount(name, wanted - free)}" for name, (wanted, free) in found)


def gaps(group: PodGroup, placed: Sequence[tuple[Pod, str]], nodes: Nodes) -> dict[str, tuple[int, int]]:
    """Resource → what minResources and minMember pods ask for, and the less that is free on all nodes. The
    group's own pods on nodes do not count as used; an overcommitted node has nothing free."""
    wanted = {name: resource_value(name, amount) for name, amount in (group.min_resources or {}).items()}
    wanted["pods"] = group.min_member
    own = [(nodes.columns.row_of(node), {**pod_requests(pod), "pods": 1}) for pod, node in placed]
    found = {name: (amount, _free(name, own, nodes)) for name, amount in sorted(wanted.items())}
    return {name: (amount, free) for name, (amount, free) in found.items() if free < amount}


def _free(name: str, own: Sequence[tuple[int, dict[str, int]]], nodes: Nodes) -> int:
    free = nodes.columns.amounts.free(name).copy()
    for row, requests in own:
        if row >= 0:
            free[row] += requests.get(name, 0)
    return int(np.maximum(nodes.take(free), 0).sum())


def _amount(name: str, value: int) -> str:
    """As a quantity: `500m`, `2Gi`, `3`."""
    if name == "cpu":
        return f"{value}m" if value % 1000 else str(value // 1000)
    for unit, size in _UNITS:
        if value % size == 0:
            return f"{value // size}{unit}"
    return str(value)
