"""VolumeBinding: a node must be able to access the pod's bound volumes, and to provide a volume for every other claim.

Follows pkg/scheduler/framework/plugins/volumebinding/volume_binding.go."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Self

import msgspec
import numpy as np

from moorage.api import quantity
from moorage.api.errors import ApiError, TransportError
from moorage.api.meta import Int64
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid
from moorage.api.resource_weights import UtilizationShapePoint, validate_shape
from moorage.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from moorage.api.storage import PersistentVolumeClaim
from moorage.framework.access import LISTED, Access, Dependency, Kind, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import Registration
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableScorePlugin
from moorage.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, ReusablePlugin, VectorFilterPlugin
from moorage.framework.points import PreBindPlugin, PreFilterPlugin, PreScorePlugin, ReservePlugin
from moorage.framework.status import PreBindPreFlight, Status
from moorage.plugins.volume_binding import hints, reach, scoring
from moorage.plugins.volume_binding.binder import Binder, BindingFailed, Booking
from moorage.plugins.volume_binding.claims import BadClass, ClassVolumes, PodClaims, sort_claims, why_unusable
from moorage.plugins.volume_binding.explaining import ClaimFacts, Explainer
from moorage.plugins.volume_binding.finding import Finder
from moorage.plugins.volumes import SKIP, claim_names, class_of_claim, is_fully_bound, missing_claims, signature

REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
CLAIMS = "VolumeBinding.claims"
BOOKING = "VolumeBinding.booking"


class VolumeBindingArgs(PluginArgs):
    """The bind timeout, and the score as a function of storage utilization."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def completed(self, context: ArgsContext) -> Self:
        if context.feature_gate("StorageCapacityScoring") and not self.shape:
            return msgspec.structs.replace(self, shape=DEFAULT_STORAGE_SHAPE)
        return self

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            yield invalid(child(path, "bindTimeoutSeconds"), self.bind_timeout_seconds, detail)
        if context.feature_gate("StorageCapacityScoring"):
            yield from validate_shape(self.shape or (), child(path, "shape"))
        elif self.shape is not None:
            detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            yield invalid(child(path, "shape"), msgspec.to_builtins(self.shape), detail)


