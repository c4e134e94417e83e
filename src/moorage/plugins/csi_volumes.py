"""Resolve the volumes of a pod to CSI drivers and volume handles, in order to count volumes per node.

In-tree volumes count for the driver that replaced them. Follows
pkg/scheduler/framework/plugins/nodevolumelimits/csi.go."""

from __future__ import annotations

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod, Volume
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from moorage.framework.handle import Lister
from moorage.plugins import csi_translation as csi
from moorage.plugins.volumes import claim_name, claim_not_found, class_of_claim, foreign_claim

CsiVolume = tuple[str, str]
"""Driver and handle; together they name one volume in the world."""
UNBOUND = "unbound claim "
"""Stands in front of a claim's key as the handle of a volume that does not exist yet."""


class MissingClaim(MoorageError):
    """A claim of the incoming pod does not exist, so no node is feasible until it is created."""


class BadVolume(MoorageError):
    """A volume that cannot be counted; the attempt fails."""


class CsiVolumes:
    """Looks up volumes in the informers' stores."""

    def __init__(self, claims: Lister, volumes: Lister, classes: Lister) -> None:
        self._claims = claims
        self._volumes = volumes
        self._classes = classes

    def of_pod(self, pod: Pod, *, incoming: bool, on_csi_node: bool) -> set[CsiVolume]:
        """Return the volumes of a pod. With `incoming` every claim must exist; missing claims of running pods are
        ignored. With `on_csi_node` in-tree volumes count, because a node with a CSINode has their drivers."""
        found = set()
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name is not None:
                resolved = self._of_claim(pod, volume, name, incoming, on_csi_node)
            else:
                resolved = inline_volume(volume) if on_csi_node else None
            if resolved is not None and all(resolved):
                found.add(resolved)
        return found

    def _of_claim(self, pod: Pod, volume: Volume, name: str, incoming: bool, on_csi_node: bool) -> CsiVolume | None:
        if not name:
            raise BadVolume("PersistentVolumeClaim had no name")
        claim = self._claims.get(name, pod.namespace)
        if claim is None:
            if incoming:
                raise MissingClaim(f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}")
            return None
        foreign = foreign_claim(pod, claim) if volume.ephemeral is not None else ""
        if foreign:
            raise BadVolume(foreign)
        bound = self._volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        return self._unbound(claim, on_csi_node) if bound is None else _persistent(bound, on_csi_node)

    def _unbound(self, claim: PersistentVolumeClaim, on_csi_node: bool) -> CsiVolume | None:
        """Return the volume that the claim's class will provision; None if the class is unknown."""
        storage_class = self._classes.get(class_of_claim(claim))
        if storage_class is None:
            return None
        plugin = csi.BY_NAME.get(storage_class.provisioner)
        if plugin is None:
            return storage_class.provisioner, UNBOUND + claim.key
        return (plugin.driver, UNBOUND + claim.key) if plugin.migrated and on_csi_node else None

    def of_attachment(self, attachment: VolumeAttachment) -> CsiVolume | None:
        """Return the volume of an attachment; None if it is not a CSI volume or no longer exists."""
        name = attachment.spec.source.persistent_volume_name
        volume = self._volumes.get(name) if name is not None and attachment.spec.attacher else None
        if volume is None or volume.spec.csi is None:
            return None
        return attachment.spec.attacher, volume.spec.csi.volume_handle


def inline_volume(volume: Volume) -> CsiVolume | None:
    """Return the CSI volume for an in-tree volume in a pod's spec; None for all others."""
    plugin = csi.plugin_of_inline(volume)
    if plugin is None or not plugin.migrated:
        return None
    try:
        return plugin.driver, csi.inline_handle(plugin, volume)
    except csi.TranslationError as error:
        raise BadVolume(f"converting volume({volume.name}) from inline to csi: {error}") from error


def _persistent(volume: PersistentVolume, on_csi_node: bool) -> CsiVolume | None:
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    plugin = csi.plugin_of(volume)
    if plugin is None or not plugin.migrated or not on_csi_node:
        return None
    try:
        return plugin.driver, csi.volume_handle(plugin, volume)
    except csi.TranslationError:
        return None  # as upstream: a running pod's odd volume must not stop others
