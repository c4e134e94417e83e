"""What a plugin declares about itself: the API access it needs, and what its answers depend on."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from moorage.api.resources import Resource

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
"""What a client can do, in the order in which RBAC rules list it."""
READ_VERBS = ("get", "list", "watch")
LISTED = ("list", "watch")
"""What an informer uses: enough for a plugin that reads through listers only."""


@dataclass(frozen=True, slots=True)
class Access:
    """One line of `needs`: a kind and the verbs that the plugin uses on it.

    The Handle refuses kinds and verbs that are not declared; informers and RBAC rules are made from the
    declarations. `subresource` is for writes such as `pods/status`.
    """

    resource: Resource
    verbs: tuple[str, ...] = READ_VERBS
    subresource: str = ""

    @property
    def reads(self) -> bool:
        """Whether an informer must keep this kind: it is watched. `list` alone is for `client.list`, of kinds
        that cannot be watched (metrics.k8s.io) or are too many to keep."""
        return "watch" in self.verbs


class Reads(enum.Enum):
    """What, beside the pod itself, an answer depends on."""

    NODE = "node"
    """The node object: labels, taints, allocatable."""
    ROW = "row"
    """What runs on that node: requested, ports, volumes, pods."""
    PODS = "pods"
    """Pods anywhere in the cluster."""
    NODE_COUNT = "node count"
    """How many nodes there are."""


@dataclass(frozen=True, slots=True)
class Kind:
    """An answer depends on all objects of one kind."""

    resource: Resource


class Version:
    """A counter that the plugin owns; bump it when the answers change (a metrics refresh)."""

    __slots__ = ("value",)

    bumps: ClassVar[int] = 0
    """How often any of them was bumped: while this stays the same, so do all."""

    def __init__(self) -> None:
        self.value = 0
        """Grows with every bump; to be read only."""

    def bump(self) -> None:
        """What was kept for this version is dropped."""
        self.value += 1
        Version.bumps += 1


Dependency = Reads | Kind | Version
