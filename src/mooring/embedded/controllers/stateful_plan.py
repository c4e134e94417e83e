"""The next step of a StatefulSet. Pure: what is there in, what to do out.

OrderedReady takes one step at a time: a pod is made only when all before it are available, one is removed
only when all others are well, and an update goes from the last pod to the first. Parallel makes and removes
all at once, and differs in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Member:
    """One pod of the set."""

    ordinal: int
    revision: str
    ready: bool = False
    """Running and ready."""
    available: bool = False
    terminating: bool = False
    finished: bool = False

    @property
    def healthy(self) -> bool:
        return self.ready and not self.terminating


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the set asks for."""

    start: int
    replicas: int
    current: str
    update: str
    ordered: bool = True
    rolling: bool = True
    partition: int = 0
    max_unavailable: int = 1

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)

    def revision_for(self, ordinal: int) -> str:
        below = self.rolling and ordinal < self.start + self.partition
        return self.current if below else self.update


@dataclass(slots=True)
class Plan:
    """Ordinals to make, with their revision, and ordinals to delete."""

    create: dict[int, str] = field(default_factory=dict)
    delete: list[int] = field(default_factory=list)


def plan(wanted: Wanted, members: Mapping[int, Member]) -> Plan:
    step = Plan()
    if not _fill(wanted, members, step):
        return step
    if not _condemn(wanted, members, step):
        return step
    if wanted.rolling:
        _update(wanted, members, step)
    return step


def _fill(wanted: Wanted, members: Mapping[int, Member], step: Plan) -> bool:
    """Makes what is missing; False when the rest has to wait."""
    for ordinal in wanted.ordinals:
        member = members.get(ordinal)
        if member is None:
            step.create[ordinal] = wanted.revision_for(ordinal)
        elif member.finished and not member.terminating:
            step.delete.append(ordinal)  # it is made anew once it is gone
        elif not wanted.ordered or (member.available and not member.terminating):
            continue
        if wanted.ordered:
            return False
    return not step.create and not step.delete


def _condemn(wanted: Wanted, members: Mapping[int, Member], step: Plan) -> bool:
    """Removes what is beyond the wanted number, the last first; False when the rest has to wait."""
    condemned = sorted((o for o in members if o not in wanted.ordinals), reverse=True)
    if not condemned:
        return True
    if not wanted.ordered:
        step.delete += [o for o in condemned if not members[o].terminating]
        return False
    if not any(member.terminating for member in members.values()):
        step.delete.append(condemned[0])
    return False


def _update(wanted: Wanted, members: Mapping[int, Member], step: Plan) -> None:
    """Removes pods of other revisions, the last first, as long as few enough are unwell."""
    unwell = sum(not members[o].healthy for o in wanted.ordinals if o in members)
    for ordinal in sorted(wanted.ordinals, reverse=True):
        member = members.get(ordinal)
        if ordinal < wanted.start + wanted.partition or member is None:
            return
        if member.revision != wanted.update and not member.terminating:
            if unwell >= wanted.max_unavailable and member.healthy:
                return
            step.delete.append(ordinal)
            unwell += member.healthy
        if unwell >= wanted.max_unavailable:
            return
