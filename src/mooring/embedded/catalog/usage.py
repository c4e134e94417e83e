"""Where metrics.k8s.io gets its numbers from: a port that the kubelet stand-in implements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Usage:
    """What is in use at a moment."""

    cpu_cores: float
    memory_bytes: int


class UsageSource(Protocol):
    """Current usage; None where nothing is known (no such object, not running, not measured yet)."""

    def node(self, name: str) -> Usage | None: ...

    def pod(self, namespace: str, name: str) -> Mapping[str, Usage] | None:
        """Usage by container."""
        ...


class NoUsage:
    """The source of a server without kubelets: knows nothing."""

    def node(self, name: str) -> Usage | None:
        return None

    def pod(self, namespace: str, name: str) -> Mapping[str, Usage] | None:
        return None
