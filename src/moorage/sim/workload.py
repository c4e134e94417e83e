"""What a simulation is fed with: objects at the start, actions at their times, and how long it goes on.

Scenarios, traces and records are workloads. Actions come lazily and in order of time, so that a million pods
take no memory before they arrive.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeAlias

from moorage.api.resources import AnyObject, Resource
from moorage.sim.cluster import DELETED, NO_LIFE, PodLife, SimulatedCluster
from moorage.sim.loop import EPOCH

Action: TypeAlias = Callable[[SimulatedCluster], None]
"""Done at its time. What it raises as a MoorageError is collected, and the simulation goes on."""
Timed: TypeAlias = tuple[float, Action]
"""Virtual seconds since the start, and what happens then."""


@dataclass(frozen=True, slots=True)
class AddObject:
    """An object comes."""

    object: AnyObject
    life: PodLife = NO_LIFE

    def __call__(self, cluster: SimulatedCluster) -> None:
        cluster.add(self.object, self.life)


@dataclass(frozen=True, slots=True)
class UpdateObject:
    """An object changes."""

    resource: Resource
    key: str
    edit: Callable[[Any], Any]

    def __call__(self, cluster: SimulatedCluster) -> None:
        cluster.update(self.resource, self.key, self.edit)


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """An object goes."""

    resource: Resource
    key: str
    why: str = DELETED

    def __call__(self, cluster: SimulatedCluster) -> None:
        cluster.remove(self.resource, self.key, self.why)


Comparison = Literal["<", "<=", "==", "!=", ">=", ">"]


@dataclass(frozen=True, slots=True)
class Assertion:
    """A measure that has to be so at a time; `at` None is the end."""

    measure: str
    op: Comparison
    value: float
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a workload says about the run as a whole."""

    duration: float | None = None
    """Virtual seconds; None: until everything has arrived and ended, and nothing pending is tried."""
    seed: int = 0
    epoch: float = EPOCH
    """The wall clock at the start, in seconds since 1970."""
    grace: float = 0.0
    """Seconds that a deleted pod takes to end."""
    sample_interval: float | None = None
    """Seconds between two samples; None: as many as give some hundred in all."""
    attempts: int | None = None
    """After so many refusals a pod is deleted; None: it is tried for ever."""
    adopts_pods: bool = True
    """Pods that name no profile of the configuration are scheduled by its first one."""
    measures: dict[str, str] = field(default_factory=dict)
    """Name → `module:function` of own measures."""
    assertions: tuple[Assertion, ...] = ()


class Workload(Protocol):
    """One workload may be run many times; the seed decides what is random about it."""

    @property
    def settings(self) -> Settings: ...

    def start(self, seed: int) -> Iterable[AnyObject]:
        """The objects that are there before anything happens."""
        ...

    def actions(self, seed: int) -> Iterator[Timed]:
        """What happens, in order of time."""
        ...


def merge(*streams: Iterable[Timed]) -> Iterator[Timed]:
    """All actions in order of time; at one time those of the first stream come first."""
    return heapq.merge(*streams, key=itemgetter(0))
