"""The scale subresource: one number of an object, read and written without knowing its kind."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.errors import ObjectError, SelectorError
from moorage.api.meta import Int64, LabelSelector, Record
from moorage.api.selectors import compile_label_selector, selector_from_labels
from moorage.embedded.apiserver import bodies
from moorage.embedded.apiserver.calls import Call, convert
from moorage.embedded.catalog.kinds import ScalePaths
from moorage.embedded.http import Answer, json_answer
from moorage.framework.ports import PatchType
from moorage.store import refusals
from moorage.store.objects import Raw, Stored
from moorage.store.patches import apply_patch

_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_LARGEST = 2**31 - 1


class ScaleSpec(Record):
    replicas: Int64 = 0


class ScaleMeta(Record):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Scale(Record):
    """autoscaling/v1 Scale, as far as it is written."""

    kind: str = ""
    metadata: ScaleMeta = ScaleMeta()
    spec: ScaleSpec = ScaleSpec()


def get(call: Call) -> Answer:
    return json_answer(_scale_of(call.current(), _paths(call)))


def replace(call: Call) -> Answer:
    return _write(call, call.read_object())


def patch(call: Call) -> Answer:
    change, patch_type = bodies.read_patch(call.body, call.content_type)
    if patch_type == PatchType.STRATEGIC:
        patch_type = PatchType.MERGE  # a Scale has no lists, so they mean the same
    before = _scale_of(call.current(), _paths(call))
    after = apply_patch(call.served.resource, before, change, patch_type)
    bodies.check_object(after)
    return _write(call, after)


def _write(call: Call, raw: Raw) -> Answer:
    if raw.get("kind") not in (None, "", "Scale"):
        raise refusals.bad_request(f"{raw['kind']!s:.100} cannot be handled as a Scale")
    scale, paths, name = convert(raw, Scale, "Scale"), _paths(call), call.path.name
    if scale.metadata.name not in ("", name):
        raise refusals.bad_request(
            f"the name of the object ({scale.metadata.name[:100]}) does not match the name on the URL "
            f"({name})"
        )
    replicas = scale.spec.replicas
    if not 0 <= replicas <= _LARGEST:
        why = "must be greater than or equal to 0" if replicas < 0 else "must fit into 32 bits"
        problem = f"Invalid value: {replicas}: {why}"
        raise refusals.invalid(call.served.resource, name, "spec.replicas", problem)
    change: Any = replicas
    for field in reversed(paths.replicas):
        change = {field: change}
    preconditions = {"uid": scale.metadata.uid, "resourceVersion": scale.metadata.resource_version}
    given = {field: value for field, value in preconditions.items() if value}
    if given:
        change = {**change, "metadata": given}
    stored = call.store.patch(
        call.resource,
        name,
        change,
        namespace=call.path.namespace,
        patch_type=PatchType.MERGE,
        dry_run=call.dry_run,
    )
    return json_answer(_scale_of(stored, paths))


def _paths(call: Call) -> ScalePaths:
    if call.served.scale is None:
        raise refusals.no_subresource(call.served.resource, "scale")
    return call.served.scale


def _scale_of(stored: Stored, paths: ScalePaths) -> Raw:
    meta = stored.raw["metadata"]
    status: Raw = {"replicas": _number(stored.raw, paths.status_replicas)}
    selector = _selector(stored.raw, paths.selector)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in _META if field in meta},
        "spec": {"replicas": _number(stored.raw, paths.replicas)},
        "status": status,
    }


def _look_up(raw: Any, path: tuple[str, ...]) -> Any:
    for field in path:
        raw = raw.get(field) if isinstance(raw, dict) else None
    return raw


def _number(raw: Raw, path: tuple[str, ...]) -> int:
    value = _look_up(raw, path)
    return value if isinstance(value, int) else 0


def _selector(raw: Raw, path: tuple[str, ...] | None) -> str:
    """As text; from a text, a labelSelector or plain labels."""
    value = _look_up(raw, path) if path is not None else None
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    try:
        if "matchLabels" in value or "matchExpressions" in value:
            return str(compile_label_selector(msgspec.convert(value, LabelSelector)))
        return str(selector_from_labels(value))
    except (SelectorError, ObjectError, msgspec.ValidationError, TypeError):
        return ""
