"""What a plugin declares about itself: the API access it needs, and what its answers depend on."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from moorage.api.problems import did_you_mean
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


def wrong_needs(needs: object) -> list[str]:
    """Complaints about the `needs` of a plugin class."""
    if not isinstance(needs, Sequence) or isinstance(needs, str):
        return [f"`needs` must be a tuple of Access, such as (Access(PODS),), not {needs}"]
    return [complaint for need in needs for complaint in _wrong_need(need)]


def _wrong_need(need: object) -> list[str]:
    if not isinstance(need, Access):
        return [f"`needs` must hold Access only, not {need}: write Access(…) around the resource"]
    found: list[str] = []
    where = f"`needs`: Access({need.resource})"
    resource: object = need.resource
    verbs: object = need.verbs
    if not isinstance(resource, Resource):
        text = "the resource must be one of moorage.api.resources, or made by resources.custom()"
        found.append(f"{where}: {text}")
    if not isinstance(verbs, Sequence) or isinstance(verbs, str):
        return [*found, f"{where}: the verbs must be a tuple, not {verbs!r}"]
    for verb in verbs:
        if verb not in VERBS:
            hint = did_you_mean(str(verb), VERBS) or f"known are {', '.join(VERBS)}"
            found.append(f"{where}: unknown verb {verb!r} ({hint})")
    return found


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
