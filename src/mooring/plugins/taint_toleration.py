"""TaintToleration: nodes whose taints the pod does not tolerate are refused, or score lower."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    find_untolerated,
    tolerates,
)
from mooring.framework.access import NODE as NODE_OBJECT
from mooring.framework.access import Reads
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import NODE, POD, ActionType, ClusterEvent, QueueingHint, Registration
from mooring.framework.nodes import IntArray, Nodes, Refusals, TaintClass
from mooring.framework.points import FilterPlugin, PreScorePlugin, ScorePlugin
from mooring.framework.scoring import default_normalize
from mooring.framework.status import Code, Status

REASON = "node(s) had untolerated taint(s)"
HARD_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)
TOLERATIONS = "TaintToleration.prefer"


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin):
    name = "TaintToleration"

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        def refused(cls: TaintClass) -> bool:
            return has_untolerated(cls.taints, pod.spec.tolerations)

        if not any(refused(cls) for cls in nodes.columns.taint_classes()):
            return None
        return nodes.refuse(nodes.by_taints(refused), REASON, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        relevant = tuple(t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
        state.write(TOLERATIONS, relevant)
        return None

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> IntArray:
        tolerations: tuple[Toleration, ...] = state.read(TOLERATIONS)

        def intolerable(cls: TaintClass) -> int:
            soft = (taint for taint in cls.taints if taint.effect == PREFER_NO_SCHEDULE)
            return sum(not any(tolerates(t, taint) for t in tolerations) for taint in soft)

        return nodes.by_taints(intolerable).astype(np.int64)

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> IntArray:
        return default_normalize(scores, reverse=True)

    def events_to_register(self) -> Sequence[Registration]:
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        own = ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION)
        return [Registration(node, node_is_tolerated), Registration(own, own_toleration, per_pod=True)]

    def sign(self, pod: Pod) -> Hashable:
        return tuple((t.key, t.operator, t.value, t.effect) for t in pod.spec.tolerations)

    def reads(self, pod: Pod) -> Collection[Reads]:
        return (NODE_OBJECT,)


def has_untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    return find_untolerated(taints, tolerations, HARD_EFFECTS) is not None


def node_is_tolerated(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue when the node is tolerated now and was not before, or is new."""
    tolerated = isinstance(new, Node) and not has_untolerated(new.taints, pod.spec.tolerations)
    before = isinstance(old, Node) and not has_untolerated(old.taints, pod.spec.tolerations)
    return QueueingHint.QUEUE if tolerated and not before else QueueingHint.SKIP


def own_toleration(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """The pod's own tolerations have changed; which node that helps is for the next attempt to see."""
    own = isinstance(new, Pod) and new.uid == pod.uid
    return QueueingHint.QUEUE if own else QueueingHint.SKIP
