"""TaintToleration: reject nodes with a taint that the pod does not tolerate, or score them lower.

Follows pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from moorage.api.kubectl import kubectl
from moorage.api.meta import key_of
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES
from moorage.api.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    find_untolerated,
    tolerates,
)
from moorage.framework.access import Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, POD, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.framework.hot import WholeTableFilterPlugin, WholeTableScorePlugin
from moorage.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusals, TaintClass
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin
from moorage.framework.points import PreScorePlugin
from moorage.framework.status import Code, Normalization, Status

REASON = "node(s) had untolerated taint(s)"
HARD_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)
TOLERATIONS = "TaintToleration.prefer"
_FEW = 16
"""More tolerations are known by a short key: signatures and columns outlive pods."""

_REFUSED = Status.unresolvable(REASON)


class TaintToleration(WholeTableFilterPlugin, PreScorePlugin, WholeTableScorePlugin, ReusablePlugin, ExplainingPlugin):
    name = "TaintToleration"
    few_signs = True
    normalization = Normalization.REVERSED

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        return _REFUSED if node.taints and has_untolerated(node.taints, pod.spec.tolerations) else None

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        tolerations = pod.spec.tolerations

        def compute(some: Nodes) -> BoolArray:
            return some.by_taints(lambda cls: has_untolerated(cls.taints, tolerations))

        refused = nodes.node_column((self.name, _short(tolerations)), compute)
        if not np.count_nonzero(refused):
            return None
        return nodes.refuse(refused, REASON, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        state.write(TOLERATIONS, soft_tolerations(pod))
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return count_intolerable(node.taints, _soft_tolerations(state, pod)) if node.taints else 0

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> int | None:
        if not any(has_soft(cls) for cls in nodes.columns.taints.classes):
            return 0
        tolerations = _soft_tolerations(state, pod)

        def compute(some: Nodes) -> IntArray:
            return some.by_taints(lambda cls: count_intolerable(cls.taints, tolerations)).astype(np.int64)

        out[:] = nodes.node_column((TOLERATIONS, _short(tolerations)), compute)
        return None

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        for taint in node.taints:
            if has_untolerated((taint,), pod.spec.tolerations):
                yield Detail(f"taint {taint}")

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        bad = [taint for taint in node.taints if has_untolerated((taint,), pod.spec.tolerations)]
        if not bad:
            return
        names = " and ".join(map(str, bad))

        def tolerate(given: Pod) -> Pod:
            tolerations = (*given.spec.tolerations, *map(_toleration, bad))
            return replace(given, spec=replace(given.spec, tolerations=tolerations))

        yield Proposal(f"tolerate {names}", f"tolerate taint {names}", 2 * len(bad), tolerate)
        spec = replace(node.node.spec, taints=tuple(taint for taint in node.taints if taint not in bad))
        change = (NODES, node.node, replace(node.node, spec=spec))
        text = f"remove taint {names} from node {node.name}"
        command = kubectl("taint node", node.name, *(f"{taint}-" for taint in bad))
        yield Proposal(f"untaint {names}", text, 6, changes=(change,), command=command)

    def events_to_register(self) -> Sequence[Registration]:
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        own = ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION)
        return [Registration(node, node_is_tolerated), Registration(own, own_toleration, per_pod=True)]

    def sign(self, pod: Pod) -> Hashable:
        read = [(t.key, t.operator, t.value, t.effect) for t in pod.spec.tolerations]
        return key_of(read) if len(read) > _FEW else tuple(read)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE,)


def _short(tolerations: tuple[Toleration, ...]) -> Hashable:
    return tolerations if len(tolerations) <= _FEW else key_of(tolerations)


def soft_tolerations(pod: Pod) -> tuple[Toleration, ...]:
    """Return the tolerations that can match a taint with effect PreferNoSchedule."""
    return tuple(t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))


def _soft_tolerations(state: CycleState, pod: Pod) -> tuple[Toleration, ...]:
    """Read the pod here if the profile has disabled PreScore."""
    found: tuple[Toleration, ...] | None = state.read(TOLERATIONS, None)
    return soft_tolerations(pod) if found is None else found


def _toleration(taint: Taint) -> Toleration:
    operator = "Equal" if taint.value else "Exists"
    return Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)


def has_soft(cls: TaintClass) -> bool:
    return any(taint.effect == PREFER_NO_SCHEDULE for taint in cls.taints)


def count_intolerable(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int:
    """Return the number of PreferNoSchedule taints that no toleration matches."""
    soft = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
    return sum(not any(tolerates(t, taint) for t in tolerations) for taint in soft)


def has_untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    return find_untolerated(taints, tolerations, HARD_EFFECTS) is not None


def node_is_tolerated(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if the node is new, or is tolerated now and was not before."""
    tolerated = isinstance(new, Node) and not has_untolerated(new.taints, pod.spec.tolerations)
    before = isinstance(old, Node) and not has_untolerated(old.taints, pod.spec.tolerations)
    return QueueingHint.QUEUE if tolerated and not before else QueueingHint.SKIP


def own_toleration(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if the pod's own tolerations have changed; the next attempt finds out which node that helps."""
    own = isinstance(new, Pod) and new.uid == pod.uid
    return QueueingHint.QUEUE if own else QueueingHint.SKIP
