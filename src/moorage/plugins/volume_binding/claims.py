"""Sort a pod's claims into bound claims and claims that wait for their first consumer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.api.resources import PERSISTENT_VOLUMES
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.framework.handle import AssumeCache, Handle, Lister
from moorage.plugins.volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_names,
    claim_not_found,
    class_of_claim,
    class_of_volume,
    foreign_claim,
    is_fully_bound,
)

LOST = "Lost"


class BadClass(MoorageError):
    """A storage class without a volume binding mode; the attempt fails."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of one pod, in the order of its volumes; a claim that is mounted twice appears twice."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    """To be bound when a node has been chosen."""
    immediate: tuple[PersistentVolumeClaim, ...] = ()
    """Not bound although another controller should have done so."""
    volumes: Mapping[str, tuple[PersistentVolume, ...]] | None = None
    """Class → its volumes, for the classes of `delayed`."""


def why_unusable(pod: Pod, claims: Lister) -> str:
    """Return why the pod cannot use one of its claims; empty if all are usable."""
    for name, ephemeral in claim_names(pod):
        claim = claims.get(name, pod.namespace)
        if claim is None:
            return _missing(name, ephemeral)
        if claim.status.phase == LOST:
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        foreign = foreign_claim(pod, claim) if ephemeral else ""
        if foreign:
            return foreign
    return ""


def _missing(name: str, ephemeral: bool) -> str:
    if not ephemeral:
        return claim_not_found(name)
    return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'


def sort_claims(pod: Pod, claims: AssumeCache, volumes: ClassVolumes, classes: Lister) -> PodClaims:
    """Return the claims as they are assumed to be, after `why_unusable` has found no problem."""
    bound, delayed, immediate = [], [], []
    for name, _ in claim_names(pod):
        claim: PersistentVolumeClaim | None = claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            continue
        if is_fully_bound(claim):
            bound.append(claim)
        elif waits_for_consumer(claim, classes) and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate.append(claim)
    wanted = {class_of_claim(claim) for claim in delayed}
    by_class = {name: volumes.of_class(name) for name in wanted}
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate), by_class)


def waits_for_consumer(claim: PersistentVolumeClaim, classes: Lister) -> bool:
    """Return whether the claim's class has the mode WaitForFirstConsumer; False for an unknown class."""
    name = class_of_claim(claim)
    found = classes.get(name) if name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise BadClass(f'VolumeBindingMode not set for StorageClass "{name}"')
    return bool(found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


class ClassVolumes:
    """The volumes of a class as they are assumed to be, found by an index."""

    def __init__(self, handle: Handle) -> None:
        self._assumed = handle.assume_cache(PERSISTENT_VOLUMES)
        self._index = handle.object_index(
            "VolumeBinding.classes", PERSISTENT_VOLUMES, lambda volume: (class_of_volume(volume),)
        )

    def of_class(self, name: str) -> tuple[PersistentVolume, ...]:
        """Return the volumes by name, so that equal volumes are always chosen in the same order."""
        stored = sorted(self._index.at(name), key=lambda volume: str(volume.name))
        assumed = (self._assumed.get(volume.key) for volume in stored)
        return tuple(volume for volume in assumed if volume is not None)
