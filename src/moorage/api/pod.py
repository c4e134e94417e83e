"""Pods, with all parts of spec and status that scheduling depends on.

Commands, environment, probes and mounts of containers are left out, because no scheduler reads them.
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
    """A resource claim of the pod that a container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Record):
    """The requests and limits of a container, or of the pod as a whole."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaimReference, ...] = ()


class ContainerPort(Record):
    """A port. `host_port` 0 uses no port of the node; an empty protocol is TCP."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")


class ContainerRestartRuleOnExitCodes(Record):
    """The exit codes that a restart rule matches."""

    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(Record):
    """The action to take when a container ends with certain exit codes."""

    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class SeccompProfile(Record):
    """The system calls that are allowed; `localhost_profile` is a path, for type Localhost."""

    type: str = ""
    localhost_profile: str = ""


class SecurityContext(Record):
    """The security context of a container, or of the pod as a whole."""

    seccomp_profile: SeccompProfile | None = None


class Container(Record):
    """A container. As an init container with restartPolicy Always it is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None

    @property
    def is_sidecar(self) -> bool:
        """Whether this is a restartable init container."""
        return self.restart_policy == "Always"


class PersistentVolumeClaimVolumeSource(Record):
    """A claim in the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(Record):
    """A claim that is created for this pod and deleted with it."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(Record):
    """An image that is mounted as a volume."""

    reference: str = ""
    pull_policy: str = ""


class Volume(Record):
    """A volume of the pod. At most one source is set; sources that no scheduler reads are left out."""

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
    """The nodes that a pod requires (null: any) and those that it prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Record):
    """Pods to be close to, or away from, within a domain of `topology_key`."""

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
    """The pods to be close to."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(Record):
    """The pods to be away from."""

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
    """A gate. The pod is not scheduled while it has one."""

    name: str = ""


class PodSchedulingGroup(Record):
    """The PodGroup that the pod belongs to."""

    pod_group_name: str | None = None


class PodResourceClaim(Record):
    """A resource claim of the pod, by name or from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodOS(Record):
    """The operating system that the pod needs: linux or windows."""

    name: str = ""


class PodSpec(Record):
    """The containers of the pod and its scheduling requirements."""

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
    """The reason why a container is not running yet."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(Record):
    """The time at which a container started."""

    started_at: str | None = None


class ContainerStateTerminated(Record):
    """How a container ended."""

    exit_code: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Record):
    """The state of a container; one of the three fields is set."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Record):
    """The state that the kubelet reports; null `resources` means that it reports none (yet)."""

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
    """The claim that was generated for one entry of spec.resourceClaims."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Record):
    """The observed state of the pod."""

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
    """A pod. `requests.pod_requests(pod)` returns its requests."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        """The priority, 0 if the spec has none."""
        return self.spec.priority or 0

    @property
    def is_assigned(self) -> bool:
        """Whether the pod is bound to a node, existing or not."""
        return bool(self.spec.node_name)

    @property
    def is_terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_terminal(self) -> bool:
        """Whether the pod is Succeeded or Failed, so that it holds no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def scheduler_name(self) -> str:
        return self.spec.scheduler_name or DEFAULT_SCHEDULER_NAME

    @property
    def nominated_node_name(self) -> str:
        return self.status.nominated_node_name

    @property
    def is_gated(self) -> bool:
        """Whether the pod has scheduling gates."""
        return bool(self.spec.scheduling_gates)


def controller_of(obj: Object) -> OwnerReference | None:
    """Return the owner that controls the object, or None."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            return owner
    return None
