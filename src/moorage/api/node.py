"""Nodes, and the node selectors of pods, volumes and profiles. `node_selectors` matches them."""

import msgspec

from moorage.api.meta import EMPTY, Int32, Int64, Object, ReadOnlyDict, Record, seal
from moorage.api.quantity import ResourceList
from moorage.api.taints import Taint

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


class NodeSelectorRequirement(Record):
    """One expression: In, NotIn, Exists, DoesNotExist, Gt or Lt; in matchFields only In and NotIn."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Record):
    """Expressions that must all hold. An empty term matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Record):
    """Terms of which at least one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Record):
    """A term that adds `weight` (1-100) to the score of the nodes it matches."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeSpec(Record):
    """The settings of the node, made by an administrator or the cloud provider."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_cidr: str = msgspec.field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = msgspec.field(default=(), name="podCIDRs")
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeCondition(Record):
    """Ready, MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable and others."""

    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(Record):
    """A hostname, an internal or external IP, or a DNS name."""

    type: str = ""
    address: str = ""


class ContainerImage(Record):
    """An image that is present on the node, with all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeSystemInfo(Record):
    """The machine, its operating system and its kubelet."""

    machine_id: str = msgspec.field(default="", name="machineID")
    system_uuid: str = msgspec.field(default="", name="systemUUID")
    boot_id: str = msgspec.field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class AttachedVolume(Record):
    """A volume that is attached to the node."""

    name: str = ""
    device_path: str = ""


class NodeStatus(Record):
    """The state that the kubelet reports."""

    capacity: ResourceList = EMPTY
    allocatable: ResourceList = EMPTY
    phase: str = ""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    declared_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.capacity) is not ReadOnlyDict:
            seal(self, "capacity")
        if type(self.allocatable) is not ReadOnlyDict:
            seal(self, "allocatable")


class Node(Object):
    """A machine that runs pods."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.spec.taints

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return self.spec.unschedulable

    @property
    def allocatable(self) -> ResourceList:
        """The quantities as reported; `requests.node_allocatable` converts them to integers."""
        return self.status.allocatable
