"""The requests of the Kubernetes API as values: paths, queries and bodies. No I/O, no retries, no limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from moorage.api import decoding
from moorage.api.errors import ObjectError
from moorage.api.meta import Object
from moorage.api.resources import PODS, Resource
from moorage.client.transport import HttpRequest
from moorage.framework.ports import Patch, PatchType

JSON = "application/json"
CALL_SECONDS = 30.0
"""For one object; API servers cut a request off after 60 s themselves."""
LIST_SECONDS = 90.0
WATCH_GRACE = 60.0
"""Seconds beyond the time that the server was asked to end a watch after."""

METADATA = f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

_READ = {"Accept": JSON}
_READ_METADATA = {"Accept": f"{METADATA},{JSON}"}
_WRITE = {"Accept": JSON, "Content-Type": JSON}


def list_objects(
    resource: Resource,
    *,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
    resource_version: str = "",
    limit: int = 0,
    page: str = "",
) -> HttpRequest:
    query = {
        "labelSelector": label_selector,
        "fieldSelector": field_selector,
        "resourceVersion": resource_version,
        "limit": str(limit or ""),
        "continue": page,
    }
    headers = _READ_METADATA if resource.type is Object else _READ
    return HttpRequest("GET", collection(resource, namespace), _set(query), headers, timeout=LIST_SECONDS)


def watch_objects(
    resource: Resource,
    *,
    resource_version: str,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
    timeout: float | None = None,
    send_initial_events: bool = False,
) -> HttpRequest:
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "labelSelector": label_selector,
        "fieldSelector": field_selector,
        "timeoutSeconds": "" if timeout is None else str(max(1, round(timeout))),
        "sendInitialEvents": "true" if send_initial_events else "",
        # Servers demand it together with initial events, and refuse it otherwise.
        "resourceVersionMatch": "NotOlderThan" if send_initial_events else "",
    }
    limit = None if timeout is None else timeout + WATCH_GRACE
    return HttpRequest("GET", collection(resource, namespace), _set(query), _READ, timeout=limit)


def get(resource: Resource, name: str, namespace: str = "") -> HttpRequest:
    return HttpRequest("GET", item(resource, name, namespace), {}, _READ, timeout=CALL_SECONDS)


def create(resource: Resource, obj: Any, *, dry_run: bool = False) -> HttpRequest:
    body = with_type(resource, obj)
    namespace = _metadata(body).get("namespace") or ""
    if resource.namespaced and not namespace:
        raise _bad(resource, _metadata(body).get("name"), "metadata.namespace", "must be set to create it")
    query = {"dryRun": "All"} if dry_run else {}
    return HttpRequest("POST", collection(resource, namespace), query, _WRITE, _json(body), CALL_SECONDS)


def replace(resource: Resource, obj: Any, *, subresource: str = "") -> HttpRequest:
    body = with_type(resource, obj)
    meta = _metadata(body)
    path = item(resource, meta.get("name") or "", meta.get("namespace") or "", subresource)
    return HttpRequest("PUT", path, {}, _WRITE, _json(body), CALL_SECONDS)


def patch(
    resource: Resource,
    name: str,
    change: Patch,
    *,
    namespace: str = "",
    subresource: str = "",
    patch_type: str = PatchType.STRATEGIC,
) -> HttpRequest:
    headers = {"Accept": JSON, "Content-Type": patch_type}
    path = item(resource, name, namespace, subresource)
    return HttpRequest("PATCH", path, {}, headers, _json(change), CALL_SECONDS)


def delete(
    resource: Resource,
    name: str,
    *,
    namespace: str = "",
    uid: str = "",
    resource_version: str = "",
    grace_period: int | None = None,
) -> HttpRequest:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    if preconditions := _set({"uid": uid, "resourceVersion": resource_version}):
        options["preconditions"] = preconditions
    path = item(resource, name, namespace)
    return HttpRequest("DELETE", path, {}, _WRITE, _json(options), CALL_SECONDS)


def bind(name: str, namespace: str, uid: str, node: str) -> HttpRequest:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = item(PODS, name, namespace, "binding")
    return HttpRequest("POST", path, {}, _WRITE, _json(binding), CALL_SECONDS)


def collection(resource: Resource, namespace: str = "") -> str:
    """The path of all objects of a kind, or of those in a namespace."""
    if not (resource.namespaced and namespace):
        return f"{resource.path_prefix}/{resource.plural}"
    return f"{resource.path_prefix}/namespaces/{_segment(resource, namespace)}/{resource.plural}"


def item(resource: Resource, name: str, namespace: str = "", subresource: str = "") -> str:
    """The path of one object."""
    if resource.namespaced and not namespace:
        raise _bad(resource, name, "metadata.namespace", "must be set to name one object")
    path = f"{collection(resource, namespace)}/{_segment(resource, name)}"
    return f"{path}/{subresource}" if subresource else path


def with_type(resource: Resource, obj: Any) -> dict[str, Any]:
    """Plain JSON with kind and apiVersion: objects out of a list carry neither."""
    plain = decoding.to_builtins(obj) if not isinstance(obj, Mapping) else dict(obj)
    plain["apiVersion"], plain["kind"] = resource.api_version, resource.kind
    return plain


def _segment(resource: Resource, name: str) -> str:
    """A name as part of a path. The server would refuse these too, but as parts they name something else."""
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise _bad(resource, name, "metadata.name", 'must not be empty, "." or "..", nor contain "/" or "%"')
    return quote(name, safe="")


def _bad(resource: Resource, name: object, field: str, message: str) -> ObjectError:
    return ObjectError(f"{resource.kind} {name!r}", field, message)


def _metadata(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found = body.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _json(body: object) -> bytes:
    return msgspec.json.encode(body)


def _set(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}
