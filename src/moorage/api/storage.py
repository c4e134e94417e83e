"""Volumes: claims, persistent volumes, classes and the CSI objects that bound where volumes can go.

Volume sources used both by pods and by persistent volumes are here as well; `pod.Volume` joins them.
"""

import msgspec

from moorage.api.core import ObjectReference
from moorage.api.meta import Int32, LabelSelector, Object, ObjectMeta, Record
from moorage.api.node import NodeSelector
from moorage.api.quantity import Quantity, ResourceList


class GCEPersistentDiskVolumeSource(Record):
    """A disk of Google Compute Engine."""

    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Record):
    """A disk of Amazon EBS."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class ISCSIVolumeSource(Record):
    """A target reached over iSCSI; the IQN is its identity."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    portals: tuple[str, ...] = ()
    read_only: bool = False


class RBDVolumeSource(Record):
    """A Ceph block device: monitors, pool and image together are its identity."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class AzureDiskVolumeSource(Record):
    """A managed disk of Azure."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    read_only: bool | None = None
    kind: str | None = None


class AzureFileVolumeSource(Record):
    """A share of Azure Files."""

    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""
    read_only: bool = False


class CinderVolumeSource(Record):
    """A disk of OpenStack Cinder."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class VsphereVolumeSource(Record):
    """A disk of vSphere."""

    volume_path: str = ""


class PortworxVolumeSource(Record):
    """A volume of Portworx."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class LocalVolumeSource(Record):
    """A directory or device of one node."""

    path: str = ""


class HostPathVolumeSource(Record):
    """A directory of the host."""

    path: str = ""
    type: str | None = None


class NFSVolumeSource(Record):
    """An exported directory."""

    server: str = ""
    path: str = ""
    read_only: bool = False


class CSIPersistentVolumeSource(Record):
    """A volume of a CSI driver; driver and handle together are its identity."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = {}


class CSIVolumeSource(Record):
    """An inline volume a CSI driver makes for the life of the pod."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = {}


class VolumeResourceRequirements(Record):
    """The size asked for, under `storage`."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class TypedObjectReference(Record):
    """Where a claim's data comes from."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class PersistentVolumeClaimSpec(Record):
    """A null storage class asks for the default one, an empty one for none."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Record):
    """Pending, Bound or Lost."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = {}
    allocated_resources: ResourceList = {}


class PersistentVolumeClaim(Object):
    """A request for storage."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PersistentVolumeClaimTemplate(Record):
    """The claim made for a generic ephemeral volume; its name is `<pod>-<volume>`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class VolumeNodeAffinity(Record):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Record):
    """One source, its size, and the claim it belongs to."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: tuple[str, ...] = ()
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None


class PersistentVolumeStatus(Record):
    """Pending, Available, Bound, Released or Failed."""

    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(Object):
    """A piece of storage."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabelRequirement(Record):
    """A label with the values allowed."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Record):
    """Requirements that must all hold; an empty term matches nothing."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Object):
    """How volumes of one class are made, and whether before or after the pod is placed."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Record):
    """How many volumes of a driver a node can hold; null is unlimited."""

    count: Int32 | None = None


class CSINodeDriver(Record):
    """One driver installed on the node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Record):
    """The drivers of one node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object):
    """CSI facts of the node of the same name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Record):
    """`storage_capacity` asks the scheduler to look at CSIStorageCapacity objects."""

    attach_required: bool | None = None
    storage_capacity: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()
    node_allocatable_update_period_seconds: int | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object):
    """A CSI driver of the cluster."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object):
    """How much a class can still provision on the nodes of a topology; a null topology is nowhere."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Record):
    """The volume of an attachment: a persistent one, or an inline one under CSI migration."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Record):
    """`attacher` is the driver's name."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(Record):
    """Whether the attachment has happened."""

    attached: bool = False


class VolumeAttachment(Object):
    """The request to attach a volume to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
