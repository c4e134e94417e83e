"""Priority classes, and pod groups of scheduling.k8s.io/v1alpha2."""

from moorage.api.meta import Condition, Int32, Object, Record


class PriorityClass(Object):
    """A named priority; admission copies the value into pods."""

    value: Int32 = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class GangSchedulingPolicy(Record):
    """All or nothing: at least `min_count` members are placed together."""

    min_count: Int32 = 0


class BasicSchedulingPolicy(Record):
    """Members are placed one by one, as without a group."""


class PodGroupSchedulingPolicy(Record):
    """Exactly one of the two is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Record):
    """All members land in one domain of this node label."""

    key: str = ""


class PodGroupSchedulingConstraints(Record):
    """Constraints on where the group as a whole may land."""

    topology: tuple[TopologyConstraint, ...] = ()


class WorkloadPodGroupTemplateReference(Record):
    """The template inside a Workload."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Record):
    """Where the group was made from."""

    workload: WorkloadPodGroupTemplateReference | None = None


class PodGroupResourceClaim(Record):
    """A claim shared by the members."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(Record):
    """`disruption_mode` is Pod or PodGroup: whether preemption may take single members."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupResourceClaimStatus(Record):
    """The claim generated for one entry of spec.resourceClaims."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Record):
    """Conditions PodGroupScheduled and DisruptionTarget."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(Object):
    """Pods that are scheduled as one; members name it in spec.schedulingGroup.podGroupName."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
