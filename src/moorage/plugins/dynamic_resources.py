"""DynamicResources: devices that pods request with resource claims (KEP-4381).

Devices are not allocated yet. Pods without claims behave as in
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, including the line that they get in their message.
Pods with claims are rejected, so that they never run without their devices."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Self

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, forbidden, invalid
from moorage.api.times import Duration, format_duration
from moorage.framework.access import Dependency
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import Registration
from moorage.framework.hot import WholeTableFilterPlugin, WholeTableScorePlugin
from moorage.framework.nodes import IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import ReusablePlugin
from moorage.framework.points import PostFilterPlugin, PreFilterPlugin
from moorage.framework.status import Code, Normalization, Status
from moorage.framework.statuses import NodeStatuses

REASON_UNSUPPORTED = "allocating devices for resource claims is not supported yet"
REASON_NO_CLAIMS = "no new claims to deallocate"
NOT_FOUND = "not found"
SEEN = "DynamicResources"


class DynamicResourcesArgs(PluginArgs):
    """Timeouts in seconds. A filter_timeout of 0 means no limit; None means that the feature gate is off."""

    filter_timeout: Duration | None = 10.0
    binding_timeout: Duration | None = 600.0

    def completed(self, context: ArgsContext) -> Self:
        return msgspec.structs.replace(
            self,
            filter_timeout=self.filter_timeout if context.feature_gate("DRASchedulerFilterTimeout") else None,
            binding_timeout=self.binding_timeout if _binding_conditions(context) else None,
        )

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        where = child(path, "filterTimeout")
        if not context.feature_gate("DRASchedulerFilterTimeout"):
            if "filterTimeout" in context.written:
                yield forbidden(where, "DRASchedulingFilterTimeout feature gate is disabled")
        elif self.filter_timeout is not None and self.filter_timeout < 0:
            yield invalid(where, format_duration(self.filter_timeout), "must be zero or positive")
        where = child(path, "bindingTimeout")
        if not _binding_conditions(context):
            if "bindingTimeout" in context.written:
                names = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
                yield forbidden(where, f"{names} feature gate is disabled")
        elif self.binding_timeout is not None and self.binding_timeout < 1:
            yield invalid(where, format_duration(self.binding_timeout), "must be at least 1 second")


def _binding_conditions(context: ArgsContext) -> bool:
    gates = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
    return all(map(context.feature_gate, gates))


class DynamicResources(
    PreFilterPlugin, WholeTableFilterPlugin, PostFilterPlugin, WholeTableScorePlugin, ReusablePlugin
):
    name = "DynamicResources"
    few_signs = True
    Args = DynamicResourcesArgs
    normalization = Normalization.DEFAULT

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        state.write(SEEN, True)
        refused = _refusal(pod)
        return Status.skip() if refused is None else refused

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Runs only in a profile that has disabled PreFilter of this plugin."""
        return _refusal(pod)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        if not pod.spec.resource_claims:
            return None
        everywhere = np.ones(len(nodes), dtype=np.bool_)
        return nodes.refuse(everywhere, REASON_UNSUPPORTED, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> Status:
        """Reproduce upstream's message. If another PreFilter plugin rejected the pod as unresolvable, PreFilter of this
        plugin did not run; upstream then fails on the missing state and reports that in the pod's message. Up to 1.36
        it also reported that there was nothing to do."""
        if SEEN not in state:
            return Status.error(NOT_FOUND)
        return Status.unschedulable(*([REASON_NO_CLAIMS] if self.handle.behaviour.reports_no_idle_claims else []))

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 0

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> int:
        return 0

    def events_to_register(self) -> Sequence[Registration]:
        """Return no events: while claims are not supported, no cluster event can help."""
        return ()

    def sign(self, pod: Pod) -> Hashable:
        return None if pod.spec.resource_claims else ()

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return ()


def _refusal(pod: Pod) -> Status | None:
    return Status.unresolvable(REASON_UNSUPPORTED) if pod.spec.resource_claims else None
