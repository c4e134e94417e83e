"""Requests of pods and allocatable amounts of nodes as integers: cpu in milli-units, all others in base units.

Sums are computed in nano-units and rounded up once at the end, so `0.5m` twice is one milli-cpu and not two. Plugins
compare requests with free capacity, and the cache adds up the pods of a node. Follows
k8s.io/component-helpers/resource/helpers.go, with pod-level resources (KEP-2837), sidecars (KEP-753) and in-place
resize (KEP-1287).
"""

import re
from collections.abc import Callable, Mapping

from moorage.api import quantity
from moorage.api.node import Node
from moorage.api.pod import Container, ContainerStatus, Pod, PodStatus
from moorage.api.quantity import Quantity, ResourceList
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour

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


def pod_requests(pod: Pod, *, use_status: bool = True, behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> dict[str, int]:
    """Return the effective request of a pod. Raises QuantityError if a quantity is invalid.

    Per resource, it is the larger of (containers + sidecars) and of each ordinary init container with the sidecars
    started before it. Pod-level requests replace that for cpu, memory and huge pages, and overhead is added. With
    `use_status`, a pod that is being resized counts with the largest of the desired, allocated and actual amounts, as
    kube-scheduler of the version computes them.
    """
    return {name: _rounded(name, nanos) for name, nanos in _pod_nanos(pod, use_status, {}, behaviour).items()}


def pod_nonzero_requests(
    pod: Pod, *, use_status: bool = True, behaviour: Behaviour = DEFAULT_BEHAVIOUR
) -> tuple[int, int]:
    """Return milli-cpu and bytes of memory as scoring counts them, with defaults for missing requests.

    With pod-level requests, a default applies only to a resource that is named at neither level.
    """
    defaults = dict(_SCORING_DEFAULTS)
    if _pod_level(pod.spec.resources.requests if pod.spec.resources else {}):
        named = _pod_nanos(pod, use_status, {}, behaviour)
        defaults = {name: nanos for name, nanos in defaults.items() if name not in named}
    total = _pod_nanos(pod, use_status, defaults, behaviour)
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


def _pod_nanos(pod: Pod, use_status: bool, defaults: Mapping[str, int], behaviour: Behaviour) -> _Nanos:
    if use_status and _reports(pod.status):
        total = _largest_sum(pod, defaults) if behaviour.resize_takes_largest_sum else _sum_of_largest(pod, defaults)
    else:
        use_status = False
        total = _summed(pod, _asked, defaults)
    if pod.spec.resources is not None:
        total.update(_pod_level_nanos(pod, use_status, behaviour))
    _add(total, _nanos(pod.spec.overhead))
    return total


def _reports(status: PodStatus) -> bool:
    """Return whether the status says something about resources. It never does for a pending pod."""
    return bool(
        status.container_statuses
        or status.init_container_statuses
        or status.resources
        or status.allocated_resources
        or status.conditions
    )


Amounts = Callable[[Container], _Nanos]


def _summed(pod: Pod, amounts: Amounts, defaults: Mapping[str, int]) -> _Nanos:
    """Add up the amounts of the containers, by the rule of KEP-753."""

    def own_of(container: Container) -> _Nanos:
        nanos = amounts(container)
        return {**defaults, **nanos} if defaults else nanos

    total: _Nanos = {}
    for container in pod.spec.containers:
        _add(total, own_of(container))
    sidecars: _Nanos = {}
    peak: _Nanos = {}
    for container in pod.spec.init_containers:
        own = own_of(container)
        if container.is_sidecar:
            _add(total, own)
            _add(sidecars, own)
            own = sidecars
        else:
            _add(own, sidecars)
        _raise_to(peak, own)
    _raise_to(total, peak)
    return total


def _asked(container: Container) -> _Nanos:
    return _nanos(container.resources.requests)


def _sum_of_largest(pod: Pod, defaults: Mapping[str, int]) -> _Nanos:
    """Count each container with the largest of its amounts, as kube-scheduler did up to 1.36."""
    listed = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    statuses = {status.name: status for status in listed if status.resources is not None}
    infeasible = bool(statuses) and is_resize_infeasible(pod)
    # Only sidecars can be resized; the status of an ordinary init container is out of date.
    ordinary = {container.name for container in pod.spec.init_containers if not container.is_sidecar}

    def largest(container: Container) -> _Nanos:
        wanted = _nanos(container.resources.requests)
        status = statuses.get(container.name)
        if status is None or status.resources is None or container.name in ordinary:
            return wanted
        result: _Nanos = {} if infeasible else wanted
        _raise_to(result, _nanos(status.resources.requests))
        _raise_to(result, _nanos(status.allocated_resources))
        return result

    return _summed(pod, largest, defaults)


def _largest_sum(pod: Pod, defaults: Mapping[str, int]) -> _Nanos:
    """Return the largest of the sums of the desired, allocated and actual amounts, as kube-scheduler does from 1.37."""
    status, infeasible = pod.status, is_resize_infeasible(pod)
    known: dict[str, ContainerStatus] = {}
    for found in (*status.container_statuses, *status.init_container_statuses):
        if found.resources is not None or found.allocated_resources:
            known.setdefault(found.name, found)
    total = {} if infeasible else _summed(pod, _asked, defaults)
    if status.allocated_resources and status.resources is not None and status.resources.requests:
        _raise_to(total, _nanos(status.allocated_resources))
        _raise_to(total, _nanos(status.resources.requests))
        return total

    def allocated(container: Container) -> _Nanos:
        found = known.get(container.name)
        if found is not None and found.allocated_resources:
            return _nanos(found.allocated_resources)
        return {} if infeasible else _asked(container)

    def actual(container: Container) -> _Nanos:
        found = known.get(container.name)
        if found is not None and found.resources is not None and found.resources.requests:
            return _nanos(found.resources.requests)
        return allocated(container)

    if known or infeasible:
        _raise_to(total, _summed(pod, allocated, defaults))
        _raise_to(total, _summed(pod, actual, defaults))
    return total


def _pod_level_nanos(pod: Pod, use_status: bool, behaviour: Behaviour) -> _Nanos:
    """Return the pod-level requests, if the spec has any. A resize counts as for containers."""
    wanted = _pod_level(pod.spec.resources.requests if pod.spec.resources else {})
    status = pod.status
    if not wanted or not use_status or status.resources is None:
        return wanted
    result: _Nanos = {} if is_resize_infeasible(pod) else dict(wanted)
    for amounts in (status.resources.requests, status.allocated_resources):
        _raise_to(result, _pod_level(amounts))
    return result if behaviour.resize_takes_largest_sum else {name: result.get(name, 0) for name in wanted}


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
