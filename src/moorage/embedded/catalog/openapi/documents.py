"""Whole OpenAPI documents: one for each group version in version 3, one for everything in version 2.

Each kind has its paths with their operations: which parameters they take, and which patches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.embedded.catalog.kinds import ServedKind
from moorage.embedded.catalog.openapi.schemas import (
    V2,
    V3,
    Style,
    custom_name,
    custom_schema,
    gvk,
    named_plain,
    reachable,
    schema,
)
from moorage.framework.ports import PatchType
from moorage.store.objects import Raw
from moorage.store.schemas import Definition, library

_JSON = "application/json"
_PATCHES = (PatchType.JSON, PatchType.MERGE)
_LIST_PARAMETERS = {
    "labelSelector": ("string", "Only objects with these labels."),
    "fieldSelector": ("string", "Only objects with these fields."),
    "limit": ("integer", "The size of a page."),
    "continue": ("string", "The next page of an earlier list."),
    "resourceVersion": ("string", "Not older than this version."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant."),
    "sendInitialEvents": ("boolean", "Whether a watch begins with the existing objects."),
    "allowWatchBookmarks": ("boolean", "Whether a watch tells from time to time how far it is."),
    "timeoutSeconds": ("integer", "When the server ends the request."),
    "watch": ("boolean", "Whether to follow changes instead of listing."),
}
_WRITE_PARAMETERS = {
    "dryRun": ("string", "All: everything is checked and nothing is stored."),
    "fieldManager": ("string", "Who writes."),
    "fieldValidation": ("string", "What to do about unknown fields: Ignore, Warn or Strict."),
}
_DELETE_PARAMETERS = {
    "dryRun": _WRITE_PARAMETERS["dryRun"],
    "gracePeriodSeconds": ("integer", "How many seconds the object gets to stop."),
    "propagationPolicy": ("string", "What happens to dependents: Orphan, Background or Foreground."),
}
_PATH_PARAMETERS = {"name": "The name of the object.", "namespace": "The namespace."}
# Verb -> method, action, parameters.
_ON_COLLECTIONS = {
    "list": ("get", "list", _LIST_PARAMETERS),
    "create": ("post", "post", _WRITE_PARAMETERS),
    "deletecollection": ("delete", "deletecollection", {**_LIST_PARAMETERS, **_DELETE_PARAMETERS}),
}
_ON_OBJECTS: dict[str, tuple[str, str, dict[str, tuple[str, str]]]] = {
    "get": ("get", "get", {}),
    "update": ("put", "put", _WRITE_PARAMETERS),
    "patch": ("patch", "patch", _WRITE_PARAMETERS),
    "delete": ("delete", "delete", _DELETE_PARAMETERS),
}
KUBERNETES_VERSION = "v1.37"
"""The API that is described."""
_INFO = {"title": "Kubernetes", "version": KUBERNETES_VERSION}
_META = ("meta/v1", "ObjectMeta")


def paths_of(served: ServedKind, schema_name: str, style: Style) -> Iterator[tuple[str, Raw]]:
    """Each path of a kind with its operations."""
    resource = served.resource
    maker = _Maker(served, schema_name, style)
    place = f"{resource.path_prefix}/namespaces/{{namespace}}" if resource.namespaced else resource.path_prefix
    collection = f"{place}/{resource.plural}"
    own = ("namespace",) if resource.namespaced else ()
    for path, verbs, names in (
        (collection, _ON_COLLECTIONS, own),
        (f"{collection}/{{name}}", _ON_OBJECTS, ("name", *own)),
    ):
        operations = {
            method: maker.operation(method, action, parameters)
            for verb, (method, action, parameters) in verbs.items()
            if verb in served.verbs
        }
        if operations:
            yield (path, operations | ({"parameters": [_path_parameter(n, style) for n in names]} if names else {}))


class _Maker:
    def __init__(self, served: ServedKind, schema_name: str, style: Style) -> None:
        resource = served.resource
        self._style = style
        self._kind = resource.kind
        self._schema = style.ref(schema_name)
        self._gvk = gvk(resource.group, resource.version, resource.kind)
        self._patches = _PATCHES if served.custom else (*_PATCHES, PatchType.STRATEGIC)

    def operation(self, method: str, action: str, parameters: dict[str, tuple[str, str]]) -> Raw:
        made: Raw = {
            "description": f"{action} {self._kind}",
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self._gvk,
            "parameters": [self._query(name, *described) for name, described in parameters.items()],
            "responses": {"200": {"description": "OK"}},
        }
        if method in ("post", "put", "patch"):
            self._add_body(made, (_JSON,) if method != "patch" else self._patches)
        return made

    def _query(self, name: str, type_: str, description: str) -> Raw:
        made: Raw = {"name": name, "in": "query", "description": description}
        return made | ({"schema": {"type": type_}} if self._style.version == 3 else {"type": type_})

    def _add_body(self, operation: Raw, media_types: tuple[str, ...]) -> None:
        is_patch = media_types != (_JSON,)
        schema: Raw = {"type": "object"} if is_patch else self._schema
        if self._style.version == 3:
            operation["requestBody"] = {"content": {str(media): {"schema": schema} for media in media_types}}
        else:
            operation["consumes"] = [str(media) for media in media_types]
            body: Raw = {"name": "body", "in": "body", "required": True, "schema": schema}
            operation["parameters"].append(body)


def _path_parameter(name: str, style: Style) -> Raw:
    made: Raw = {"name": name, "in": "path", "required": True, "description": _PATH_PARAMETERS[name]}
    return made | ({"schema": {"type": "string"}} if style.version == 3 else {"type": "string"})


def version_3(served: Iterable[ServedKind]) -> Raw:
    """The document of the kinds of one group version."""
    paths, schemas = _parts(served, V3)
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def version_2(served: Iterable[ServedKind]) -> Raw:
    """The document of all kinds."""
    paths, schemas = _parts(served, V2)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": schemas}


def _parts(served: Iterable[ServedKind], style: Style) -> tuple[Raw, Raw]:
    """Paths and schemas."""
    types = library()
    paths: Raw = {}
    custom: Raw = {}
    roots: list[Definition] = []
    for one in served:
        resource = one.resource
        definition = types.kind(resource.api_version, resource.kind) if not one.custom else None
        name = custom_name(one) if definition is None else definition.openapi_name
        if definition is None:
            custom[name] = custom_schema(types, one, style)
            roots.append(_object_meta())
        else:
            roots.append(definition)
        roots += _of_subresources(one)
        paths.update(paths_of(one, name, style))
    schemas: Raw = dict(named_plain(style))
    schemas.update((d.openapi_name, schema(types, d, style)) for d in reachable(types, roots))
    return paths, {**schemas, **custom}


def _of_subresources(served: ServedKind) -> Iterable[Definition]:
    types = library()
    for sub in served.subresources:
        api_version = f"{sub.group}/{sub.version}" if sub.group else sub.version
        definition = types.kind(api_version, sub.kind)
        if definition is not None:
            yield definition


def _object_meta() -> Definition:
    return next(d for d in library().all() if (d.package, d.name) == _META)
