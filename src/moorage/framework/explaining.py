"""What a plugin can say of a refusal beyond its reason: figures, terms, the pods that are in the way.

A reason is made for an event: short, the same for many nodes. `moorage explain` asks the plugins that inherit
`ExplainingPlugin` for details as well, after the attempt and off the scheduler's way.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from moorage.api.pod import Pod
from moorage.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from moorage.framework import lifting
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import NodeView
from moorage.framework.points import Plugin

Figure = int | str | None
"""An amount in the detail's unit, or a text."""

MILLI, BYTES = "m", "B"
"""Units: thousandths, as cpu has them; bytes."""

NO_LABEL = "no label"
"""What a node has where a label is asked for and it has none of that key."""

_FEW_PODS = 5


class Detail(NamedTuple):
    """One thing that keeps a pod off a node. Nodes with the same subject are shown as one line, with the
    range of what is missing: figures belong into the other fields."""

    subject: str
    """What it is about: `cpu`, `taint gpu=true:NoSchedule`, `port TCP/80`, a term in short."""
    asked: Figure = None
    """What the pod asks for, or the limit that holds."""
    there: Figure = None
    """What the node has for it, or how far the limit is used."""
    missing: int | None = None
    """How much would have to change for the node to do, where that is a number."""
    unit: str = ""
    pods: tuple[str, ...] = ()
    """The pods in the way, as namespace/name; a few are enough."""


class ExplainingPlugin(Plugin):
    """A plugin that knows more about its refusals; inherited beside the extension points."""

    @lifting.required
    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterable[Detail]:
        """Why this plugin refuses the pod on the node, one entry for each thing that is in the way. Called
        after PreFilter, with its state, for nodes that Filter has refused; never while pods are scheduled.
        What it raises is shown in the place of the details."""
        raise lifting.missing(self, "explain")


def a_few(pods: Iterable[Pod]) -> tuple[str, ...]:
    """The first of these pods, for `Detail.pods`."""
    return tuple(pod.key for pod in islice(pods, _FEW_PODS))


def unit_of(resource: str) -> str:
    """The unit in which the framework counts a resource."""
    if resource == CPU:
        return MILLI
    return BYTES if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-") else ""
