"""NetworkOverhead: place pods of an application near the pods that they depend on. A node is rejected if more of these
are too far away than near enough; nodes with a lower sum of costs score higher. Follows
pkg/networkaware/networkoverhead/networkoverhead.go of scheduler-plugins."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, required
from moorage.api.resources import Unstructured
from moorage.api.selectors import selector_from_labels
from moorage.contrib.network_aware.app_groups import (
    APPGROUPS,
    GROUP,
    NAMESPACES,
    WORKLOAD,
    AppGroups,
    Dependency,
    check_served,
    read,
)
from moorage.contrib.network_aware.costs import NETWORKTOPOLOGIES, Matrices, NetworkTopology, Places, matrices, place_of
from moorage.contrib.network_aware.definitions import APPGROUP, NETWORKTOPOLOGY
from moorage.contrib.network_aware.members import Members, Neighbours, count
from moorage.contrib.normalizing import min_max
from moorage.framework import access
from moorage.framework.access import LISTED, Access, Reads, Version
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, POD, ActionType, ClusterEvent, EventResource, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.indexes import PodSelector
from moorage.framework.nodes import IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, ReusablePlugin, VectorFilterPlugin, VectorScorePlugin
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import MAX_NODE_SCORE, Status

STATE = "NetworkOverhead"
COMES_AND_GOES = ActionType.ADD | ActionType.DELETE


class NetworkOverheadArgs(PluginArgs):
    """The namespaces of the objects, and which costs count."""

    namespaces: tuple[str, ...] = NAMESPACES
    """Of AppGroups and of the NetworkTopology. The first that has an object of a name decides."""
    weights_name: str = "UserDefined"
    """Which of the weights of the NetworkTopology."""
    network_topology_name: str = "nt-default"

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if not self.weights_name:
            yield required(child(path, "weightsName"), "a name in spec.weights of the NetworkTopology")
        if not self.network_topology_name:
            yield required(child(path, "networkTopologyName"), "the name of a NetworkTopology")


class NetworkOverhead(PreFilterPlugin, VectorFilterPlugin, VectorScorePlugin, ReusablePlugin, ExplainingPlugin):
    name = "NetworkOverhead"
    Args = NetworkOverheadArgs
    needs = (Access(APPGROUPS, LISTED), Access(NETWORKTOPOLOGIES, LISTED))
    definitions = (APPGROUP, NETWORKTOPOLOGY)

    def __init__(self, args: NetworkOverheadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._namespaces = args.namespaces or NAMESPACES
        self._version = Version()
        self._groups = AppGroups(self._namespaces, handle, lambda name: self._version.bump())
        self._topologies: dict[str, NetworkTopology] = {}
        """By namespace, of those that have one of the name."""
        self._places = Places()
        self._known: tuple[tuple[int, int], Matrices] | None = None
        """The costs of now, and what they were computed for."""
        self._counters = handle.pod_counters
        handle.on_change(NETWORKTOPOLOGIES, self._topology_changed)

    async def run(self) -> None:
        check_served(self, APPGROUPS, NETWORKTOPOLOGIES)

    def _topology_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        obj = new or old
        if obj is None or obj.name != self.args.network_topology_name:
            return
        self._version.bump()
        self._topologies.pop(obj.namespace, None)
        if new is not None:
            self._topologies[obj.namespace] = read(new, NetworkTopology)

    def _costs(self) -> Matrices:
        asked = (self._version.value, self._places.size)
        if self._known is None or self._known[0] != asked:
            found = (self._topologies.get(namespace) for namespace in self._namespaces)
            topology = next((each for each in found if each is not None), None)
            self._known = asked, matrices(topology, self.args.weights_name, self._places)
        return self._known[1]

    def _dependencies(self, pod: Pod) -> tuple[Dependency, ...]:
        group = self._groups.of(pod)
        return group.dependencies(pod) if group is not None else ()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        dependencies = self._dependencies(pod)
        if not dependencies:
            return Status.skip()
        members = [self._members(pod.labels[GROUP], found) for found in dependencies]
        state.write(STATE, Neighbours(members, self._places.column(self.handle.nodes.columns)))
        return None

    def _members(self, group: str, dependency: Dependency) -> Members:
        workload = dependency.workload.selector
        return count(workload, dependency.max_network_cost, self._counters.get(pods_of(group, workload)))

    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        neighbours: Neighbours = state.read(STATE)
        return is_sibling(pod, other) and neighbours.includes(other.labels.get(WORKLOAD, ""))

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        self._change(state, pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        self._change(state, pod, removed, node, -1)

    def _change(self, state: CycleState, pod: Pod, other: Pod, node: NodeView, number: int) -> None:
        if self.concerns(state, pod, other):
            [row] = node.alone().table_rows.tolist()
            state.own(STATE).change(other.labels.get(WORKLOAD, ""), row, number)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        neighbours: Neighbours = state.read(STATE)
        satisfied, violated = neighbours.satisfied_and_violated(self._costs(), nodes)

        def reason(index: int) -> str:
            return (
                f"Node {nodes.names[index]} does not meet several network requirements from Workload "
                f"dependencies: Satisfied: {int(satisfied[index])} Violated: {int(violated[index])}"
            )

        return nodes.refuse(violated > satisfied, reason)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        neighbours: Neighbours = state.read(STATE)
        found = [*neighbours.by_workload(self._costs(), node.alone())]
        if sum(violated - satisfied for _, satisfied, violated in found) <= 0:
            return
        for members, satisfied, violated in found:
            if violated:
                subject = f"pods of workload {members.workload} within network cost {members.limit}"
                yield Detail(subject, satisfied + violated, satisfied, violated)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        """Return the cost of the traffic to all pods that this pod depends on; 0 if there are none."""
        neighbours: Neighbours | None = state.read(STATE, None)
        if neighbours is None:
            return np.zeros(len(nodes), dtype=np.int64)
        return neighbours.costs(self._costs(), nodes)

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        """Give the least cost the highest score; equal costs all score highest, unless they are 0."""
        return MAX_NODE_SCORE - min_max(scores) if scores.any() else scores

    def events_to_register(self) -> Sequence[Registration]:
        nodes = ClusterEvent(NODE, COMES_AND_GOES | ActionType.UPDATE_NODE_LABEL)
        pods = ClusterEvent(POD, COMES_AND_GOES | ActionType.UPDATE_POD_LABEL)
        groups, topologies = (
            ClusterEvent(EventResource(str(kind)), ActionType.ALL) for kind in (APPGROUPS, NETWORKTOPOLOGIES)
        )
        return [
            Registration(nodes, after_node_change),
            Registration(pods, self._after_pod_change),
            Registration(groups, after_group_change),
            Registration(topologies, self._after_topology_change),
        ]

    def _after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        """Queue if a pod that this one depends on was assigned or deleted, or the labels of either have changed."""
        if old is not None and new is not None and new.uid == pod.uid:
            return QueueingHint.QUEUE
        before, after = (
            each.labels.get(WORKLOAD) if each is not None and each.is_assigned and is_sibling(pod, each) else None
            for each in (old, new)
        )
        wanted = {found.workload.selector for found in self._dependencies(pod)}
        return hint(before != after and not wanted.isdisjoint((before, after)))

    def _after_topology_change(self, pod: Pod, old: Unstructured | None, new: Unstructured | None) -> QueueingHint:
        obj = new or old
        used = obj is not None and obj.name == self.args.network_topology_name
        return hint(used and is_other_spec(old, new))

    def sign(self, pod: Pod) -> Hashable:
        return pod.labels.get(GROUP), pod.labels.get(WORKLOAD)

    def reads(self, pod: Pod) -> Collection[access.Dependency]:
        if not pod.labels.get(GROUP):
            return ()
        return (Reads.NODE, Reads.PODS, self._version) if self._dependencies(pod) else (self._version,)


@lru_cache(maxsize=1024)
def pods_of(group: str, workload: str) -> PodSelector:
    return PodSelector(None, selector_from_labels({GROUP: group, WORKLOAD: workload}))


def is_sibling(pod: Pod, other: Pod) -> bool:
    return other.labels.get(GROUP) == pod.labels.get(GROUP)


def after_node_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a node is deleted: pods that were too far away may be gone with it."""
    return hint(old is None or new is None or place_of(old.labels) != place_of(new.labels))


def after_group_change(pod: Pod, old: Unstructured | None, new: Unstructured | None) -> QueueingHint:
    obj = new or old
    return hint(obj is not None and obj.name == pod.labels.get(GROUP) and is_other_spec(old, new))


def is_other_spec(old: Unstructured | None, new: Unstructured | None) -> bool:
    """Return whether the spec has changed; a new status helps no pod."""
    return old is None or new is None or bool(old.get("spec") != new.get("spec"))


def hint(may_help: bool) -> QueueingHint:
    return QueueingHint.QUEUE if may_help else QueueingHint.SKIP
