"""Decode JSON to records, encode records, and validate the quantities and selectors in them.

Decoding is one msgspec call. If it fails, it is tried once more without nulls, because API servers send null
for empty lists and maps. If that fails too, an ObjectError names the object and the field, so that the caller
can skip one bad object among thousands of good ones.
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
    """Return the object in a piece of JSON. Raises ObjectError if it is not an object of this resource."""
    if resource.type is not Unstructured:
        try:
            return _decoder(resource).decode(data)
        except _UNREADABLE:
            pass  # the slow path below tries again without nulls and builds the error
    return convert(resource, _parse(resource, data))


def reader(resource: Resource) -> Callable[[JSON], AnyObject]:
    """Return `decode` for one resource, for callers that decode thousands of objects in a row."""
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
    """Return the object in a parsed JSON value. Raises ObjectError if it is not an object of this resource."""
    try:
        return _convert(resource, raw)
    except _UNREADABLE:
        pass
    try:
        return _convert(resource, _without_nulls(raw))
    except _UNREADABLE as error:
        raise _object_error(resource, raw, error) from error


def validate(obj: AnyObject) -> None:
    """Check the quantities and selectors of an object. Raises ObjectError with the first bad field.

    Selectors of assigned pods are not checked: such a pod must stay accounted, and plugins ignore terms of
    existing pods that they cannot parse. Node preferences are not checked either: the API server accepts some that
    cannot be parsed (Gt with a word), and as upstream only PreScore of NodeAffinity fails then.
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
    """Raise ObjectError if the object has no valid name. Only a broken server or proxy sends such an object."""
    meta = obj.metadata
    if not is_object_name(meta.name):
        field, text = "metadata.name", meta.name
    elif resource.namespaced and not is_object_name(meta.namespace):
        field, text = "metadata.namespace", meta.namespace
    else:
        return
    whose = f"{resource.kind} {obj.key!a}"
    raise ObjectError(whose, field, f"{text!a} is not a valid object name; check the server or proxy that sent it")


def encode(obj: AnyObject) -> bytes:
    """Return JSON without the fields that have their default value."""
    return msgspec.json.encode(obj.raw if isinstance(obj, Unstructured) else obj)


def to_builtins(obj: AnyObject) -> dict[str, Any]:
    """Return the dictionaries and lists that `encode` would write. An Unstructured returns its own dictionary."""
    if isinstance(obj, Unstructured):
        return obj.raw
    # By way of JSON, because msgspec.to_builtins leaves tuples where JSON has lists.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return plain


_decoders: dict[ObjectType, msgspec.json.Decoder[AnyObject]] = {}


def _decoder(resource: Resource) -> msgspec.json.Decoder[AnyObject]:
    record_type = resource.type
    if record_type not in _decoders:
        _decoders[record_type] = msgspec.json.Decoder(record_type)
    return _decoders[record_type]


def _parse(resource: Resource, data: JSON) -> dict[str, Any]:
    try:
        raw = msgspec.json.decode(data)
    except _UNREADABLE as error:
        raise ObjectError(_describe(resource, _metadata_only(data)), "", f"not readable as JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ObjectError(_describe(resource, {}), "", f"expected a JSON object, found {type(raw).__name__}")
    return raw


class _Identity(msgspec.Struct):
    metadata: dict[str, Any] = {}


def _metadata_only(data: JSON) -> dict[str, Any]:
    """Return the metadata of an object that cannot be decoded as a whole, for an error message."""
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
    """Return kind and key of a broken object, if they can be read."""
    metadata = raw.get("metadata")
    parts = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, dict) else []
    key = "/".join(part for part in parts if isinstance(part, str) and part)
    return f"{resource.kind} {key}" if key else f"{resource.kind} of unknown name"


_Amounts = Iterator[tuple[str, ResourceList]]
_Selectors = Iterator[tuple[str, LabelSelector | None]]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _check_selectors(pod: Pod) -> None:
    # Compiled as a whole, because that result is cached for the attempt; one by one to find the bad one.
    listed = itertools.chain(_spread_selectors(pod), _affinity_selectors(pod) if compile_pod_terms(pod).errors else ())
    for path, selector in listed:
        try:
            compile_label_selector(selector)
        except SelectorError as error:
            raise ObjectError(_name_of(pod), f"{path}.{error.field}", error.message) from error


@singledispatch
def _amounts(obj: Object) -> _Amounts:
    """Return the maps of quantities with their paths; most kinds have none."""
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
    """Return the resource lists of a container. Empty ones are skipped: a start reads tens of thousands of pods."""
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
    for name, group in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
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
