"""Objects that select pods: services and controllers, whose selectors give default topology spreading, and
the disruption budgets that preemption reads. Only what that needs.
"""

import msgspec

from moorage.api.meta import Condition, Int32, LabelSelector, Object, Record


class ServicePort(Record):
    """One port of a service; the target is a number or a port name."""

    name: str = ""
    protocol: str = ""
    port: int = 0
    target_port: int | str | None = None
    node_port: int = 0


class ServiceSpec(Record):
    """An empty selector selects no pod."""

    selector: dict[str, str] = {}
    type: str = ""
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ports: tuple[ServicePort, ...] = ()


class Service(Object):
    """A service in front of pods."""

    spec: ServiceSpec = ServiceSpec()


class ReplicaStatus(Record):
    """Counts that controllers report."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class ReplicationControllerSpec(Record):
    """The selector is a plain map here; empty selects no pod."""

    replicas: int | None = None
    selector: dict[str, str] = {}


class ReplicationController(Object):
    """The predecessor of ReplicaSet."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicaStatus = ReplicaStatus()


class ReplicaSetSpec(Record):
    """Wanted count and the pods it owns."""

    replicas: int | None = None
    selector: LabelSelector | None = None


class ReplicaSet(Object):
    """Equal pods, mostly made by a Deployment."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaStatus = ReplicaStatus()


class StatefulSetSpec(Record):
    """Wanted count, the pods it owns, and their service."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""
    pod_management_policy: str = ""


class StatefulSet(Object):
    """Pods with stable names and volumes."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: ReplicaStatus = ReplicaStatus()


class PodDisruptionBudgetSpec(Record):
    """How many of the selected pods must stay, as a number or a percentage."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Record):
    """`disrupted_pods` maps names of pods already being evicted to the time of the eviction."""

    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: Int32 = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object):
    """A limit on voluntary disruption of the pods of one namespace."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
