"""Translate in-tree volumes to CSI: plugin, driver, volume handle and topology.

Follows k8s.io/csi-translation-lib. Only the five disk plugins whose migration is always on are translated; Azure Files
and vSphere are known by name only. A volume that cannot be translated raises `TranslationError`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.node import REGION, ZONE, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.pod import Volume
from moorage.api.storage import CSINode, PersistentVolume

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE_DELIMITER = "__"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

_EBS_ID = re.compile(r"vol-[^/]*")
_UNSPECIFIED = "UNSPECIFIED"


class TranslationError(MoorageError):
    """An in-tree volume that has no CSI equivalent."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """One kind of in-tree volume and the CSI driver that replaced it."""

    field: str
    """The attribute of a volume, and of a persistent volume's spec, that holds its source."""
    name: str
    driver: str
    inline_handle: Callable[[Any], str] | None = None
    """Source → handle of an inline volume; None: the scheduler does not count this plugin's volumes."""
    zone_key: str = ""
    """The driver's topology label that takes the place of the zone; empty: topology stays as it is."""

    @property
    def migrated(self) -> bool:
        return self.inline_handle is not None


def _ebs_handle(source: Any) -> str:
    given: str = source.volume_id
    if not given.startswith("aws://"):
        return given
    # aws://<zone>/<id>, with or without the zone.
    found = given.removeprefix("aws://").partition("/")[2].strip("/")
    if not _EBS_ID.fullmatch(found):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({given})"
        )
    return found


def _azure_handle(source: Any) -> str:
    if source.kind is not None and source.kind.lower() != "managed":
        raise TranslationError(f"kind({source.kind}) is not supported in csi migration")
    handle: str = source.disk_uri
    return handle


def _volume_id(source: Any) -> str:
    handle: str = source.volume_id
    return handle


def _gce_handle(source: Any) -> str:
    return _gce_path("zones", _UNSPECIFIED, source.pd_name)


def _gce_path(kind: str, place: str, disk: str) -> str:
    return f"projects/{_UNSPECIFIED}/{kind}/{place}/disks/{disk}"


GCE_PD = InTreePlugin(
    "gce_persistent_disk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", _gce_handle, "topology.gke.io/zone"
)
PLUGINS = (
    GCE_PD,
    InTreePlugin(
        "aws_elastic_block_store", "kubernetes.io/aws-ebs", "ebs.csi.aws.com", _ebs_handle,
        "topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        "cinder", "kubernetes.io/cinder", "cinder.csi.openstack.org", _volume_id,
        "topology.cinder.csi.openstack.org/zone",
    ),
    InTreePlugin("azure_disk", "kubernetes.io/azure-disk", "disk.csi.azure.com", _azure_handle),
    InTreePlugin("portworx_volume", "kubernetes.io/portworx-volume", "pxd.portworx.com", _volume_id),
    InTreePlugin("azure_file", "kubernetes.io/azure-file", "file.csi.azure.com"),
    InTreePlugin("vsphere_volume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
)  # fmt: skip
BY_NAME = {plugin.name: plugin for plugin in PLUGINS}


def plugin_of_inline(volume: Volume) -> InTreePlugin | None:
    """Return the in-tree plugin of a pod's inline volume; None for all other sources."""
    return next((plugin for plugin in PLUGINS if getattr(volume, plugin.field) is not None), None)


def plugin_of(pv: PersistentVolume) -> InTreePlugin | None:
    return next((plugin for plugin in PLUGINS if getattr(pv.spec, plugin.field) is not None), None)


def is_migrated_on(csi_node: CSINode | None, plugin: InTreePlugin) -> bool:
    """Return whether the node's kubelet reports that the CSI driver serves this plugin."""
    listed = csi_node.annotations.get(MIGRATED_PLUGINS, "") if csi_node is not None else ""
    return plugin.migrated and plugin.name in listed.split(",")


def inline_handle(plugin: InTreePlugin, volume: Volume) -> str:
    """Return the volume handle of an inline volume of a migrated plugin."""
    return plugin.inline_handle(getattr(volume, plugin.field)) if plugin.inline_handle else ""


def volume_handle(plugin: InTreePlugin, pv: PersistentVolume) -> str:
    """Return the handle of a persistent volume of a migrated plugin; that of a GCE disk depends on its zones."""
    if plugin is not GCE_PD or pv.spec.gce_persistent_disk is None:
        return plugin.inline_handle(getattr(pv.spec, plugin.field)) if plugin.inline_handle else ""
    disk = pv.spec.gce_persistent_disk.pd_name
    zones = (pv.labels.get(BETA_ZONE) or pv.labels.get(ZONE, "")).split(ZONE_DELIMITER)
    if len(zones) > 1:
        return _gce_path("regions", _gce_region(zones), disk)
    return _gce_path("zones", zones[0] or _UNSPECIFIED, disk)


def _gce_region(zones: list[str]) -> str:
    for zone in zones:
        if zone.count("-") != 2:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1:
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: {sorted(regions)}"
        )
    return regions.pop()


