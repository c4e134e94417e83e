"""Volumes: claims, persistent volumes, storage classes, and the CSI objects that limit where volumes can go.

Volume sources that both pods and persistent volumes use are here too; `pod.Volume` has them as fields.
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
    """An iSCSI target, identified by its IQN."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    portals: tuple[str, ...] = ()
    read_only: bool = False


class RBDVolumeSource(Record):
    """A Ceph block device, identified by monitors, pool and image."""

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
    """A volume of a CSI driver, identified by driver and handle."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = {}


class CSIVolumeSource(Record):
    """An inline volume that a CSI driver provides for the life of the pod."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = {}


class VolumeResourceRequirements(Record):
    """The requested size, under `storage`."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class TypedObjectReference(Record):
    """The source of a claim's data."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class PersistentVolumeClaimSpec(Record):
    """A null storage class requests the default one, an empty one requests none."""

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
    """The phase is Pending, Bound or Lost."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = {}
    allocated_resources: ResourceList = {}


class PersistentVolumeClaim(Object):
    """A request for storage."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PersistentVolumeClaimTemplate(Record):
    """The template of a claim for a generic ephemeral volume. The claim is named `<pod>-<volume>`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class VolumeNodeAffinity(Record):
    """The nodes that can access a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Record):
    """One source, its size, and the claim that it is bound to."""

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
    """The phase is Pending, Available, Bound, Released or Failed."""

    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(Object):
    """A piece of storage."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabelRequirement(Record):
    """A label with its allowed values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Record):
    """Requirements that must all hold; an empty term matches nothing."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Object):
    """How volumes of a class are provisioned, and whether before or after the pod is scheduled."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Record):
    """The number of volumes of a driver that a node can hold; null is unlimited."""

    count: Int32 | None = None


class CSINodeDriver(Record):
    """A CSI driver that is installed on the node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Record):
    """The CSI drivers of one node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object):
    """The CSI information about the node of the same name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Record):
    """With `storage_capacity`, the scheduler must consider CSIStorageCapacity objects."""

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
    """The capacity left for a class on the nodes of a topology; a null topology has no nodes."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Record):
    """The volume of an attachment: a persistent volume, or an inline one under CSI migration."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Record):
    """`attacher` is the driver's name."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(Record):
    """Whether the volume is attached."""

    attached: bool = False


class VolumeAttachment(Object):
    """A request to attach a volume to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
