"""POST, PUT and PATCH of objects.

The rules of what may be written are the store's, and those of custom kinds the catalog's; here requests are
checked against their path and put into the stored form.
"""

from __future__ import annotations

from typing import Any

from moorage.embedded.apiserver import bodies, field_validation
from moorage.embedded.apiserver.calls import Call, check_namespace
from moorage.embedded.http import Answer
from moorage.framework.ports import PatchType
from moorage.store import refusals
from moorage.store.objects import Raw, Stored
from moorage.store.patches import apply_patch


def create(call: Call) -> Answer:
    raw = call.read_object()
    _check_kind(call, raw)
    field_validation.check(call, raw)
    meta = _metadata(raw)
    _check_namespace_of(call, meta)
    if call.served.resource.namespaced:
        named = meta.get("name") or meta.get("generateName") or ""
        check_namespace(call.store, call.served, call.path.namespace, str(named))
    stored = call.store.create(call.resource, _inward(call, raw, None, ""), dry_run=call.dry_run)
    return call.answer(stored, 201)


def replace(call: Call) -> Answer:
    """PUT of the object, or of its status."""
    raw = call.read_object()
    _check_kind(call, raw)
    field_validation.check(call, raw)
    meta = _metadata(raw)
    _check_namespace_of(call, meta)
    _check_name(call, meta)
    return call.answer(_replace(call, call.current(), raw))


def patch(call: Call) -> Answer:
    """PATCH of the object, or of its status."""
    change, patch_type = bodies.read_patch(call.body, call.content_type)
    current = call.current()
    if len(current.encoded) + len(call.body) > bodies.MAX_BYTES:
        raise bodies.too_large()
    if _is_plain(call) and not _copies(change, patch_type):
        stored = call.store.patch(
            call.resource,
            call.path.name,
            change,
            namespace=call.path.namespace,
            subresource=call.path.subresource,
            patch_type=patch_type,
            dry_run=call.dry_run,
        )
        return call.answer(stored)
    before = _outward(call, current)
    proposed = apply_patch(call.served.resource, before, change, patch_type)
    bodies.check_object(proposed)
    field_validation.check_patched(call, before, proposed)
    meta = {**_metadata(proposed), "name": current.name}
    if current.namespace:
        meta["namespace"] = current.namespace
    return call.answer(_replace(call, current, {**proposed, "metadata": meta}))


def _replace(call: Call, current: Stored, raw: Raw) -> Stored:
    subresource = call.path.subresource
    raw = _inward(call, raw, current, subresource)
    return call.store.replace(call.resource, raw, subresource=subresource, dry_run=call.dry_run)


def _inward(call: Call, raw: Raw, current: Stored | None, subresource: str) -> Raw:
    """An object from outside in the form that is stored, judged by the rules of its kind if it has some."""
    served = call.served
    if served.admission is not None:
        old = _outward(call, current) if current is not None else None
        if served.subresource("status") is not None and subresource != "status":
            raw = _with_status_of(old, raw)
        raw = served.admission.admit(raw, old, subresource)
    return raw if served.view is None else served.view.inward(raw)


def _outward(call: Call, stored: Stored) -> Raw:
    return stored.raw if call.served.view is None else call.served.view.outward(stored.raw)


def _with_status_of(old: Raw | None, raw: Raw) -> Raw:
    """Where status has a door of its own, it cannot be written through the main one."""
    rest = {field: value for field, value in raw.items() if field != "status"}
    return {**rest, "status": old["status"]} if old is not None and "status" in old else rest


def _is_plain(call: Call) -> bool:
    """Whether the store can patch the object by itself."""
    served = call.served
    return served.view is None and served.admission is None and not field_validation.wanted(call)


def _copies(change: Any, patch_type: str) -> bool:
    """Whether a patch can make much out of little."""
    if patch_type != PatchType.JSON or not isinstance(change, list):
        return False
    return any(isinstance(operation, dict) and operation.get("op") == "copy" for operation in change)


def _check_kind(call: Call, raw: Raw) -> None:
    """The body may leave out kind and apiVersion, but not name others."""
    resource = call.served.resource
    api_version, kind = raw.get("apiVersion"), raw.get("kind")
    if api_version and api_version != resource.api_version:
        raise refusals.bad_request(
            f"the API version in the data ({_short(api_version)}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind and kind != resource.kind:
        raise refusals.bad_request(
            f'{_short(kind)} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"the body is of another kind than the path"
        )


def _metadata(raw: Raw) -> Raw:
    meta = raw.get("metadata")
    if meta is None:
        meta = raw["metadata"] = {}
    if not isinstance(meta, dict):
        raise refusals.bad_request("metadata must be an object")
    for field in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if meta.get(field) is not None and not isinstance(meta[field], str):
            raise refusals.bad_request(f"metadata.{field} must be a text")
    return meta


def _check_namespace_of(call: Call, meta: Raw) -> None:
    """The namespace of the path is the one that counts; the object may repeat it."""
    namespace = call.path.namespace
    if not call.served.resource.namespaced:
        if meta.get("namespace"):
            raise refusals.bad_request("namespace may not be set on an object of the cluster")
    elif not meta.get("namespace"):
        meta["namespace"] = namespace
    elif meta["namespace"] != namespace:
        raise refusals.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_name(call: Call, meta: Raw) -> None:
    name = meta.get("name")
    if not name:
        raise refusals.bad_request(
            f"the name of the object ({call.path.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != call.path.name:
        raise refusals.bad_request(
            f"the name of the object ({_short(name)}) does not match the name on the URL ({call.path.name})"
        )


def _short(value: Any) -> str:
    return str(value)[:100]
