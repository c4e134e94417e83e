"""Requests of pods and allocatable amounts of nodes as integers: cpu in milli-units, all others in base units.

Sums are computed in nano-units and rounded up once at the end, so `0.5m` twice is one milli-cpu and not two. Plugins
compare requests with free capacity, and the cache adds up the pods of a node. Follows
k8s.io/component-helpers/resource/helpers.go, with pod-level resources (KEP-2837), sidecars (KEP-753) and in-place
resize (KEP-1287).
"""

import re
from collections.abc import Mapping

from moorage.api import quantity
from moorage.api.node import Node
from moorage.api.pod import Container, ContainerStatus, Pod
from moorage.api.quantity import Quantity, ResourceList

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_MILLI_CPU = 100
"""Scoring assumes this for a container without a cpu request."""
DEFAULT_MEMORY = 200 * 1024 * 1024
"""Scoring assumes this many bytes for a container without a memory request."""

_SCORING_DEFAULTS = {CPU: DEFAULT_MILLI_CPU * 1_000_000, MEMORY: DEFAULT_MEMORY * quantity.NANO}
_HUGE_PAGES = "hugepages-"
_ATTACHABLE_VOLUMES = "attachable-volumes-"
_QUALIFIED_NAME = re.compile(
    r"(?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    r"/(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)

_Nanos = dict[str, int]


def resource_value(name: str, amount: Quantity) -> int:
    """Return a quantity as the integer that scheduling compares, rounded up."""
    return quantity.milli_value(amount) if name == CPU else quantity.value(amount)


def pod_requests(pod: Pod, *, use_status: bool = True) -> dict[str, int]:
    """Return the effective request of a pod. Raises QuantityError if a quantity is invalid.

    Per resource, it is the larger of (containers + sidecars) and of each ordinary init container with the sidecars
    started before it. Pod-level requests replace that for cpu, memory and huge pages, and overhead is added. With
    `use_status`, a pod that is being resized counts with the largest of the desired, allocated and actual amounts.
    """
    return {name: _rounded(name, nanos) for name, nanos in _pod_nanos(pod, use_status, {}).items()}


def pod_nonzero_requests(pod: Pod, *, use_status: bool = True) -> tuple[int, int]:
    """Return milli-cpu and bytes of memory as scoring counts them, with defaults for missing requests.

    With pod-level requests, a default applies only to a resource that is named at neither level.
    """
    defaults = dict(_SCORING_DEFAULTS)
    if _pod_level(pod.spec.resources.requests if pod.spec.resources else {}):
        named = _pod_nanos(pod, use_status, {})
        defaults = {name: nanos for name, nanos in defaults.items() if name not in named}
    total = _pod_nanos(pod, use_status, defaults)
    return _rounded(CPU, total.get(CPU, 0)), _rounded(MEMORY, total.get(MEMORY, 0))


def node_allocatable(node: Node) -> dict[str, int]:
    """Return the amounts that pods may use on a node. Raises QuantityError if a quantity is invalid."""
    return {name: resource_value(name, amount) for name, amount in node.status.allocatable.items()}


def container_host_ports(pod: Pod) -> tuple[tuple[str, str, int], ...]:
    """Return the (protocol, host IP, port) that the pod uses. Sidecars count, other init containers do not."""
    running = [*pod.spec.containers, *(c for c in pod.spec.init_containers if c.is_sidecar)]
    return tuple(
        (port.protocol or "TCP", port.host_ip or "0.0.0.0", port.host_port)
        for container in running
        for port in container.ports
        if port.host_port > 0
    )


def is_resize_infeasible(pod: Pod) -> bool:
    """Return whether the node rejected the resize for good, so that the desired amounts do not count."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def is_native_resource(name: str) -> bool:
    """Return whether the resource is Kubernetes' own: no prefix, or one of kubernetes.io."""
    return "/" not in name or is_prefixed_native_resource(name)


def is_prefixed_native_resource(name: str) -> bool:
    return "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    """Return whether a device plugin or an administrator defines the resource, such as nvidia.com/gpu."""
    if is_native_resource(name) or name.startswith("requests."):
        return False
    # Quotas use the name with this prefix, so it must be valid with it.
    return _QUALIFIED_NAME.fullmatch(f"requests.{name}") is not None


def is_huge_page_resource(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def is_attachable_volume_resource(name: str) -> bool:
    return name.startswith(_ATTACHABLE_VOLUMES)


def is_scalar_resource(name: str) -> bool:
    """Return whether the resource is counted by name beside cpu, memory, ephemeral-storage and pods."""
    return (
        is_extended_resource(name)
        or is_huge_page_resource(name)
        or is_prefixed_native_resource(name)
        or is_attachable_volume_resource(name)
    )


def _pod_nanos(pod: Pod, use_status: bool, defaults: Mapping[str, int]) -> _Nanos:
    total = _containers_nanos(pod, use_status, defaults)
    if pod.spec.resources is not None:
        total.update(_pod_level_nanos(pod, use_status))
    _add(total, _nanos(pod.spec.overhead))
    return total


def _containers_nanos(pod: Pod, use_status: bool, defaults: Mapping[str, int]) -> _Nanos:
    actual = _Actual(pod) if use_status else None
    total: _Nanos = {}
    for container in pod.spec.containers:
        _add(total, _container_nanos(container, actual, defaults))
    sidecars: _Nanos = {}
    peak: _Nanos = {}
    for container in pod.spec.init_containers:
        # Only sidecars can be resized; the status of an ordinary init container is out of date.
        own = _container_nanos(container, actual if container.is_sidecar else None, defaults)
        if container.is_sidecar:
            _add(total, own)
            _add(sidecars, own)
            own = sidecars
        else:
            _add(own, sidecars)
        _raise_to(peak, own)
    _raise_to(total, peak)
    return total


class _Actual:
    """The resources that the kubelet reports per container, for pods that are being resized."""

    def __init__(self, pod: Pod) -> None:
        statuses = [*pod.status.container_statuses, *pod.status.init_container_statuses]
        self.statuses: dict[str, ContainerStatus] = {s.name: s for s in statuses if s.resources is not None}
        self.infeasible = bool(self.statuses) and is_resize_infeasible(pod)

    def apply(self, container: Container, wanted: _Nanos) -> _Nanos:
        status = self.statuses.get(container.name)
        if status is None or status.resources is None:
            return wanted
        result: _Nanos = {} if self.infeasible else wanted
        _raise_to(result, _nanos(status.resources.requests))
        _raise_to(result, _nanos(status.allocated_resources))
        return result


def _container_nanos(container: Container, actual: _Actual | None, defaults: Mapping[str, int]) -> _Nanos:
    nanos = _nanos(container.resources.requests)
    if actual is not None:
        nanos = actual.apply(container, nanos)
    return {**defaults, **nanos} if defaults else nanos


def _pod_level_nanos(pod: Pod, use_status: bool) -> _Nanos:
    """Return the pod-level requests, if the spec has any. A resize counts as for containers."""
    wanted = _pod_level(pod.spec.resources.requests if pod.spec.resources else {})
    reported = (pod.status.resources.requests if pod.status.resources else {}, pod.status.allocated_resources)
    if not wanted or not use_status or not any(reported):
        return wanted
    result: _Nanos = {} if is_resize_infeasible(pod) else wanted
    for amounts in reported:
        _raise_to(result, _pod_level(amounts))
    return result


def _pod_level(amounts: ResourceList) -> _Nanos:
    """Return the resources that may be set at the level of the pod."""
    return {
        name: quantity.parse(amount)
        for name, amount in amounts.items()
        if name in (CPU, MEMORY) or is_huge_page_resource(name)
    }


def _nanos(amounts: ResourceList) -> _Nanos:
    return {name: quantity.parse(amount) for name, amount in amounts.items()}


def _rounded(name: str, nanos: int) -> int:
    return quantity.round_up(nanos, 1_000_000 if name == CPU else quantity.NANO)


def _add(total: _Nanos, more: Mapping[str, int]) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _raise_to(total: _Nanos, other: Mapping[str, int]) -> None:
    for name, nanos in other.items():
        if name not in total or total[name] < nanos:
            total[name] = nanos
