"""JSON to records and back, and the check of what a record's strings mean.

Decoding is one msgspec call. When that fails, nulls are taken out and it is tried once more, since API
servers send null for empty lists and maps. What then still fails becomes an ObjectError naming object and
field, so that one bad object can be set aside while thousands of good ones pass.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial, singledispatch
from typing import Any, TypeAlias

import msgspec

from moorage.api import quantity
from moorage.api.errors import ObjectError, QuantityError, SelectorError
from moorage.api.meta import LabelSelector, Object, is_object_name
from moorage.api.node import Node
from moorage.api.node_selectors import compile_preferred_terms
from moorage.api.pod import Pod, PodAffinityTerm, ResourceRequirements
from moorage.api.pod_affinity import compile_pod_terms
from moorage.api.quantity import ResourceList
from moorage.api.resources import AnyObject, ObjectType, Resource, Unstructured
from moorage.api.selectors import compile_label_selector
from moorage.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim

JSON: TypeAlias = bytes | bytearray | memoryview | str | msgspec.Raw

_WHERE = re.compile(r"(?P<message>.*) - at `(?P<key>key in )?\$(?P<path>.*)`", re.DOTALL)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(resource: Resource, data: JSON) -> AnyObject:
    """The object in a piece of JSON; ObjectError if it is none of this resource."""
    if resource.type is not Unstructured:
        try:
            return _decoder(resource).decode(data)
        except _UNREADABLE:
            pass  # the slow path below tries again without nulls, and words the error
    return convert(resource, _parse(resource, data))


def reader(resource: Resource) -> Callable[[JSON], AnyObject]:
    """`decode` for one resource, for those who call it thousands of times in a row."""
    if resource.type is Unstructured:
        return partial(decode, resource)
    fast = _decoder(resource).decode

    def read(data: JSON) -> AnyObject:
        try:
            return fast(data)
        except _UNREADABLE:
            return decode(resource, data)

    return read


def convert(resource: Resource, raw: dict[str, Any]) -> AnyObject:
    """The object in an already parsed JSON value; ObjectError if it is none of this resource."""
    try:
        return _convert(resource, raw)
    except _UNREADABLE:
        pass
    try:
        return _convert(resource, _without_nulls(raw))
    except _UNREADABLE as error:
        raise _object_error(resource, raw, error) from error


def validate(obj: AnyObject) -> None:
    """Checks the quantities and selectors an object carries; ObjectError names it and the first bad field.

    Selectors of pods that have a node already are not checked: such a pod must stay in the accounting, and
    plugins ignore the terms of existing pods that they cannot parse.
    """
    if not isinstance(obj, Object):
        return
    for path, amounts in _amounts(obj):
        for name, amount in amounts.items():
            try:
                quantity.parse(amount)
            except QuantityError as error:
                raise ObjectError(_name_of(obj), f"{path}[{name}]", str(error)) from error
    if isinstance(obj, Pod) and not obj.is_assigned:
        _check_selectors(obj)


def check_identity(resource: Resource, obj: AnyObject) -> None:
    """ObjectError for an object that cannot be asked for by its name: a broken server or proxy sent it."""
    meta = obj.metadata
    if not is_object_name(meta.name):
        field, text = "metadata.name", meta.name
    elif resource.namespaced and not is_object_name(meta.namespace):
        field, text = "metadata.namespace", meta.namespace
    else:
        return
    whose = f"{resource.kind} {obj.key!a}"
    raise ObjectError(whose, field, f"{text!a} names no object; look at the server or proxy that sends it")


def encode(obj: AnyObject) -> bytes:
    """JSON without the fields that have their default value."""
    return msgspec.json.encode(obj.raw if isinstance(obj, Unstructured) else obj)


def to_builtins(obj: AnyObject) -> dict[str, Any]:
    """Plain dictionaries and lists as `encode` would write them. An Unstructured gives its own dictionary."""
    if isinstance(obj, Unstructured):
        return obj.raw
    # By way of JSON, because msgspec.to_builtins leaves tuples where JSON has lists.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return plain


_decoders: dict[ObjectType, msgspec.json.Decoder[AnyObject]] = {}


def _decoder(resource: Resource) -> msgspec.json.Decoder[AnyObject]:
    form = resource.type
    if form not in _decoders:
        _decoders[form] = msgspec.json.Decoder(form)
    return _decoders[form]


def _parse(resource: Resource, data: JSON) -> dict[str, Any]:
    try:
        raw = msgspec.json.decode(data)
    except _UNREADABLE as error:
        raise ObjectError(
            _describe(resource, _metadata_only(data)), "", f"not readable as JSON: {error}"
        ) from error
    if not isinstance(raw, dict):
        raise ObjectError(_describe(resource, {}), "", f"expected a JSON object, found {type(raw).__name__}")
    return raw


class _Identity(msgspec.Struct):
    metadata: dict[str, Any] = {}


def _metadata_only(data: JSON) -> dict[str, Any]:
    """What names an object that is not readable as a whole, for instance because of a number out of range."""
    try:
        return {"metadata": msgspec.json.decode(data, type=_Identity).metadata}
    except _UNREADABLE:
        return {}


def _convert(resource: Resource, raw: dict[str, Any]) -> AnyObject:
    if resource.type is Unstructured:
        return Unstructured(raw)
    return msgspec.convert(raw, resource.type)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _object_error(resource: Resource, raw: dict[str, Any], error: Exception) -> ObjectError:
    match = _WHERE.fullmatch(str(error))
    if match is None:
        return ObjectError(_describe(resource, raw), "", f"{error}; correct the object")
    # msgspec writes the keys of maps as [...]; Kubernetes paths end at the map.
    path = match["path"].replace("[...]", "").removeprefix(".")
    return ObjectError(_describe(resource, raw), path, f"{match['message']}; correct this field")


def _describe(resource: Resource, raw: dict[str, Any]) -> str:
    """Kind and key as far as they can be read from a broken object."""
    metadata = raw.get("metadata")
    parts = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, dict) else []
    key = "/".join(part for part in parts if isinstance(part, str) and part)
    return f"{resource.kind} {key}" if key else f"{resource.kind} of unknown name"


_Amounts = Iterator[tuple[str, ResourceList]]
_Selectors = Iterator[tuple[str, LabelSelector | None]]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _check_selectors(pod: Pod) -> None:
    # Compiled as a whole, which is remembered for the attempt; one by one to say which is bad.
    listed = itertools.chain(
        _spread_selectors(pod), _affinity_selectors(pod) if compile_pod_terms(pod).errors else ()
    )
    for path, selector in listed:
        try:
            compile_label_selector(selector)
        except SelectorError as error:
            raise ObjectError(_name_of(pod), f"{path}.{error.field}", error.message) from error
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is not None:
        try:
            compile_preferred_terms(affinity.preferred_during_scheduling_ignored_during_execution)
        except SelectorError as error:
            path = f"spec.affinity.nodeAffinity.{_PREFERRED}"
            raise ObjectError(_name_of(pod), f"{path}{error.field}", error.message) from error


@singledispatch
def _amounts(obj: Object) -> _Amounts:
    """Maps of quantities with their paths; most kinds have none."""
    return iter(())


@_amounts.register
def _(obj: Pod) -> _Amounts:
    spec, status = obj.spec, obj.status
    for index, container in enumerate(spec.containers):
        yield from _requirements("spec.containers[{}].resources", container.resources, index)
    for index, container in enumerate(spec.init_containers):
        yield from _requirements("spec.initContainers[{}].resources", container.resources, index)
    yield from _requirements("spec.resources", spec.resources)
    if spec.overhead:
        yield "spec.overhead", spec.overhead
    for index, reported in enumerate(status.container_statuses):
        if reported.allocated_resources:
            yield f"status.containerStatuses[{index}].allocatedResources", reported.allocated_resources
        yield from _requirements("status.containerStatuses[{}].resources", reported.resources, index)
    for index, reported in enumerate(status.init_container_statuses):
        if reported.allocated_resources:
            yield f"status.initContainerStatuses[{index}].allocatedResources", reported.allocated_resources
        yield from _requirements("status.initContainerStatuses[{}].resources", reported.resources, index)
    if status.allocated_resources:
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


def _requirements(
    path: str, resources: ResourceRequirements | None, index: int = 0
) -> tuple[tuple[str, ResourceList], ...]:
    """Nothing where nothing is asked for: tens of thousands of pods are read at a start."""
    if resources is None or not (resources.requests or resources.limits):
        return ()
    where = path.format(index)
    return (f"{where}.requests", resources.requests), (f"{where}.limits", resources.limits)


def _spread_selectors(pod: Pod) -> _Selectors:
    for index, constraint in enumerate(pod.spec.topology_spread_constraints):
        yield f"spec.topologySpreadConstraints[{index}].labelSelector", constraint.label_selector


def _affinity_selectors(pod: Pod) -> _Selectors:
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
        for index, preferred in enumerate(group.preferred_during_scheduling_ignored_during_execution):
            path = f"spec.affinity.{name}.{_PREFERRED}[{index}].podAffinityTerm"
            yield from _term_selectors(path, preferred.pod_affinity_term)


def _term_selectors(path: str, term: PodAffinityTerm) -> _Selectors:
    yield f"{path}.labelSelector", term.label_selector
    yield f"{path}.namespaceSelector", term.namespace_selector


def _name_of(obj: Object) -> str:
    kind = obj.kind or type(obj).__name__
    return f"{kind} {obj.key}" if obj.key else f"{kind} of unknown name"
