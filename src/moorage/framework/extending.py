"""The extender port: webhooks that take part in filtering, scoring, preemption and binding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from moorage.api.pod import Pod
from moorage.framework.nodes import Nodes


class ExtenderError(Exception):
    """An extender did not answer, or not as agreed. Ends the attempt unless the extender is ignorable."""


@dataclass(frozen=True, slots=True)
class ExtenderFilterResult:
    """Names of the nodes that pass, and the refusals with their texts."""

    names: frozenset[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods that would have to go from one node."""

    pods: Sequence[Pod]
    pdb_violations: int = 0


class Extender(Protocol):
    """One configured extender. The calls are the only places where a scheduling cycle suspends."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int: ...

    @property
    def ignorable(self) -> bool:
        """Its errors do not fail the pod."""
        ...

    @property
    def filters(self) -> bool: ...

    @property
    def prioritizes(self) -> bool: ...

    @property
    def preempts(self) -> bool: ...

    @property
    def binds(self) -> bool: ...

    def is_interested(self, pod: Pod) -> bool: ...

    def warn(self, error: Exception) -> None:
        """Log that scheduling goes on without the answer that failed with `error`. Throttled: an extender
        that is down fails for every pod."""
        ...

    async def filter(self, pod: Pod, nodes: Nodes) -> ExtenderFilterResult: ...

    async def prioritize(self, pod: Pod, nodes: Nodes) -> Mapping[str, int]:
        """Node → score from 0 to 10."""
        ...

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]: ...

    async def bind(self, pod: Pod, node_name: str) -> None: ...

    async def close(self) -> None:
        """It will not be asked again."""
        ...
