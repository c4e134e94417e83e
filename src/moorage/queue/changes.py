"""What an update changed, as far as scheduling cares: the actions that an event carries.

One extractor per action, in a table. Whom an event wakes is the queue's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from moorage.api.errors import QuantityError
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import node_allocatable, pod_requests
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.framework.events import ActionType

NOTHING = ActionType(0)


def node_changes(old: Node, new: Node) -> ActionType:
    """The actions of a node update; 0 for one that no plugin could care about, such as a heartbeat."""
    found = NOTHING
    for action, changed in _NODE_EXTRACTORS.items():
        if changed(old, new):
            found |= action
    return found


def pod_changes(old: Pod, new: Pod, behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> ActionType:
    """The actions of a pod update; UPDATE_OTHER when none of the narrower ones applies."""
    found = NOTHING
    for action in narrow_pod_changes(old, new, behaviour):
        found |= action
    return found or ActionType.UPDATE_OTHER


def narrow_pod_changes(old: Pod, new: Pod, behaviour: Behaviour) -> Iterator[ActionType]:
    """The narrower actions of a pod update, in kube-scheduler's order."""
    return (action for action, changed in _POD_EXTRACTORS.items() if changed(old, new, behaviour))


def _node_allocatable(old: Node, new: Node) -> bool:
    # The texts first: only they differ in most updates, and 1 and 1000m are the same.
    if old.status.allocatable == new.status.allocatable:
        return False
    return node_allocatable(old) != node_allocatable(new)


def _node_labels(old: Node, new: Node) -> bool:
    return old.metadata.labels != new.metadata.labels


def _node_taints(old: Node, new: Node) -> bool:
    return old.spec.taints != new.spec.taints or old.spec.unschedulable != new.spec.unschedulable


def _node_conditions(old: Node, new: Node) -> bool:
    """Only type and status count: heartbeat times change all the time."""
    return _statuses(old) != _statuses(new)


def _statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _node_annotations(old: Node, new: Node) -> bool:
    return old.metadata.annotations != new.metadata.annotations


def _node_declared_features(old: Node, new: Node) -> bool:
    return old.status.declared_features != new.status.declared_features


def _pod_labels(old: Pod, new: Pod, _: Behaviour) -> bool:
    return old.metadata.labels != new.metadata.labels


def _pod_scale_down(old: Pod, new: Pod, behaviour: Behaviour) -> bool:
    """Some request is smaller or gone; what counts is the effective request, resizes under way included."""
    try:
        before, now = pod_requests(old, behaviour=behaviour), pod_requests(new, behaviour=behaviour)
    except QuantityError:
        return False  # what cannot be read does not get smaller
    return any(name not in now or now[name] < amount for name, amount in before.items())


def _pod_tolerations(old: Pod, new: Pod, _: Behaviour) -> bool:
    return old.spec.tolerations != new.spec.tolerations


def _pod_gates_eliminated(old: Pod, new: Pod, _: Behaviour) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _pod_generated_claims(old: Pod, new: Pod, _: Behaviour) -> bool:
    return old.status.resource_claim_statuses != new.status.resource_claim_statuses


_NODE_EXTRACTORS: dict[ActionType, Callable[[Node, Node], bool]] = {
    ActionType.UPDATE_NODE_ALLOCATABLE: _node_allocatable,
    ActionType.UPDATE_NODE_LABEL: _node_labels,
    ActionType.UPDATE_NODE_TAINT: _node_taints,
    ActionType.UPDATE_NODE_CONDITION: _node_conditions,
    ActionType.UPDATE_NODE_ANNOTATION: _node_annotations,
    ActionType.UPDATE_NODE_DECLARED_FEATURE: _node_declared_features,
}

_POD_EXTRACTORS: dict[ActionType, Callable[[Pod, Pod, Behaviour], bool]] = {
    ActionType.UPDATE_POD_LABEL: _pod_labels,
    ActionType.UPDATE_POD_SCALE_DOWN: _pod_scale_down,
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: _pod_gates_eliminated,
    ActionType.UPDATE_POD_TOLERATION: _pod_tolerations,
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: _pod_generated_claims,
}
