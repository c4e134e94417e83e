"""The extension points of CapacityScheduling. Follows pkg/capacityscheduling/capacity_scheduling.go of
scheduler-plugins.

A pod is rejected if its quota, or one above it, would exceed its max, or if all quotas together would exceed the sum of
their min; preemption may help then. The second check lets a namespace borrow what others leave of their min."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.api.quantity import format_amount, unit_of
from moorage.api.requests import CPU, pod_requests
from moorage.api.resources import PODS, Unstructured
from moorage.contrib.capacity_scheduling.account import Account
from moorage.contrib.capacity_scheduling.claims import QuotaState, claim_of
from moorage.contrib.capacity_scheduling.policy import QuotaPolicy
from moorage.contrib.capacity_scheduling.quotas import DEFINITION, ELASTICQUOTAS, PARENT, Quota
from moorage.contrib.capacity_scheduling.status import StatusWriter
from moorage.contrib.preempting import PreemptingPlugin
from moorage.framework.access import LISTED, Access, Dependency, Kind, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import POD, ActionType, ClusterEvent, EventResource, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, VectorFilterPlugin
from moorage.framework.points import PreFilterPlugin, ReservePlugin
from moorage.framework.preemption import NEEDS
from moorage.framework.status import PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses

STATE = "CapacityScheduling"
EXCEEDED = "global quota max exceeded"
FREES = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN


class CapacityScheduling(PreemptingPlugin, PreFilterPlugin, VectorFilterPlugin, ReservePlugin, ExplainingPlugin):
    name = "CapacityScheduling"
    needs = (*NEEDS, Access(ELASTICQUOTAS, LISTED), Access(ELASTICQUOTAS, ("patch",), "status"))
    definitions = (DEFINITION,)
    replaces = ("DefaultPreemption", "PreemptionToleration")

    def __init__(self, args: Any, handle: Handle) -> None:
        self.account: Account = handle.shared("CapacityScheduling.account", Account)
        self._policy = QuotaPolicy(self.account, handle)
        super().__init__(args, handle, self._policy)
        self._objects = handle.lister(ELASTICQUOTAS)
        handle.on_change(ELASTICQUOTAS, self._quota_changed)
        handle.on_change(PODS, self.account.pod_changed)

    def _quota_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if old is None or new is None or is_other_spec(old, new):
            namespace = (new or old).namespace  # type: ignore[union-attr]
            self.account.set_quota(namespace, self._objects.list(namespace))

    async def run(self) -> None:
        """Keep the status of quotas up to date."""
        if not self._objects.known:
            raise MoorageError(
                "CapacityScheduling: the API server does not serve elasticquotas.scheduling.x-k8s.io, so no "
                "quota holds: apply the definition that `moorage manifests` prints"
            )
        self.account.keep_only(self.handle.lister(PODS).list())
        await StatusWriter(self.account, self.handle).run()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        quota = self.account.quota(pod.namespace)
        if quota is None:
            return Status.skip()
        if quota.problem:
            return Status.unresolvable(quota.problem)
        asked = QuotaState(self.account, claim_of(pod, self.account, self.handle))
        state.write(STATE, asked)
        rejected = f"Pod {pod.key} is rejected in PreFilter because"
        if (exceeded := asked.over_max) is not None:
            return Status.unschedulable(f"{rejected} ElasticQuota {exceeded.namespace} is more than Max")
        if asked.over_sum_of_min:
            return Status.unschedulable(f"{rejected} total ElasticQuota used is more than min")
        return None

    async def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Search for victims among the closest quotas first, and further away only if that does not help."""
        for reach in self._policy.reaches(pod):
            self._policy.reach = reach
            result, status = await super().post_filter(state, pod, statuses)
            if result is None or result.nominated_node:
                break
        if result is not None and result.victims:
            self.account.make_way(pod, result.victims)
        return result, status

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        state.own(STATE).change(added, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        state.own(STATE).change(removed, -1)

    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        return other.namespace in self.account.quotas

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        """Check the quota in dry runs, where pods are added and removed; PreFilter has checked the current cluster."""
        asked: QuotaState = state.read(STATE)
        if asked.over_max is None and not asked.over_sum_of_min:
            return None
        return nodes.refuse(np.ones(len(nodes), dtype=np.bool_), EXCEEDED)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        """Report a quota shortage, which is the same on every node."""
        asked: QuotaState | None = state.read(STATE, None)
        if asked is None:
            return  # the quota cannot be read, and the reason says why
        for limit, name, wanted, free in asked.shortages():
            subject, unit = f"{name} within {limit}", unit_of(name)
            yield Detail(subject, asked=wanted, there=free, missing=wanted - free, unit=unit)

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        """Propose to raise the max of the quota that the pod would exceed."""
        asked: QuotaState | None = state.read(STATE, None)
        quota = asked.over_max if asked is not None else None
        obj = self._objects.get(quota.name, quota.namespace) if quota is not None else None
        if asked is None or quota is None or obj is None:
            return
        needed = asked.max_needed(quota)
        amounts = " and ".join(f"{format_amount(name, amount)} {name}" for name, amount in needed.items())
        text = f"raise the max of ElasticQuota {quota.key} to {amounts}"
        raised = {name: f"{amount}m" if name == CPU else str(amount) for name, amount in needed.items()}
        spec = {**obj.raw["spec"], "max": {**obj.raw["spec"]["max"], **raised}}
        change = (ELASTICQUOTAS, obj, Unstructured({**obj.raw, "spec": spec}))
        yield Proposal(f"raise max of {quota.key}", text, 4, changes=(change,))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.account.reserve(pod)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.account.unreserve(pod)

    def events_to_register(self) -> Sequence[Registration]:
        quotas = EventResource(f"{ELASTICQUOTAS.plural}.{ELASTICQUOTAS.version}.{ELASTICQUOTAS.group}")
        return [
            Registration(ClusterEvent(POD, FREES), self._after_pod_frees),
            Registration(ClusterEvent(quotas, ActionType.ALL), after_quota_change),
        ]

    def _after_pod_frees(self, pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
        """Queue for pods of other quotas too, including nominated ones, unless a quota above this pod is at its max and
        the other pod does not count towards it."""
        path, theirs = self.account.path(pod.namespace), self.account.path(old.namespace)
        counted = old.is_assigned or bool(old.nominated_node_name)
        if not path or not counted or not theirs:
            return QueueingHint.SKIP
        apart = (level for level in path if isinstance(level, Quota) and level not in theirs)
        full = any(quota.over_max_with(pod_requests(pod), {}) for quota in apart)
        return QueueingHint.SKIP if full else QueueingHint.QUEUE

    def sign(self, pod: Pod) -> Hashable:
        return pod.namespace, pod.priority, tuple(sorted(pod_requests(pod).items()))

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.PODS, Kind(ELASTICQUOTAS))


def is_other_spec(old: Unstructured, new: Unstructured) -> bool:
    """Return whether the spec or the parent has changed."""
    before, after = (obj.metadata.annotations.get(PARENT) for obj in (old, new))
    return bool(old.get("spec") != new.get("spec")) or before != after


def after_quota_change(pod: Pod, old: Unstructured | None, new: Unstructured | None) -> QueueingHint:
    """Queue if any namespace may have more min; a new status helps no pod."""
    unchanged = old is not None and new is not None and not is_other_spec(old, new)
    return QueueingHint.SKIP if unchanged else QueueingHint.QUEUE
