"""What the runtime needs from the scheduler around it; joined in `scheduler.assembly`."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mooring.api.pod import Pod
from mooring.api.resources import Resource
from mooring.framework.extending import Extender
from mooring.framework.handle import AssumeCache, Lister, Nominator
from mooring.framework.indexes import NodeIndex, NodeKeys, PodIndex, PodKeys
from mooring.framework.nodes import Nodes, NodeView
from mooring.framework.ports import ApiClient, Clock, EventRecorder
from mooring.runtime.tasks import Tasks
from mooring.runtime.waiting import WaitingPods


class WhatIfRow(Protocol):
    """One node in a dry run: a copy of its row to which pods are added and from which they are taken."""

    def add_pod(self, pod: Pod) -> None: ...

    def remove_pod(self, pod: Pod) -> None: ...

    def view(self) -> NodeView: ...


@dataclass(slots=True)
class Services:
    """The scheduler's side of the Handle. One per process, shared by all profiles and reloads."""

    client: ApiClient
    clock: Clock
    random: random.Random
    recorder: EventRecorder
    nominator: Nominator
    nodes: Callable[[], Nodes]
    """The live nodes, in snapshot order."""
    what_if: Callable[[str], WhatIfRow]
    """A copy of the row of a node."""
    lister: Callable[[Resource], Lister]
    assume_cache: Callable[[Resource], AssumeCache]
    pod_index: Callable[[str, PodKeys], PodIndex]
    node_index: Callable[[str, NodeKeys], NodeIndex]
    activate: Callable[[Iterable[Pod]], None]
    resort: Callable[[Iterable[str]], None]
    waiting: WaitingPods
    tasks: Tasks
    extenders: Sequence[Extender] = ()
    shared: dict[Hashable, Any] = field(default_factory=dict)
