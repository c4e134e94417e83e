"""Priority classes, and pod groups of scheduling.k8s.io/v1alpha2 (KEP-4671)."""

from moorage.api.meta import Condition, Int32, Object, Record


class PriorityClass(Object):
    """A named priority. Admission copies its value into pods."""

    value: Int32 = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class GangSchedulingPolicy(Record):
    """All or nothing: at least `min_count` members are scheduled together."""

    min_count: Int32 = 0


class BasicSchedulingPolicy(Record):
    """Members are scheduled one by one, as without a group."""


class PodGroupSchedulingPolicy(Record):
    """The policy of a group; exactly one field is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Record):
    """All members must be in one domain of this node label."""

    key: str = ""


class PodGroupSchedulingConstraints(Record):
    """Constraints on the placement of the group as a whole."""

    topology: tuple[TopologyConstraint, ...] = ()


class WorkloadPodGroupTemplateReference(Record):
    """A template inside a Workload."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Record):
    """The template that the group was created from."""

    workload: WorkloadPodGroupTemplateReference | None = None


class PodGroupResourceClaim(Record):
    """A claim that the members share."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(Record):
    """`disruption_mode` is Pod or PodGroup: whether preemption may evict single members."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupResourceClaimStatus(Record):
    """The claim that was generated for one entry of spec.resourceClaims."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Record):
    """The conditions are PodGroupScheduled and DisruptionTarget."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(Object):
    """Pods that are scheduled as one. Members name it in spec.schedulingGroup.podGroupName."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
