"""Checks of the values inside decoded objects that are only texts to the decoder: quantities and selectors.

This is no replacement for the API server's validation: it finds what would otherwise fail later, in a plugin.
"""

from collections.abc import Iterator
from functools import singledispatch

from mooring.api import quantity
from mooring.api.errors import ObjectError, QuantityError, SelectorError
from mooring.api.meta import LabelSelector, Object
from mooring.api.node import Node
from mooring.api.pod import Pod, PodAffinityTerm, ResourceRequirements
from mooring.api.quantity import ResourceList
from mooring.api.selectors import compile_label_selector, compile_preferred_terms
from mooring.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim

_Amounts = Iterator[tuple[str, ResourceList]]
_Selectors = Iterator[tuple[str, LabelSelector | None]]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check(obj: Object) -> None:
    """Raises ObjectError for the first bad value."""
    for path, amounts in _amounts(obj):
        for name, amount in amounts.items():
            try:
                quantity.parse(amount)
            except QuantityError as error:
                raise ObjectError(_describe(obj), f"{path}[{name}]", str(error)) from error
    if isinstance(obj, Pod) and not obj.is_assigned:
        _check_selectors(obj)


def _check_selectors(pod: Pod) -> None:
    for path, selector in _selectors(pod):
        try:
            compile_label_selector(selector)
        except SelectorError as error:
            raise ObjectError(_describe(pod), f"{path}.{error.field}", error.message) from error
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is not None:
        try:
            compile_preferred_terms(affinity.preferred_during_scheduling_ignored_during_execution)
        except SelectorError as error:
            path = f"spec.affinity.nodeAffinity.{_PREFERRED}"
            raise ObjectError(_describe(pod), f"{path}{error.field}", error.message) from error


@singledispatch
def _amounts(obj: Object) -> _Amounts:
    """Maps of quantities with their paths; most kinds have none."""
    return iter(())


@_amounts.register
def _(obj: Pod) -> _Amounts:
    spec, status = obj.spec, obj.status
    for index, container in enumerate(spec.containers):
        yield from _requirements(f"spec.containers[{index}].resources", container.resources)
    for index, container in enumerate(spec.init_containers):
        yield from _requirements(f"spec.initContainers[{index}].resources", container.resources)
    yield from _requirements("spec.resources", spec.resources)
    yield "spec.overhead", spec.overhead
    for index, reported in enumerate(status.container_statuses):
        yield f"status.containerStatuses[{index}].allocatedResources", reported.allocated_resources
        yield from _requirements(f"status.containerStatuses[{index}].resources", reported.resources)
    for index, reported in enumerate(status.init_container_statuses):
        yield f"status.initContainerStatuses[{index}].allocatedResources", reported.allocated_resources
        yield from _requirements(f"status.initContainerStatuses[{index}].resources", reported.resources)
    yield "status.allocatedResources", status.allocated_resources
    yield from _requirements("status.resources", status.resources)


@_amounts.register
def _(obj: Node) -> _Amounts:
    yield "status.allocatable", obj.status.allocatable
    yield "status.capacity", obj.status.capacity


@_amounts.register
def _(obj: PersistentVolumeClaim) -> _Amounts:
    yield "spec.resources.requests", obj.spec.resources.requests
    yield "status.capacity", obj.status.capacity


@_amounts.register
def _(obj: PersistentVolume) -> _Amounts:
    yield "spec.capacity", obj.spec.capacity


@_amounts.register
def _(obj: CSIStorageCapacity) -> _Amounts:
    sizes = {"capacity": obj.capacity, "maximumVolumeSize": obj.maximum_volume_size}
    yield "", {name: size for name, size in sizes.items() if size is not None}


def _requirements(path: str, resources: ResourceRequirements | None) -> _Amounts:
    if resources is not None:
        yield f"{path}.requests", resources.requests
        yield f"{path}.limits", resources.limits


def _selectors(pod: Pod) -> _Selectors:
    for index, constraint in enumerate(pod.spec.topology_spread_constraints):
        yield f"spec.topologySpreadConstraints[{index}].labelSelector", constraint.label_selector
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for name, group in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if group is None:
            continue
        for index, term in enumerate(group.required_during_scheduling_ignored_during_execution):
            yield from _term_selectors(f"spec.affinity.{name}.{_REQUIRED}[{index}]", term)
        for index, wish in enumerate(group.preferred_during_scheduling_ignored_during_execution):
            path = f"spec.affinity.{name}.{_PREFERRED}[{index}].podAffinityTerm"
            yield from _term_selectors(path, wish.pod_affinity_term)


def _term_selectors(path: str, term: PodAffinityTerm) -> _Selectors:
    yield f"{path}.labelSelector", term.label_selector
    yield f"{path}.namespaceSelector", term.namespace_selector


def _describe(obj: Object) -> str:
    kind = obj.kind or type(obj).__name__
    return f"{kind} {obj.key}" if obj.key else f"{kind} of unknown name"