def translated_affinity(plugin: InTreePlugin, pv: PersistentVolume) -> NodeSelector | None:
    """Return the node affinity of the volume in terms of its driver; None for all nodes. Zones in its terms, or
    otherwise in its labels, become the driver's topology key."""
    volume_handle(plugin, pv)  # a volume without a handle cannot be translated at all
    affinity = pv.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if not plugin.zone_key:
        return required
    labels = tuple((key, pv.labels[key]) for key in (ZONE, BETA_ZONE) if key in pv.labels)
    terms = required.node_selector_terms if required is not None else ()
    translated = _translated_terms(terms, labels, plugin.zone_key)
    return NodeSelector(node_selector_terms=translated) if translated or required is not None else None


def affinity_on(csi_node: CSINode | None, pv: PersistentVolume) -> NodeSelector | None:
    """Return the node affinity of the volume as it applies to a node with this CSINode."""
    plugin = plugin_of(pv)
    if plugin is not None and is_migrated_on(csi_node, plugin):
        return translated_affinity(plugin, pv)
    return pv.spec.node_affinity.required if pv.spec.node_affinity is not None else None


@lru_cache(maxsize=4096)
def _translated_terms(
    terms: tuple[NodeSelectorTerm, ...], labels: tuple[tuple[str, str], ...], zone_key: str
) -> tuple[NodeSelectorTerm, ...]:
    """Translate the terms. `labels` are the zone labels of the volume, the current one before the beta one."""
    keys = {requirement.key for term in terms for requirement in term.match_expressions}
    zone = next((key for key in (ZONE, BETA_ZONE) if key in keys), None) or (labels[0][0] if labels else ZONE)
    listed = _is_listed(terms, zone)
    renamed = {BETA_REGION: REGION} if zone == BETA_ZONE and _is_listed(terms, BETA_REGION) else {}
    if listed:
        renamed[zone] = zone_key
    terms = tuple(_renamed(term, renamed) for term in terms)
    zones = [] if listed else _zones(dict(labels).get(zone, ""))
    return _with_zones(terms, zone_key, zones) if zones else terms


def _is_listed(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    """Return whether a term gives values for the key."""
    return any(r.values for term in terms for r in term.match_expressions if r.key == key)


def _renamed(term: NodeSelectorTerm, keys: dict[str, str]) -> NodeSelectorTerm:
    expressions = tuple(
        msgspec.structs.replace(requirement, key=keys.get(requirement.key, requirement.key))
        for requirement in term.match_expressions
    )
    return msgspec.structs.replace(term, match_expressions=expressions)


def _zones(label: str) -> list[str]:
    return sorted({zone.strip() for zone in label.split(ZONE_DELIMITER)} - {""})


def _with_zones(terms: tuple[NodeSelectorTerm, ...], zone_key: str, zones: list[str]) -> tuple[NodeSelectorTerm, ...]:
    wanted = NodeSelectorRequirement(key=zone_key, operator="In", values=tuple(zones))
    return tuple(
        msgspec.structs.replace(term, match_expressions=(*term.match_expressions, wanted))
        for term in terms or (NodeSelectorTerm(),)
    )
