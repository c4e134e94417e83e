"""POST, PUT, PATCH and DELETE of objects.

The store decides what may be written, and for custom kinds the catalog does. Here requests are checked
against their path and converted to the stored form.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.api.errors import NotFound
from moorage.api.meta import Int64, Record
from moorage.embedded.apiserver import bodies, field_validation, urls
from moorage.embedded.apiserver.calls import ApiCall, check_namespace, convert, stored_fields, success
from moorage.embedded.http import ServerAnswer
from moorage.framework.ports import PatchType
from moorage.store import refusals, writes
from moorage.store.objects import Raw, Stored
from moorage.store.patches import apply_patch
from moorage.store.reading import StoreListing

_POLICIES = ("Orphan", "Background", "Foreground")
_GIVE_BACK = frozenset(
    {
        resources.PODS,
        resources.SERVICES,
        resources.SERVICE_ACCOUNTS,
        resources.PERSISTENT_VOLUMES,
        resources.PERSISTENT_VOLUME_CLAIMS,
        resources.POD_TEMPLATES,
        resources.RESOURCE_QUOTAS,
    }
)
"""Kinds whose deletion is answered with the object, also when it is gone at once."""


def create(call: ApiCall) -> ServerAnswer:
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


def replace(call: ApiCall) -> ServerAnswer:
    """Answer a PUT of the object or its status."""
    raw = call.read_object()
    _check_kind(call, raw)
    field_validation.check(call, raw)
    meta = _metadata(raw)
    _check_namespace_of(call, meta)
    _check_name(call, meta)
    return call.answer(_replace(call, call.current(), raw))


def patch(call: ApiCall) -> ServerAnswer:
    """Answer a PATCH of the object or its status."""
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


def _replace(call: ApiCall, current: Stored, raw: Raw) -> Stored:
    subresource = call.path.subresource
    raw = _inward(call, raw, current, subresource)
    return call.store.replace(call.resource, raw, subresource=subresource, dry_run=call.dry_run)


def _inward(call: ApiCall, raw: Raw, current: Stored | None, subresource: str) -> Raw:
    """Return an object from a client in its stored form, after the admission of its kind."""
    served = call.served
    if served.admission is not None:
        old = _outward(call, current) if current is not None else None
        if served.subresource("status") is not None and subresource != "status":
            raw = _with_status_of(old, raw)
        raw = served.admission.admit(raw, old, subresource)
    return raw if served.view is None else served.view.inward(raw)


def _outward(call: ApiCall, stored: Stored) -> Raw:
    return stored.raw if call.served.view is None else call.served.view.outward(stored.raw)


def _with_status_of(old: Raw | None, raw: Raw) -> Raw:
    """Keep the old status: it is written through its subresource only."""
    rest = {field: value for field, value in raw.items() if field != "status"}
    return {**rest, "status": old["status"]} if old is not None and "status" in old else rest


def _is_plain(call: ApiCall) -> bool:
    """Whether the store can patch the object by itself."""
    served = call.served
    return served.view is None and served.admission is None and not field_validation.wanted(call)


def _copies(change: Any, patch_type: str) -> bool:
    """Return whether a small patch can create a large object."""
    if patch_type != PatchType.JSON or not isinstance(change, list):
        return False
    return any(isinstance(operation, dict) and operation.get("op") == "copy" for operation in change)


def _check_kind(call: ApiCall, raw: Raw) -> None:
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


def _check_namespace_of(call: ApiCall, meta: Raw) -> None:
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


def _check_name(call: ApiCall, meta: Raw) -> None:
    name = meta.get("name")
    if not name:
        raise refusals.bad_request(
            f"the name of the object ({call.path.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.path.name:
        raise refusals.bad_request(
            f"the name of the object ({_short(name)}) does not match the name on the URL ({call.path.name})"
        )


def _short(value: Any) -> str:
    return str(value)[:100]


class Preconditions(Record):
    """What must hold of the object."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteRequest(Record):
    """Options of a deletion; unset fields mean the default of the kind."""

    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions = Preconditions()
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()


def delete(call: ApiCall) -> ServerAnswer:
    options = options_of(call)
    stored = remove(call, call.path.name, call.path.namespace, options)
    if call.resource in _GIVE_BACK or not writes.is_over(stored.raw):
        return call.answer(stored)
    resource = call.served.resource
    details = {"name": stored.name, "group": resource.group, "kind": resource.plural, "uid": stored.uid}
    return success(details={field: value for field, value in details.items() if value})


def delete_collection(call: ApiCall) -> ServerAnswer:
    """Delete all objects of a list one by one."""
    options = options_of(call)
    chosen = urls.list_options(call.query, watch=False)
    listing = call.store.list(
        call.resource,
        namespace=call.path.namespace,
        label_selector=chosen.label_selector,
        field_selector=stored_fields(call.served, chosen.field_selector),
        limit=chosen.limit,
        page=chosen.page,
    )
    removed: list[Stored] = []
    for stored in listing.items:
        try:
            removed.append(remove(call, stored.name, stored.namespace, options))
        except NotFound:
            continue
    return ServerAnswer(200, call.presenter.list(StoreListing(removed, call.store.version, listing.next_page)))


def remove(call: ApiCall, name: str, namespace: str, options: DeleteRequest) -> Stored:
    """Deletes one object of the call's kind."""
    return call.store.delete(
        call.resource,
        name,
        namespace=namespace,
        uid=options.preconditions.uid or "",
        resource_version=options.preconditions.resource_version or "",
        grace_period=options.grace_period_seconds,
        propagation=options.propagation_policy or "",
        dry_run=call.dry_run or bool(options.dry_run),
    )


def options_of(call: ApiCall) -> DeleteRequest:
    """Read the options from the body, or from the query if there is none."""
    if call.body.strip():
        raw = bodies.read_object(call.body, call.content_type)
        if raw.get("kind") not in (None, "", "DeleteOptions"):
            raise refusals.bad_request(f"the body of a deletion must be DeleteOptions, not {raw['kind']!s:.100}")
        return checked(convert({f: v for f, v in raw.items() if v is not None}, DeleteRequest, "DeleteOptions"))
    return checked(
        DeleteRequest(
            grace_period_seconds=urls.number(call.query, "gracePeriodSeconds"),
            orphan_dependents=urls.flag(call.query, "orphanDependents"),
            propagation_policy=call.query.get("propagationPolicy"),
        )
    )


def checked(options: DeleteRequest) -> DeleteRequest:
    """Convert the older `orphanDependents` to a policy. Raise if the options contradict each other."""
    policy, orphan = options.propagation_policy, options.orphan_dependents
    if policy and orphan is not None:
        problem = "Forbidden: orphanDependents and deletionPropagation cannot be both set"
        raise refusals.failure(422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {problem}')
    if policy and policy not in _POLICIES:
        known = ", ".join(f'"{value}"' for value in (*sorted(_POLICIES), "nil"))
        problem = f'Unsupported value: "{policy[:100]}": supported values: {known}'
        raise refusals.failure(422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {problem}')
    if any(value != "All" for value in options.dry_run):
        raise refusals.failure(422, "Invalid", 'dryRun: Unsupported value: supported values: "All"')
    if orphan is None:
        return options
    return DeleteRequest(
        grace_period_seconds=options.grace_period_seconds,
        preconditions=options.preconditions,
        propagation_policy="Orphan" if orphan else "Background",
        dry_run=options.dry_run,
    )
