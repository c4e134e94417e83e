"""Objects for tests, one line each: `make_pod("web", cpu="500m")`, `make_node("n1", zone="a")`.

What is left out is as an API server would hold it for a plain object. UIDs follow from kind, namespace and
name, so the same call gives an equal object. Records are frozen: to change one, build it again, or use
`msgspec.structs.replace`. Putting objects into a store is left to the cluster fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from moorage.api.core import Namespace, NamespaceStatus
from moorage.api.meta import LabelSelector, Object, ObjectMeta, OwnerReference, Record
from moorage.api.node import (
    HOSTNAME,
    REGION,
    ZONE,
    ContainerImage,
    Node,
    NodeCondition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
)
from moorage.api.pod import (
    DEFAULT_SCHEDULER_NAME,
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
    Volume,
)
from moorage.api.quantity import Quantity
from moorage.api.scheduling import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec, PriorityClass
from moorage.api.taints import Taint, Toleration
from moorage.api.workloads import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    Service,
    ServiceSpec,
)

T = TypeVar("T")

CREATED = "2026-01-01T00:00:00Z"
"""The default creation time of all objects."""


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    owner: str | Object | OwnerReference | None = None,
    node: str = "",
    scheduler: str | None = None,
    priority: int | None = None,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] | None = None,
    ports: Sequence[int | ContainerPort] = (),
    spread: str | TopologySpreadConstraint | Sequence[TopologySpreadConstraint] = (),
    tolerations: Sequence[str | Toleration] = (),
    gates: Sequence[str] = (),
    claims: Sequence[str] = (),
    volumes: Sequence[Volume] = (),
    nominated: str = "",
    **fields: Any,
) -> Pod:
    """Build a pod with one container; it is pending unless it has a node.

    `ports` given as numbers are host ports. `spread` as a text is a label key to spread over strictly.
    Tolerations are written `key=value:Effect`, with any part but the key left out. `owner` as a text is
    `Kind/name`. `claims` are names of volume claims. `fields` are further attributes by the names of PodSpec,
    PodStatus and ObjectMeta, such as `host_network=True`, `phase="Failed"` or `uid="1"`; `containers`
    replaces the one container, and `affinity` is best made with `make_affinity`.
    """
    main = make_container("main", cpu, memory, requests=requests, ports=ports)
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    spec = {
        "node_name": node,
        "scheduler_name": scheduler or DEFAULT_SCHEDULER_NAME,
        "priority": priority,
        "containers": (main,),
        "topology_spread_constraints": _spread(spread, labels or {}),
        "tolerations": tuple(t if isinstance(t, Toleration) else toleration(t) for t in tolerations),
        "scheduling_gates": tuple(PodSchedulingGate(name=gate) for gate in gates),
        "volumes": (*map(_claim_volume, claims), *volumes),
        **_taken(PodSpec, given),
    }
    status = {"phase": "Running" if node else "Pending", "nominated_node_name": nominated, **_taken(PodStatus, given)}
    owners = (_owner(owner, namespace),) if owner is not None else ()
    metadata = {"owner_references": owners, "annotations": None, **_taken(ObjectMeta, given)}
    if given:
        raise TypeError(f"a pod has no {', '.join(map(repr, given))}")
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=make_metadata("Pod", name, namespace, labels, **metadata),
        spec=PodSpec(**spec),
        status=PodStatus(**status),
    )


def _taken(kind: type[Record], fields: dict[str, Any]) -> dict[str, Any]:
    """Remove the attributes of this kind from the fields, and return them."""
    return {name: fields.pop(name) for name in kind.__struct_fields__ if name in fields}


def make_pods(count: int, prefix: str = "pod", **options: Any) -> list[Pod]:
    """Build the pods `prefix-0`, `prefix-1` and so on, which are otherwise equal."""
    return [make_pod(f"{prefix}-{number}", **options) for number in range(count)]


def make_container(
    name: str = "main",
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    *,
    requests: Mapping[str, Quantity] | None = None,
    limits: Mapping[str, Quantity] | None = None,
    image: str = "app",
    ports: Sequence[int | ContainerPort] = (),
    sidecar: bool = False,
) -> Container:
    """Build a container; `sidecar` is for init containers that keep running."""
    asked: dict[str, Quantity] = {}
    if cpu is not None:
        asked["cpu"] = cpu
    if memory is not None:
        asked["memory"] = memory
    return Container(
        name=name,
        image=image,
        ports=tuple(p if isinstance(p, ContainerPort) else host_port(p) for p in ports),
        resources=ResourceRequirements(requests={**asked, **(requests or {})}, limits=dict(limits or {})),
        restart_policy="Always" if sidecar else None,
    )


def host_port(port: int, protocol: str = "TCP", ip: str = "") -> ContainerPort:
    return ContainerPort(host_port=port, container_port=port, protocol=protocol, host_ip=ip)


def toleration(text: str) -> Toleration:
    """Build a toleration from `key=value:Effect`. Without a value it tolerates any value, without an
    effect every effect."""
    key, value, effect = _split_taint(text)
    if value is None:
        return Toleration(key=key, operator="Exists", effect=effect)
    return Toleration(key=key, operator="Equal", value=value, effect=effect)


def taint(text: str) -> Taint:
    """Build a taint from `key=value:Effect` or `key:Effect`, as kubectl writes it."""
    key, value, effect = _split_taint(text)
    return Taint(key=key, value=value or "", effect=effect or "NoSchedule")


def _split_taint(text: str) -> tuple[str, str | None, str]:
    pair, _, effect = text.partition(":")
    key, equals, value = pair.partition("=")
    return key, value if equals else None, effect


def spread_over(
    key: str, labels: Mapping[str, str] | LabelSelector, *, max_skew: int = 1, soft: bool = False, **extra: Any
) -> TopologySpreadConstraint:
    """Build a spread constraint; `soft` makes it a preference. `extra` are other attributes, such as `min_domains`."""
    return TopologySpreadConstraint(
        topology_key=key,
        label_selector=_selector(labels),
        max_skew=max_skew,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        **extra,
    )


def _spread(
    spread: str | TopologySpreadConstraint | Sequence[TopologySpreadConstraint], labels: Mapping[str, str]
) -> tuple[TopologySpreadConstraint, ...]:
    if isinstance(spread, str):
        return (spread_over(spread, labels),)
    if isinstance(spread, TopologySpreadConstraint):
        return (spread,)
    return tuple(spread)


def nodes_with(labels: Mapping[str, Sequence[str]]) -> NodeSelector:
    """Select the nodes that have each label with one of its values."""
    expressions = (
        NodeSelectorRequirement(key=key, operator="In", values=tuple(values)) for key, values in labels.items()
    )
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=tuple(expressions)),))


def make_affinity(
    *,
    nodes: Mapping[str, Sequence[str]] | None = None,
    near: Mapping[str, str] | LabelSelector | None = None,
    away: Mapping[str, str] | LabelSelector | None = None,
    topology: str = HOSTNAME,
) -> Affinity:
    """Build an affinity. `nodes` requires labels with one of the values. `near` requires a pod with these
    labels in the same domain of `topology`, and `away` forbids one."""

    def required(kind: Callable[..., T], terms: object) -> T:
        return kind(required_during_scheduling_ignored_during_execution=terms)

    return Affinity(
        node_affinity=None if nodes is None else required(NodeAffinity, nodes_with(nodes)),
        pod_affinity=None if near is None else required(PodAffinity, _terms(near, topology)),
        pod_anti_affinity=None if away is None else required(PodAntiAffinity, _terms(away, topology)),
    )


def _terms(labels: Mapping[str, str] | LabelSelector, topology: str) -> tuple[PodAffinityTerm, ...]:
    return (PodAffinityTerm(label_selector=_selector(labels), topology_key=topology),)


def _selector(labels: Mapping[str, str] | LabelSelector) -> LabelSelector:
    return labels if isinstance(labels, LabelSelector) else LabelSelector(match_labels=dict(labels))


def _claim_volume(claim: str) -> Volume:
    return Volume(name=claim, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))


def _owner(owner: str | Object | OwnerReference, namespace: str) -> OwnerReference:
    if isinstance(owner, OwnerReference):
        return owner
    if isinstance(owner, Object):
        api_version, kind, name, uid = owner.api_version, owner.kind, owner.name, owner.uid
    else:
        kind, _, name = owner.rpartition("/")
        kind = kind or "ReplicaSet"
        api_version, uid = "apps/v1", _uid(kind, namespace, name)
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)


def make_node(
    name: str = "node",
    *,
    cpu: Quantity = "4",
    memory: Quantity = "16Gi",
    pods: Quantity = 110,
    storage: Quantity = "100Gi",
    extended: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    zone: str | None = None,
    region: str | None = None,
    taints: Sequence[str | Taint] = (),
    unschedulable: bool = False,
    ready: bool = True,
    images: Mapping[str, int] | None = None,
    uid: str | None = None,
    **status_extra: Any,
) -> Node:
    """Build a ready node whose allocatable equals its capacity.

    `extended` are further resources; `images` maps image names to sizes in bytes; taints are written
    `key=value:Effect`. `status_extra` are further attributes of NodeStatus, such as another `allocatable`.
    """
    amounts: dict[str, Quantity] = {
        "cpu": cpu,
        "memory": memory,
        "pods": pods,
        "ephemeral-storage": storage,
        **(extended or {}),
    }
    places = {HOSTNAME: name, ZONE: zone, REGION: region}
    given = {key: value for key, value in places.items() if value is not None}
    status: dict[str, Any] = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": (NodeCondition(type="Ready", status="True" if ready else "False"),),
        "images": tuple(ContainerImage(names=(n,), size_bytes=size) for n, size in (images or {}).items()),
    }
    return Node(
        api_version="v1",
        kind="Node",
        metadata=make_metadata("Node", name, "", {**given, **(labels or {})}, annotations=annotations, uid=uid),
        spec=NodeSpec(
            unschedulable=unschedulable, taints=tuple(t if isinstance(t, Taint) else taint(t) for t in taints)
        ),
        status=NodeStatus(**{**status, **status_extra}),
    )


def make_nodes(count: int, prefix: str = "node", *, zones: Sequence[str] = (), **options: Any) -> list[Node]:
    """Build the nodes `prefix-0`, `prefix-1` and so on, spread over the zones in turn."""
    return [
        make_node(f"{prefix}-{number}", zone=zones[number % len(zones)] if zones else None, **options)
        for number in range(count)
    ]


def make_namespace(name: str = "default", labels: Mapping[str, str] | None = None) -> Namespace:
    """Build a namespace. Pods may use a namespace that does not exist; plugins that read namespaces do not see it."""
    named = {"kubernetes.io/metadata.name": name, **(labels or {})}
    return Namespace(
        api_version="v1",
        kind="Namespace",
        metadata=make_metadata("Namespace", name, "", named),
        status=NamespaceStatus(phase="Active"),
    )


def make_pdb(
    name: str = "budget",
    selector: Mapping[str, str] | LabelSelector | None = None,
    *,
    namespace: str = "default",
    allowed: int = 0,
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
) -> PodDisruptionBudget:
    """Build a disruption budget that allows `allowed` more of the selected pods to be disrupted."""
    return PodDisruptionBudget(
        api_version="policy/v1",
        kind="PodDisruptionBudget",
        metadata=make_metadata("PodDisruptionBudget", name, namespace),
        spec=PodDisruptionBudgetSpec(
            selector=_selector(selector or {}), min_available=min_available, max_unavailable=max_unavailable
        ),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def make_priority_class(name: str, value: int, *, default: bool = False, preempts: bool = True) -> PriorityClass:
    """Build a priority class. Set the priority of pods with `make_pod(priority=…)`; there is no admission here."""
    return PriorityClass(
        api_version="scheduling.k8s.io/v1",
        kind="PriorityClass",
        metadata=make_metadata("PriorityClass", name, ""),
        value=value,
        global_default=default,
        preemption_policy="PreemptLowerPriority" if preempts else "Never",
    )


def make_pod_group(name: str = "gang", min_count: int = 1, *, namespace: str = "default") -> PodGroup:
    """Build a group of which at least `min_count` pods are placed together."""
    policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=min_count))
    return PodGroup(
        api_version="scheduling.k8s.io/v1alpha2",
        kind="PodGroup",
        metadata=make_metadata("PodGroup", name, namespace),
        spec=PodGroupSpec(scheduling_policy=policy),
    )


def make_service(
    name: str = "service", selector: Mapping[str, str] | None = None, *, namespace: str = "default"
) -> Service:
    """Build a service that selects pods by these labels."""
    return Service(
        api_version="v1",
        kind="Service",
        metadata=make_metadata("Service", name, namespace),
        spec=ServiceSpec(selector=dict(selector or {})),
    )


def make_metadata(
    kind: str, name: str, namespace: str, labels: Mapping[str, str] | None = None, **fields: Any
) -> ObjectMeta:
    """Build the metadata of an object; `fields` are other attributes of ObjectMeta."""
    annotations, uid = fields.pop("annotations", None), fields.pop("uid", None)
    return ObjectMeta(
        name=name,
        namespace=namespace,
        labels=dict(labels or {}),
        annotations=dict(annotations or {}),
        uid=uid or _uid(kind, namespace, name),
        **{"creation_timestamp": CREATED, **fields},
    )


def _uid(kind: str, namespace: str, name: str) -> str:
    """Return a UID that is readable in a failing test."""
    return ":".join(filter(None, (kind.lower(), namespace, name)))
