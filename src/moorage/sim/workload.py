"""The input of a simulation: objects at the start, timed actions, and settings.

Scenarios, traces and recordings are workloads. Actions are generated lazily and in order of time, so that a
million pods take no memory before they arrive.
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
"""Executed at its time. A MoorageError is collected as a problem, and the simulation continues."""
Timed: TypeAlias = tuple[float, Action]
"""An action and its time in virtual seconds since the start."""


@dataclass(frozen=True, slots=True)
class AddObject:
    """Adds an object."""

    object: AnyObject
    life: PodLife = NO_LIFE

    def __call__(self, cluster: SimulatedCluster) -> None:
        cluster.add(self.object, self.life)


@dataclass(frozen=True, slots=True)
class UpdateObject:
    """Changes an object."""

    resource: Resource
    key: str
    edit: Callable[[Any], Any]

    def __call__(self, cluster: SimulatedCluster) -> None:
        cluster.update(self.resource, self.key, self.edit)


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Removes an object."""

    resource: Resource
    key: str
    why: str = DELETED

    def __call__(self, cluster: SimulatedCluster) -> None:
        cluster.remove(self.resource, self.key, self.why)


Comparison = Literal["<", "<=", "==", "!=", ">=", ">"]


@dataclass(frozen=True, slots=True)
class Assertion:
    """An expected value of a measure at a time. An `at` of None means the end."""

    measure: str
    op: Comparison
    value: float
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a workload for the whole run."""

    duration: float | None = None
    """Virtual seconds. None means until everything has arrived and ended, and no pending pod is tried."""
    seed: int = 0
    epoch: float = EPOCH
    """The wall clock at the start, in seconds since 1970."""
    grace: float = 0.0
    """Seconds that a deleted pod takes to end."""
    sample_interval: float | None = None
    """Seconds between two samples. None chooses an interval that gives several hundred samples."""
    attempts: int | None = None
    """Number of rejections after which a pod is deleted. None means that pods are tried forever."""
    adopts_pods: bool = True
    """Whether the first profile schedules pods that name no profile of the configuration."""
    measures: dict[str, str] = field(default_factory=dict)
    """Name → `module:function` of custom measures."""
    assertions: tuple[Assertion, ...] = ()


class Workload(Protocol):
    """A workload, which may be run many times. The seed decides everything random in it."""

    @property
    def settings(self) -> Settings: ...

    def start(self, seed: int) -> Iterable[AnyObject]:
        """Return the objects that exist before the first action."""
        ...

    def actions(self, seed: int) -> Iterator[Timed]:
        """Yield the actions in order of time."""
        ...


def merge(*streams: Iterable[Timed]) -> Iterator[Timed]:
    """Yield all actions in order of time. At equal times, the first stream comes first."""
    return heapq.merge(*streams, key=itemgetter(0))
