"""Whole OpenAPI documents: one for each group version in version 3, one for everything in version 2."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.embedded.catalog.kinds import Served
from mooring.embedded.catalog.openapi.operations import paths_of
from mooring.embedded.catalog.openapi.schemas import (
    V2,
    V3,
    Style,
    custom_name,
    custom_schema,
    named_plain,
    reachable,
    schema,
)
from mooring.store.objects import Raw
from mooring.store.schemas import Definition, library

KUBERNETES_VERSION = "v1.36"
"""The API that is described."""
_INFO = {"title": "Kubernetes", "version": KUBERNETES_VERSION}
_META = ("meta/v1", "ObjectMeta")


def version_3(served: Iterable[Served]) -> Raw:
    """The document of the kinds of one group version."""
    paths, schemas = _parts(served, V3)
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def version_2(served: Iterable[Served]) -> Raw:
    """The document of all kinds."""
    paths, schemas = _parts(served, V2)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": schemas}


def _parts(served: Iterable[Served], style: Style) -> tuple[Raw, Raw]:
    """Paths and schemas."""
    types = library()
    paths: Raw = {}
    custom: Raw = {}
    roots: list[Definition] = []
    for one in served:
        resource = one.resource
        definition = types.kind(resource.api_version, resource.kind) if one.columns is None else None
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


def _of_subresources(served: Served) -> Iterable[Definition]:
    types = library()
    for sub in served.subresources:
        api_version = f"{sub.group}/{sub.version}" if sub.group else sub.version
        definition = types.kind(api_version, sub.kind)
        if definition is not None:
            yield definition


def _object_meta() -> Definition:
    return next(d for d in library().all() if (d.package, d.name) == _META)
