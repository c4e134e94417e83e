"""Reserve volumes for a placed pod, write the reservations to the API server, and wait until they are bound.

    book ──▶ the caches show a volume with our claim, a claim with our node      release ──▶ they no longer do
    bind ──▶ the same is written, guarded by version ──▶ every second: is all of it bound, or undone?

Follows pkg/scheduler/framework/plugins/volumebinding/binder.go. Writes are not undone if a later step fails: the next
attempt finds them and continues from there. The controllers that bind and provision volumes are not part of the
scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from moorage.api.core import ObjectReference
from moorage.api.errors import MoorageError
from moorage.api.meta import Object
from moorage.api.node_selectors import compile_node_selector
from moorage.api.pod import Pod
from moorage.api.resources import CSI_NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.framework.handle import AssumeCache, Handle
from moorage.framework.nodes import NodeView
from moorage.framework.ports import PatchType
from moorage.plugins import csi_translation as csi
from moorage.plugins.volume_binding.finding import VolumePlan
from moorage.plugins.volume_binding.matching import is_bound_to
from moorage.plugins.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, is_fully_bound, not_found

POLL_SECONDS = 1.0
T = TypeVar("T", bound=Object)


class BindingFailed(MoorageError):
    """The volumes will not be bound as reserved; the pod must be scheduled again."""


@dataclass(slots=True)
class Booking:
    """The reservations of one pod on its node. It holds the assumed objects, and after a write the API server's
    version."""

    node: str
    volumes: list[tuple[PersistentVolume, PersistentVolumeClaim]] = field(default_factory=list)
    claims: list[PersistentVolumeClaim] = field(default_factory=list)
    """To be provisioned."""
    assumed: list[tuple[AssumeCache, Object]] = field(default_factory=list)
    """What has to be restored when the booking is released."""


class Binder:
    def __init__(self, handle: Handle, timeout: float) -> None:
        self._handle = handle
        self._timeout = timeout
        """Seconds that binding may take."""
        self._volumes = handle.lister(PERSISTENT_VOLUMES)
        self._claims = handle.lister(PERSISTENT_VOLUME_CLAIMS)
        self._csi_nodes = handle.lister(CSI_NODES)
        self._pods = handle.lister(PODS)
        self._assumed_volumes = handle.assume_cache(PERSISTENT_VOLUMES)
        self._assumed_claims = handle.assume_cache(PERSISTENT_VOLUME_CLAIMS)

    def book(self, plan: VolumePlan, booking: Booking) -> None:
        """Assume the plan. If this raises, `release` undoes what was assumed so far."""
        for claim, volume in plan.static:
            bound = bound_to(volume, claim)
            if bound != volume:
                self._assume(booking, self._assumed_volumes, bound)
            booking.volumes.append((bound, claim))
        for claim in plan.dynamic:
            selected = with_annotation(claim, SELECTED_NODE, booking.node)
            self._assume(booking, self._assumed_claims, selected)
            booking.claims.append(selected)

    def _assume(self, booking: Booking, cache: AssumeCache, obj: Object) -> None:
        cache.assume(obj)
        booking.assumed.append((cache, obj))

    def release(self, booking: Booking) -> None:
        """Undo what this reservation assumed; changes that another pod assumed on top of it stay."""
        for cache, obj in booking.assumed:
            if cache.get(obj.key) is obj:
                cache.restore(obj.key)
        booking.assumed.clear()

    async def bind(self, pod: Pod, booking: Booking) -> None:
        """Write the reservations and wait. Raises BindingFailed, or the error of a write."""
        await self._write(booking)
        clock = self._handle.clock
        deadline = clock.now() + self._timeout
        while (remaining := deadline - clock.now()) > 0:
            await clock.sleep(min(POLL_SECONDS, remaining))
            if clock.now() < deadline and self._is_done(pod, booking):
                return
        raise BindingFailed("binding volumes: context deadline exceeded")

    async def _write(self, booking: Booking) -> None:
        patch = self._handle.client.patch
        for index, (volume, claim) in enumerate(booking.volumes):
            written = await patch(PERSISTENT_VOLUMES, volume.name, volume_patch(volume), patch_type=PatchType.MERGE)
            booking.volumes[index] = (written, claim)
        for index, claim in enumerate(booking.claims):
            booking.claims[index] = await patch(
                PERSISTENT_VOLUME_CLAIMS,
                claim.name,
                guarded(claim, SELECTED_NODE),
                namespace=claim.namespace,
                patch_type=PatchType.MERGE,
            )

    def _is_done(self, pod: Pod, booking: Booking) -> bool:
        """Return whether everything is bound, according to the informers."""
        try:
            node = self._handle.node(booking.node)
            if node is None:
                missing = not_found("node", booking.node)
                raise BindingFailed(f'failed to get node "{booking.node}": {missing}')
            current = self._pods.get(pod.name, pod.namespace)
            if current is None or current.uid != pod.uid:
                raise BindingFailed(f"pod does not exist any more: {not_found('pod', pod.name)}")
            return all(self._is_bound(*binding, node) for binding in booking.volumes) and all(
                self._is_provisioned(claim, node) for claim in booking.claims
            )
        except BindingFailed as failed:
            raise BindingFailed(f"binding volumes: {failed}") from failed

    def _is_bound(self, written: PersistentVolume, claim: PersistentVolumeClaim, node: NodeView) -> bool:
        volume = self._volumes.get(written.name)
        current = self._claims.get(claim.name, claim.namespace)
        if volume is None:
            raise BindingFailed(f"failed to check binding: {not_found('persistentvolume', written.name)}")
        if current is None:
            raise BindingFailed(f"failed to check binding: {not_found('persistentvolumeclaim', claim.name)}")
        if is_older(volume, written):
            return False
        self._check_reach(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailed(f'ClaimRef got reset for pv "{volume.name}"')
        return is_fully_bound(current)

    def _is_provisioned(self, written: PersistentVolumeClaim, node: NodeView) -> bool:
        claim = self._claims.get(written.name, written.namespace)
        if claim is None:
            missing = not_found("persistentvolumeclaim", written.name)
            raise BindingFailed(f"failed to check provisioning pvc: {missing}")
        if is_older(claim, written):
            return False
        if claim.annotations.get(SELECTED_NODE) != node.name:
            # A provisioner that fails takes the annotation away: please choose another node.
            raise BindingFailed(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                return False  # its event is on the way; if the volume is gone, the claim will lose it
            self._check_reach(volume, node)
        return is_fully_bound(claim)

    def _check_reach(self, volume: PersistentVolume, node: NodeView) -> None:
        try:
            wanted = csi.affinity_on(self._csi_nodes.get(node.name), volume)
        except csi.TranslationError as error:
            raise BindingFailed(f"failed to translate pv to csi: could not translate pv: {error}") from error
        if wanted is not None and not compile_node_selector(wanted).matches(node.labels, ""):
            raise BindingFailed(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
            )


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume with the claim set; the same object if it is set already. A binding that no user requested is
    marked, so that controllers may undo it."""
    reference = volume.spec.claim_ref
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in volume.annotations:
        volume = with_annotation(volume, BOUND_BY_CONTROLLER, "yes")
    if reference is not None and reference.uid == claim.uid:
        return volume
    wanted = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.resource_version,
    )
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=wanted))


def with_annotation(obj: T, key: str, value: str) -> T:
    metadata = msgspec.structs.replace(obj.metadata, annotations={**obj.annotations, key: value})
    return msgspec.structs.replace(obj, metadata=metadata)


def volume_patch(volume: PersistentVolume) -> dict[str, Any]:
    reference = msgspec.to_builtins(volume.spec.claim_ref)
    return {**guarded(volume, BOUND_BY_CONTROLLER), "spec": {"claimRef": reference}}


def guarded(obj: Object, annotation: str) -> dict[str, Any]:
    """Return a patch of one annotation that fails if the object has changed since it was checked."""
    metadata: dict[str, Any] = {"uid": obj.uid, "resourceVersion": obj.resource_version}
    marks: Mapping[str, str] = obj.annotations
    if annotation in marks:
        metadata["annotations"] = {annotation: marks[annotation]}
    return {"metadata": metadata}


def is_older(obj: Object, other: Object) -> bool:
    """Compare versions as numbers. If they are not numbers, the delivered object counts as current."""
    version, wanted = obj.resource_version, other.resource_version
    return version.isdecimal() and wanted.isdecimal() and int(version) < int(wanted)
