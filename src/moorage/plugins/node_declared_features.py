"""NodeDeclaredFeatures: a pod that needs a kubelet feature runs only on nodes that declare it (KEP-5328).

Follows pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.access import Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, POD, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import BoolArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, ReusablePlugin
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import Code, Status

REASON = "node(s) didn't match Pod's required features"
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USERNS = "UserNamespacesHostNetworkSupport"
REQUIRED = "NodeDeclaredFeatures"

_REFUSED = Status.unresolvable(REASON)


class NodeDeclaredFeatures(PreFilterPlugin, WholeTableFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "NodeDeclaredFeatures"
    few_signs = True

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        features = required_features(pod)
        if not features:
            return Status.skip()
        state.write(REQUIRED, features)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        features: frozenset[str] = state.read(REQUIRED)
        return None if features.issubset(node.node.status.declared_features) else _REFUSED

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        features: frozenset[str] = state.read(REQUIRED)

        def compute(some: Nodes) -> BoolArray:
            declared = (node.node.status.declared_features for node in some)
            return np.array([features.issubset(names) for names in declared], dtype=np.bool_)

        fits = nodes.node_column(("NodeDeclaredFeatures", features), compute)
        return nodes.refuse(~fits, REASON, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        features: frozenset[str] = state.read(REQUIRED)
        for feature in sorted(features.difference(node.node.status.declared_features)):
            yield Detail(f"feature {feature}", there="not declared")

    def events_to_register(self) -> Sequence[Registration]:
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE)
        own = ClusterEvent(POD, ActionType.UPDATE)
        return [Registration(node, node_declares_others), Registration(own, own_needs_changed, per_pod=True)]

    def sign(self, pod: Pod) -> Hashable:
        return required_features(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE,)


def required_features(pod: Pod) -> frozenset[str]:
    """Return the features that kube-scheduler infers from a pod's spec."""
    spec = pod.spec
    features = set()
    if any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    ):
        features.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        features.add(HOST_NETWORK_USERNS)
    return frozenset(features)


def node_declares_others(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if the node is new or its declared features have changed."""
    same = (
        isinstance(old, Node) and isinstance(new, Node) and old.status.declared_features == new.status.declared_features
    )
    return QueueingHint.SKIP if same else QueueingHint.QUEUE


def own_needs_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if the features that the pod needs have changed."""
    if not isinstance(new, Pod) or new.uid != pod.uid:
        return QueueingHint.SKIP
    same = isinstance(old, Pod) and required_features(old) == required_features(new)
    return QueueingHint.SKIP if same else QueueingHint.QUEUE
