"""The plugin. A pod is refused when its quota would go beyond its max, or when all quotas together would go
beyond the sum of their min; then preemption may help. The second check lets a namespace borrow what others
leave of their min."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from mooring.api.errors import MooringError
from mooring.api.pod import Pod
from mooring.api.requests import pod_requests
from mooring.api.resources import PODS, Unstructured
from mooring.contrib.capacity_scheduling.claims import QuotaState, claim_of
from mooring.contrib.capacity_scheduling.definition import DEFINITION
from mooring.contrib.capacity_scheduling.policy import QuotaPolicy
from mooring.contrib.capacity_scheduling.quotas import ELASTICQUOTAS, Account
from mooring.contrib.capacity_scheduling.status import StatusWriter
from mooring.contrib.preempting import PreemptingPlugin
from mooring.framework.access import LISTED, Access, Dependency, Kind, Reads
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import POD, ActionType, ClusterEvent, EventResource, QueueingHint, Registration
from mooring.framework.explaining import Detail, ExplainingPlugin, unit_of
from mooring.framework.handle import Handle
from mooring.framework.nodes import Nodes, NodeView, Refusals
from mooring.framework.points import PreFilterPlugin, ReservePlugin
from mooring.framework.preemption import NEEDS
from mooring.framework.status import PostFilterResult, Status
from mooring.framework.statuses import NodeStatuses
from mooring.framework.vectorized import VectorFilterPlugin

STATE = "CapacityScheduling"
EXCEEDED = "global quota max exceeded"
FREES = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN


class CapacityScheduling(
    PreemptingPlugin, PreFilterPlugin, VectorFilterPlugin, ReservePlugin, ExplainingPlugin
):
    name = "CapacityScheduling"
    needs = (*NEEDS, Access(ELASTICQUOTAS, LISTED), Access(ELASTICQUOTAS, ("patch",), "status"))
    definitions = (DEFINITION,)
    replaces = ("DefaultPreemption", "PreemptionToleration")

    def __init__(self, args: Any, handle: Handle) -> None:
        self.account: Account = handle.shared("CapacityScheduling.account", Account)
        super().__init__(args, handle, QuotaPolicy(self.account, handle))
        self._objects = handle.lister(ELASTICQUOTAS)
        handle.on_change(ELASTICQUOTAS, self._quota_changed)
        handle.on_change(PODS, self.account.pod_changed)

    def _quota_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if old is None or new is None or is_other_spec(old, new):
            namespace = (new or old).namespace  # type: ignore[union-attr]
            self.account.set_quota(namespace, self._objects.list(namespace))

    async def run(self) -> None:
        """Keeps the status of quotas up to date."""
        if not self._objects.known:
            raise MooringError(
                "CapacityScheduling: the API server does not serve elasticquotas.scheduling.x-k8s.io, so no "
                "quota holds: apply the definition that `mooring manifests` prints"
            )
        self.account.keep_only(self.handle.lister(PODS).list())
        await StatusWriter(self.account, self.handle).run()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        quota = self.account.quotas.get(pod.namespace)
        if quota is None:
            return Status.skip()
        if quota.problem:
            return Status.unresolvable(quota.problem)
        claim = claim_of(pod, self.account, self.handle)
        asked = QuotaState(self.account, quota, claim)
        state.write(STATE, asked)
        rejected = f"Pod {pod.key} is rejected in PreFilter because"
        if any(asked.beyond_max()):
            return Status.unschedulable(f"{rejected} ElasticQuota {pod.namespace} is more than Max")
        if any(asked.beyond_sum_of_min()):
            return Status.unschedulable(f"{rejected} total ElasticQuota used is more than min")
        return None

    async def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        result, status = await super().post_filter(state, pod, statuses)
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
        """PreFilter has answered for the cluster as it is; this is for dry runs, where pods come and go."""
        asked: QuotaState = state.read(STATE)
        if not (any(asked.beyond_max()) or any(asked.beyond_sum_of_min())):
            return None
        return nodes.refuse(np.ones(len(nodes), dtype=np.bool_), EXCEEDED)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        """A quota is short on every node alike."""
        asked: QuotaState | None = state.read(STATE, None)
        if asked is None:
            return  # the quota cannot be read, and the reason says why
        limits = {
            f"max of ElasticQuota {asked.quota.namespace}/{asked.quota.name}": asked.beyond_max(),
            "the sum of min of all ElasticQuotas": asked.beyond_sum_of_min(),
        }
        for limit, found in limits.items():
            for name, wanted, free in sorted(found):
                subject, unit = f"{name} within {limit}", unit_of(name)
                yield Detail(subject, asked=wanted, there=free, missing=wanted - free, unit=unit)

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
        """Pods of other quotas count unless the pod is above its own max, nominated ones as well."""
        quota = self.account.quotas.get(pod.namespace)
        counted = old.is_assigned or bool(old.nominated_node_name)
        if quota is None or not counted or old.namespace not in self.account.quotas:
            return QueueingHint.SKIP
        above = old.namespace != pod.namespace and any(quota.beyond_max(pod_requests(pod), {}))
        return QueueingHint.SKIP if above else QueueingHint.QUEUE

    def sign(self, pod: Pod) -> Hashable:
        return pod.namespace, pod.priority, tuple(sorted(pod_requests(pod).items()))

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.PODS, Kind(ELASTICQUOTAS))


def is_other_spec(old: Unstructured, new: Unstructured) -> bool:
    return bool(old.get("spec") != new.get("spec"))


def after_quota_change(pod: Pod, old: Unstructured | None, new: Unstructured | None) -> QueueingHint:
    """More min in any namespace may help; a new status helps no pod."""
    unchanged = old is not None and new is not None and not is_other_spec(old, new)
    return QueueingHint.SKIP if unchanged else QueueingHint.QUEUE