class VolumeBinding(
    PreFilterPlugin,
    VectorFilterPlugin,
    PreScorePlugin,
    WholeTableScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    ReusablePlugin,
    ExplainingPlugin,
):
    name = "VolumeBinding"
    few_signs = True
    Args = VolumeBindingArgs
    needs = (
        Access(PERSISTENT_VOLUME_CLAIMS, (*LISTED, "patch")),
        Access(PERSISTENT_VOLUMES, (*LISTED, "patch")),
        Access(STORAGE_CLASSES, LISTED),
        Access(CSI_NODES, LISTED),
        Access(CSI_DRIVERS, LISTED),
        Access(CSI_STORAGE_CAPACITIES, LISTED),
        Access(PODS, LISTED),
    )

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._shape = args.shape or ()
        """Empty unless the gate StorageCapacityScoring is on."""
        self._claims = handle.lister(PERSISTENT_VOLUME_CLAIMS)
        self._classes = handle.lister(STORAGE_CLASSES)
        self._assumed_claims = handle.assume_cache(PERSISTENT_VOLUME_CLAIMS)
        self._class_volumes = ClassVolumes(handle)
        self._finder = Finder(handle)
        self._explainer = Explainer(handle, self._finder)
        self._binder = Binder(handle, float(args.bind_timeout_seconds))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Reject the pod unless every claim exists and is bound, or waits for its first consumer."""
        if not has_claims(pod):
            return SKIP
        unusable = why_unusable(pod, self._claims)
        if unusable:
            return Status.unresolvable(unusable)
        try:
            claims = self._sorted(pod)
        except BadClass as error:
            return Status.error(str(error), cause=error)
        if claims.immediate:
            return Status.unresolvable(REASON_IMMEDIATE)
        state.write(CLAIMS, claims)
        return None

    def _sorted(self, pod: Pod) -> PodClaims:
        return sort_claims(pod, self._assumed_claims, self._class_volumes, self._classes)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        return self._finder.find(state.read(CLAIMS), nodes).refusals()

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Skip only without a shape. A pod without claims scores 0 on every node, as upstream."""
        return None if self._shape else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        out: IntArray = np.zeros(1, dtype=np.int64)
        answer = self.score_into(state, pod, node.alone(), out)
        return int(out[0]) if answer is None else answer

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> int | None:
        """Score by the chosen existing volumes if there are any, otherwise by the capacity left for provisioning."""
        if not has_claims(pod) or not self._shape:
            return 0
        claims = self._known(state, pod)
        if not claims.delayed:
            return 0
        found = self._finder.find(claims, nodes)
        out[:] = scoring.score_nodes(self._shape, found, lambda claim: self._published(claim, nodes))
        return None

    def _published(self, claim: PersistentVolumeClaim, nodes: Nodes) -> Iterator[tuple[BoolArray, int]]:
        """Return the nodes and bytes of each published capacity that is large enough for the claim. A capacity without
        bytes counts as used up; kube-scheduler crashes on it."""
        storage_class = self._classes.get(class_of_claim(claim))
        found = self._finder.capacities(claim, storage_class) if storage_class is not None else None
        for each in found or ():
            yield reach.has_capacity(nodes, each), quantity.value(each.capacity or 0)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserve the volumes of the claims on the chosen node; do nothing if all claims are bound."""
        if not pod.spec.volumes:
            return None
        claims = self._known(state, pod)
        if not claims.delayed:
            return None
        node = self.handle.node(node_name)
        if node is None:
            return Status.error(f'node "{node_name}" is gone')
        found = self._finder.find(claims, node.alone())
        objection = found.objection(0)
        if objection:
            return Status.error(f'node "{node_name}": {objection}')
        booking = Booking(node_name)
        state.write(BOOKING, booking)
        self._binder.book(found.plan(0), booking)
        return None

    def _known(self, state: CycleState, pod: Pod) -> PodClaims:
        """Return the result of PreFilter, which does not run if an earlier answer for a similar pod is reused."""
        if not has_claims(pod):
            return PodClaims()
        claims: PodClaims | None = state.read(CLAIMS, None)
        return self._sorted(pod) if claims is None else claims

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        booking: Booking | None = state.read(BOOKING, None)
        if booking is not None:
            self._binder.release(booking)
            state.delete(BOOKING)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreBindPreFlight | Status | None:
        return PreBindPreFlight(allow_parallel=True) if BOOKING in state else SKIP

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Bind the volumes. After any failure the pod is requeued, and Unreserve undoes the reservation."""
        try:
            await self._binder.bind(pod, state.read(BOOKING))
        except (BindingFailed, ApiError, TransportError) as error:
            return Status.error(str(error), cause=error)
        return None

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        claims: PodClaims | None = state.read(CLAIMS, None)
        if claims is not None:
            yield from self._explainer.explain(claims, node)
            return
        yield from missing_claims(pod, self._claims)
        for claim in self._sorted(pod).immediate:
            yield Detail(f"claim {claim.key} of class {class_of_claim(claim)}", there="not bound")

    def facts(self, state: CycleState, pod: Pod, nodes: Nodes) -> Iterator[str]:
        return ClaimFacts(self.handle).of(pod, nodes)

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def sign(self, pod: Pod) -> Hashable:
        return signature(pod)

    def reads(self, pod: Pod) -> Collection[Dependency] | None:
        """Allow reuse for bound claims only: volumes for other claims are reserved as soon as they are found."""
        if not has_claims(pod):
            return ()
        claims = [self._claims.get(name, pod.namespace) for name, _ in claim_names(pod)]
        if not all(claim is not None and is_fully_bound(claim) for claim in claims):
            return None
        kinds = (need.resource for need in self.needs if need.resource is not PODS)
        return (Reads.NODE, *map(Kind, kinds))


def has_claims(pod: Pod) -> bool:
    return next(claim_names(pod), None) is not None


DEFAULT_STORAGE_SHAPE = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)
"""Prefer little used storage: the shape of the gate StorageCapacityScoring."""
