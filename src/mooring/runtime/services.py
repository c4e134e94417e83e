"""What the runtime needs from the scheduler around it; joined in `scheduler.assembly`."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mooring.api.pod import Pod
from mooring.api.resources import Resource
from mooring.framework.counting import AffinityTerms, PodCounters
from mooring.framework.extending import Extender
from mooring.framework.handle import AssumeCache, Lister, Nominator
from mooring.framework.indexes import NodeIndex, NodeKeys, ObjectIndex, ObjectKeys, PodIndex, PodKeys
from mooring.framework.nodes import Nodes, NodeView
from mooring.framework.ports import ApiClient, Clock, EventRecorder
from mooring.framework.ranking import VictimColumns
from mooring.framework.topology import Topology
from mooring.runtime.tasks import Tasks
from mooring.runtime.waiting import WaitingPods


class DryRunRows(Protocol):
    """Some nodes in a dry run, numbered: copies of their rows to which pods are added and from which they are
    taken."""

    def add_pod(self, row: int, pod: Pod) -> None: ...

    def remove_pod(self, row: int, pod: Pod) -> None: ...

    def hide(self, victims: Sequence[Sequence[Pod]]) -> VictimColumns:
        """Take several pods from every row, before anything else; returns them with their requests."""
        ...

    def nodes(self) -> Nodes: ...

    def view(self, row: int) -> NodeView: ...


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
    dry_run_rows: Callable[[Sequence[str]], DryRunRows]
    """Copies of the rows of these nodes."""
    lister: Callable[[Resource], Lister]
    assume_cache: Callable[[Resource], AssumeCache]
    pod_index: Callable[[str, PodKeys], PodIndex]
    node_index: Callable[[str, NodeKeys], NodeIndex]
    object_index: Callable[[str, Resource, ObjectKeys], ObjectIndex]
    topology: Callable[[str], Topology]
    pod_counters: Callable[[], PodCounters]
    affinity_terms: Callable[[], AffinityTerms]
    activate: Callable[[Iterable[Pod]], None]
    resort: Callable[[Iterable[str]], None]
    stop_binding: Callable[[str, str], bool]
    """Stops a pod in PreBind, for a reason; False when it is not there."""
    waiting: WaitingPods
    tasks: Tasks
    extenders: Sequence[Extender] = ()
    shared: dict[Hashable, Any] = field(default_factory=dict)
