"""Pods, with all parts of the spec and status that placing them depends on.

What containers run (commands, environment, probes, mounts) is left out: no scheduler reads it.
"""

from collections.abc import Mapping

import msgspec

from moorage.api.meta import Int32, Int64, LabelSelector, Object, OwnerReference, Record
from moorage.api.node import NodeSelector, PreferredSchedulingTerm
from moorage.api.quantity import ResourceList
from moorage.api.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    PersistentVolumeClaimTemplate,
    PortworxVolumeSource,
    RBDVolumeSource,
    VsphereVolumeSource,
)
from moorage.api.taints import Toleration

DEFAULT_SCHEDULER_NAME = "default-scheduler"


class ResourceClaimReference(Record):
    """A claim of the pod that a container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Record):
    """What a container, or the pod as a whole, asks for and may use at most."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaimReference, ...] = ()


class ContainerPort(Record):
    """A port; `host_port` 0 takes none of the node. An empty protocol is TCP."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")


class ContainerRestartRuleOnExitCodes(Record):
    """Exit codes a restart rule speaks about."""

    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(Record):
    """What to do when a container ends with certain exit codes."""

    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class SeccompProfile(Record):
    """Which system calls are allowed; `localhost_profile` is a path, for type Localhost."""

    type: str = ""
    localhost_profile: str = ""


class SecurityContext(Record):
    """Of a container, or of the pod as a whole."""

    seccomp_profile: SeccompProfile | None = None


class Container(Record):
    """A container; among init containers, restartPolicy Always makes it a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None

    @property
    def is_sidecar(self) -> bool:
        """True for a restartable init container."""
        return self.restart_policy == "Always"


class PersistentVolumeClaimVolumeSource(Record):
    """A claim in the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(Record):
    """A claim made for this pod and deleted with it."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(Record):
    """An image mounted as a volume."""

    reference: str = ""
    pull_policy: str = ""


class Volume(Record):
    """A volume of the pod; at most one source is set, sources no scheduler reads are left out."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    nfs: NFSVolumeSource | None = None


class NodeAffinity(Record):
    """Nodes a pod must have (null: any) and nodes it would like."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Record):
    """Pods to be near to, or away from, within domains of `topology_key`."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Record):
    """A preference with a weight of 1-100."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Record):
    """Pods to be near to."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(Record):
    """Pods to be away from."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Record):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Record):
    """How evenly matching pods spread over domains. Null policies: Honor for affinity, Ignore for taints."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(Record):
    """While one gate is left, the pod is not scheduled."""

    name: str = ""


class PodSchedulingGroup(Record):
    """The PodGroup this pod belongs to."""

    pod_group_name: str | None = None


class PodResourceClaim(Record):
    """A resource claim of the pod, named or made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodOS(Record):
    """The operating system the pod is made for: linux or windows."""

    name: str = ""


class PodSpec(Record):
    """What the pod is and where it may go."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    os: PodOS | None = None
    restart_policy: str = ""
    runtime_class_name: str | None = None
    service_account_name: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    security_context: SecurityContext | None = None


class PodCondition(Record):
    """PodScheduled, Ready, DisruptionTarget, PodResizePending and others."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class ContainerStateWaiting(Record):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(Record):
    """Since when a container runs."""

    started_at: str | None = None


class ContainerStateTerminated(Record):
    """How a container ended."""

    exit_code: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Record):
    """One of the three is set."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Record):
    """What the kubelet reports; null `resources` means that it reports none (yet)."""

    name: str = ""
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    ready: bool = False
    restart_count: Int32 = 0
    started: bool | None = None
    state: ContainerState | None = None
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class PodIP(Record):
    """One address of the pod."""

    ip: str = ""


class PodResourceClaimStatus(Record):
    """The claim generated for one entry of spec.resourceClaims."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Record):
    """What happened to the pod so far."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    observed_generation: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = msgspec.field(default=(), name="podIPs")
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class Pod(Object):
    """The thing to be placed. What it requests is `requests.pod_requests(pod)`."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        """0 where the spec names none."""
        return self.spec.priority or 0

    @property
    def is_assigned(self) -> bool:
        """Bound to a node, whether or not that node exists."""
        return bool(self.spec.node_name)

    @property
    def is_terminating(self) -> bool:
        """Deleted, and not gone yet."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_terminal(self) -> bool:
        """Succeeded or Failed: the pod holds no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def scheduler_name(self) -> str:
        return self.spec.scheduler_name or DEFAULT_SCHEDULER_NAME

    @property
    def nominated_node_name(self) -> str:
        return self.status.nominated_node_name

    @property
    def is_gated(self) -> bool:
        """Has scheduling gates."""
        return bool(self.spec.scheduling_gates)


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner that manages the object, if one does."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            return owner
    return None
