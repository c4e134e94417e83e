"""Why the members of a group are not tried, in figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from moorage.api.pod import Pod
from moorage.contrib.coscheduling.groups import PodGroup, Progress
from moorage.contrib.coscheduling.resources import gaps
from moorage.framework.nodes import Nodes
from moorage.framework.optional import Detail, a_few, unit_of


def details(
    group: PodGroup, members: Sequence[Pod], progress: Progress, nodes: Nodes, now: float
) -> Iterator[Detail]:
    """Everything that is in the way of the group, on whatever node."""
    key, least = group.key, group.min_member
    if progress.backoff_until > now:
        yield Detail(
            f"PodGroup {key} failed recently", there=f"{ceil(progress.backoff_until - now)} s to wait"
        )
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
