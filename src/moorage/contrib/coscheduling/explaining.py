"""Explain with figures why the members of a group are not tried, and check minResources: whether all nodes together
have enough free resources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np

from moorage.api.pod import Pod
from moorage.api.quantity import unit_of
from moorage.api.requests import pod_requests, resource_value
from moorage.contrib.coscheduling.groups import GroupObject, Progress
from moorage.framework.nodes import Nodes
from moorage.framework.optional import Detail, a_few

_UNITS = (("Ei", 2**60), ("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def missing(group: GroupObject, placed: Sequence[tuple[Pod, str]], nodes: Nodes) -> str:
    """Return `gaps` as text; empty if there are none."""
    found = gaps(group, placed, nodes).items()
    return ", ".join(f"{name} {_amount(name, wanted - free)}" for name, (wanted, free) in found)


def gaps(group: GroupObject, placed: Sequence[tuple[Pod, str]], nodes: Nodes) -> dict[str, tuple[int, int]]:
    """Return the resources of which minResources or minMember pods request more than is free on all nodes, with both
    amounts. The group's own running pods do not count as used; an overcommitted node has nothing free."""
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
    """Return a quantity: `500m`, `2Gi`, `3`."""
    if name == "cpu":
        return f"{value}m" if value % 1000 else str(value // 1000)
    for unit, size in _UNITS:
        if value % size == 0:
            return f"{value // size}{unit}"
    return str(value)


def details(
    group: GroupObject, members: Sequence[Pod], progress: Progress, nodes: Nodes, now: float
) -> Iterator[Detail]:
    """Return everything that blocks the group, independent of the node."""
    key, least = group.key, group.min_member
    if progress.backoff_until > now:
        yield Detail(f"PodGroup {key} failed recently", there=f"{ceil(progress.backoff_until - now)} s to wait")
    gated = [member for member in members if member.is_gated]
    if len(members) < least:
        yield Detail(f"pods of PodGroup {key}", least, len(members), least - len(members))
    elif (ready := len(members) - len(gated)) < least:
        subject = f"pods of PodGroup {key} without scheduling gates"
        yield Detail(subject, least, ready, least - ready, pods=a_few(gated))
    if group.min_resources is not None:
        for name, (wanted, free) in gaps(group, [*progress.placed.values()], nodes).items():
            yield Detail(f"{name} free on all nodes", wanted, free, wanted - free, unit_of(name))
    if progress.refused is not None:
        subject = f"members of PodGroup {key} that find a node together"
        yield Detail(subject, least, progress.fitting, least - progress.fitting)
