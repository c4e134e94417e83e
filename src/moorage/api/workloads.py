"""Objects that select pods.

Default topology spreading uses the selectors of services and controllers, and preemption reads disruption
budgets. Only the fields needed for that are here.
"""

import msgspec

from moorage.api.meta import Condition, Int32, LabelSelector, Object, Record


class ServicePort(Record):
    """One port of a service. The target is a number or the name of a port."""

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
    """A Service that selects pods."""

    spec: ServiceSpec = ServiceSpec()


class ReplicaStatus(Record):
    """The counts that a controller reports."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class ReplicationControllerSpec(Record):
    """The selector is a plain map; an empty one selects no pod."""

    replicas: int | None = None
    selector: dict[str, str] = {}


class ReplicationController(Object):
    """The predecessor of ReplicaSet."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicaStatus = ReplicaStatus()


class ReplicaSetSpec(Record):
    """The desired number of pods and their selector."""

    replicas: int | None = None
    selector: LabelSelector | None = None


class ReplicaSet(Object):
    """Identical pods, mostly created by a Deployment."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaStatus = ReplicaStatus()


class StatefulSetSpec(Record):
    """The desired number of pods, their selector and their service."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""
    pod_management_policy: str = ""


class StatefulSet(Object):
    """Pods with stable names and volumes."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: ReplicaStatus = ReplicaStatus()


class PodDisruptionBudgetSpec(Record):
    """The number or percentage of the selected pods that must stay available."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Record):
    """`disrupted_pods` maps the names of pods that are being evicted to the time of the eviction."""

    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: Int32 = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object):
    """A limit on voluntary disruptions of the pods of one namespace."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
