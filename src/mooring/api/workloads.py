"""Services and the controllers whose selectors give default topology spreading: only what that needs."""

import msgspec

from mooring.api.meta import LabelSelector, Object
from mooring.api.record import Record


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
