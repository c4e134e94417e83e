"""In-tree volumes under the names of their CSI drivers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.node import REGION, ZONE
from moorage.api.pod import Volume
from moorage.api.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    PortworxVolumeSource,
    VsphereVolumeSource,
)
from moorage.plugins import csi_translation as csi
from moorage.testing.volumes import make_csi_node, make_pv

EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def ebs(volume_id="vol-1") -> Any:
    return AWSElasticBlockStoreVolumeSource(volume_id=volume_id)


def gce(name="disk") -> Any:
    return GCEPersistentDiskVolumeSource(pd_name=name)


def migrated_on(plugins) -> Any:
    node = make_csi_node("n")
    annotations = {csi.MIGRATED_PLUGINS: plugins}
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, annotations=annotations))


INLINE = [
    (Volume(aws_elastic_block_store=ebs()), "ebs.csi.aws.com", "vol-1"),
    (Volume(aws_elastic_block_store=ebs("aws://zone-a/vol-2")), "ebs.csi.aws.com", "vol-2"),
    (Volume(aws_elastic_block_store=ebs("aws:///vol-3")), "ebs.csi.aws.com", "vol-3"),
    (Volume(gce_persistent_disk=gce()), "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"),
    (Volume(cinder=CinderVolumeSource(volume_id="c")), "cinder.csi.openstack.org", "c"),
    (Volume(azure_disk=AzureDiskVolumeSource(disk_uri="/d", kind="Managed")), "disk.csi.azure.com", "/d"),
    (Volume(portworx_volume=PortworxVolumeSource(volume_id="p")), "pxd.portworx.com", "p"),
]


@pytest.mark.parametrize(("volume", "driver", "handle"), INLINE)
def test_inline_volume_has_driver_and_handle(volume, driver, handle):
    plugin = csi.plugin_of_inline(volume)
    assert plugin is not None
    assert (plugin.driver, csi.inline_handle(plugin, volume)) == (driver, handle)
    assert plugin.migrated


@pytest.mark.parametrize(
    "volume", [Volume(azure_file=AzureFileVolumeSource()), Volume(vsphere_volume=VsphereVolumeSource(volume_path="v"))]
)
def test_plugins_without_migration_in_the_scheduler_are_known_but_not_counted(volume):
    plugin = csi.plugin_of_inline(volume)
    assert plugin is not None
    assert not plugin.migrated


def test_other_volumes_have_no_plugin():
    assert csi.plugin_of_inline(Volume(name="scratch")) is None
    assert csi.plugin_of(make_pv(driver="d")) is None


@pytest.mark.parametrize(
    ("volume", "error"),
    [
        (
            Volume(aws_elastic_block_store=ebs("aws://zone-a/disk")),
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone-a/disk)",
        ),
        (
            Volume(azure_disk=AzureDiskVolumeSource(disk_uri="/d", kind="Dedicated")),
            "kind(Dedicated) is not supported in csi migration",
        ),
    ],
)
def test_what_cannot_be_translated_says_why(volume, error):
    plugin = csi.plugin_of_inline(volume)
    assert plugin is not None
    with pytest.raises(csi.TranslationError) as raised:
        csi.inline_handle(plugin, volume)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        ({}, "zones/UNSPECIFIED"),
        ({ZONE: "us-east1-b"}, "zones/us-east1-b"),
        ({csi.BETA_ZONE: "us-east1-c", ZONE: "us-east1-b"}, "zones/us-east1-c"),
        ({ZONE: "us-east1-b__us-east1-c"}, "regions/us-east1"),
    ],
)
def test_gce_handle_follows_the_zones(labels, handle):
    volume = make_pv(labels=labels, gce_persistent_disk=gce())
    assert csi.volume_handle(csi.GCE_PD, volume) == f"projects/UNSPECIFIED/{handle}/disks/disk"


@pytest.mark.parametrize("zones", ["us-east1-b__us-west1-c", "a__b"])
def test_gce_disk_over_no_single_region_cannot_be_translated(zones):
    with pytest.raises(csi.TranslationError, match="failed to get region from zones"):
        csi.volume_handle(csi.GCE_PD, make_pv(labels={ZONE: zones}, gce_persistent_disk=gce()))


def terms(selector) -> Any:
    if selector is None:
        return None
    return [{(r.key, r.operator, r.values) for r in term.match_expressions} for term in selector.node_selector_terms]


@pytest.mark.parametrize(
    ("nodes", "labels", "expected"),
    [
        pytest.param(None, {}, None, id="no topology at all"),
        pytest.param({ZONE: ["a", "b"]}, {}, [{(EBS_ZONE, "In", ("a", "b"))}], id="zone in the terms"),
        pytest.param(
            {csi.BETA_ZONE: ["a"], csi.BETA_REGION: ["r"]},
            {},
            [{(EBS_ZONE, "In", ("a",)), (REGION, "In", ("r",))}],
            id="beta labels in the terms",
        ),
        pytest.param(
            {ZONE: ["a"], REGION: ["r"]},
            {ZONE: "z"},
            [{(EBS_ZONE, "In", ("a",)), (REGION, "In", ("r",))}],
            id="terms win over labels, the region stays",
        ),
        pytest.param(None, {ZONE: "b__a"}, [{(EBS_ZONE, "In", ("a", "b"))}], id="zones in the label"),
        pytest.param(
            {"disk": ["ssd"]},
            {csi.BETA_ZONE: "a"},
            [{("disk", "In", ("ssd",)), (EBS_ZONE, "In", ("a",))}],
            id="label added to terms about something else",
        ),
    ],
)
def test_topology_becomes_that_of_the_driver(nodes, labels, expected):
    volume = make_pv(nodes=nodes, labels=labels, aws_elastic_block_store=ebs())
    here, elsewhere = migrated_on("kubernetes.io/aws-ebs,kubernetes.io/gce-pd"), migrated_on("other")
    assert terms(csi.affinity_on(here, volume)) == expected
    assert csi.affinity_on(elsewhere, volume) == csi.affinity_on(None, volume)


def test_azure_keeps_its_topology():
    volume = make_pv(nodes={ZONE: ["a"]}, azure_disk=AzureDiskVolumeSource(disk_uri="/d"))
    found = csi.affinity_on(migrated_on("kubernetes.io/azure-disk"), volume)
    assert terms(found) == [{(ZONE, "In", ("a",))}]
