"""Helpers of the volume plugins: the claims of a pod, their classes, signatures, and hints about own claims."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import msgspec

from moorage.api.meta import key_of
from moorage.api.pod import Pod, Volume, controller_of
from moorage.api.recent import Recent
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.framework.events import QueueingHint
from moorage.framework.handle import Lister
from moorage.framework.optional import Detail
from moorage.framework.status import Status

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
SKIP = Status.skip()

_READ = (
    "persistent_volume_claim", "ephemeral", "csi", "gce_persistent_disk", "aws_elastic_block_store", "iscsi",
    "rbd", "azure_disk", "azure_file", "cinder", "vsphere_volume", "portworx_volume",
)  # fmt: skip
"""The sources that decide something; config maps, tokens and the like do not."""


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the claim of a volume; None if it has none. The claim of a generic ephemeral volume is named after pod and
    volume."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def claim_names(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Return the pod's claims in order, each with whether it belongs to an ephemeral volume."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield name, volume.persistent_volume_claim is None


def named_claims(pod: Pod) -> list[str]:
    """Return the claims that the pod names itself, without those of ephemeral volumes."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def foreign_claim(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Return why the claim of an ephemeral volume cannot be used: another pod owns it. Empty if it can."""
    owner = controller_of(claim)
    if owner is not None and owner.uid == pod.uid and claim.namespace == pod.namespace:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the storage class of the claim; the old annotation wins. Empty if there is none."""
    beta = claim.annotations.get(BETA_CLASS)
    return beta if beta is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    beta = volume.annotations.get(BETA_CLASS)
    return beta if beta is not None else volume.spec.storage_class_name


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim is bound and its controller has completed the binding."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations


def not_found(kind: str, name: str) -> str:
    """Return the message of a lister for a missing object; `kind` is singular, with its group."""
    return f'{kind} "{name}" not found'


def claim_not_found(name: str) -> str:
    return not_found("persistentvolumeclaim", name)


def missing_claims(pod: Pod, claims: Lister) -> Iterator[Detail]:
    """Return the claims of the pod that do not exist, for `explain`."""
    for name in dict.fromkeys(name for name, _ in claim_names(pod)):
        if claims.get(name, pod.namespace) is None:
            yield Detail(f"claim {pod.namespace}/{name}", there="not found")


def signature(pod: Pod) -> Hashable:
    """Return everything that volume plugins read of a pod. Claims belong to a namespace, and those of ephemeral volumes
    to one pod."""
    if not pod.spec.volumes:
        return ()
    known, found = _latest.get(_PLACE) or (None, ())
    if known is not pod:
        found = _signature(pod)
        _latest.put(_PLACE, (pod, found))
    return found


_PLACE = "latest"
_latest: Recent[str, tuple[Pod, Hashable]] = Recent(1)
"""The pod that was signed last: all volume plugins ask about it in turn, and it may have thousands of volumes."""


def _signature(pod: Pod) -> Hashable:
    found = [volume for volume in pod.spec.volumes if _is_read(volume)]
    if not found:
        return ()
    own = (pod.name, pod.uid) if any(volume.ephemeral is not None for volume in found) else ()
    return (pod.namespace, own, key_of([_nameless(volume) for volume in found]))


def _is_read(volume: Volume) -> bool:
    return any(getattr(volume, source) is not None for source in _READ)


def _nameless(volume: Volume) -> Volume:
    """Drop the volume's name, which matters only for the claim of an ephemeral volume."""
    return volume if volume.ephemeral is not None else msgspec.structs.replace(volume, name="")


def own_claim(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a claim of the pod was added or changed, including those of ephemeral volumes."""
    return _is_among(new, pod, (name for name, _ in claim_names(pod)))


def own_named_claim(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a claim that the pod names was added or changed."""
    return _is_among(new, pod, named_claims(pod))


def _is_among(claim: Any, pod: Pod, names: Any) -> QueueingHint:
    own = isinstance(claim, PersistentVolumeClaim) and claim.namespace == pod.namespace and claim.name in names
    return QueueingHint.QUEUE if own else QueueingHint.SKIP
