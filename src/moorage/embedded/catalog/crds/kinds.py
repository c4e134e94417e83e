"""What a CustomResourceDefinition serves: its versions, and admission and conversion of their objects."""

from __future__ import annotations

from typing import Any

from moorage.api.resources import Resource, custom
from moorage.embedded.admission.problems import Problems
from moorage.embedded.catalog.crds import schemas
from moorage.embedded.catalog.crds.schemas import SchemaCheck
from moorage.embedded.catalog.kinds import SCALE, STATUS, ScalePaths, ServedKind, Subresource
from moorage.embedded.catalog.printing.json_path import PathError, compile_path
from moorage.embedded.catalog.tables import custom_printer
from moorage.store import refusals
from moorage.store.objects import Raw

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""All, in the order in which the API server lists those of custom kinds."""


class CustomAdmission:
    """Prunes, defaults and validates the objects of one version of a custom kind.

    A definition that is going takes no new objects. A None schema accepts everything.
    """

    def __init__(self, resource: Resource, schema: Raw | None, *, terminating: bool = False) -> None:
        self._resource = resource
        self._schema = schema
        self._check = None if schema is None else SchemaCheck(schema)
        self._terminating = terminating

    def admit(self, raw: Raw, old: Raw | None, subresource: str = "") -> Raw:
        if old is None and self._terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise refusals.failure(405, "MethodNotAllowed", why, resource=self._resource)
        if subresource == "status" and old is not None:
            status = {"status": raw["status"]} if "status" in raw else {}
            rest = {field: value for field, value in old.items() if field != "status"}
            raw = {**rest, "metadata": raw["metadata"], **status}
        if self._schema is None or self._check is None:
            return raw
        pruned = schemas.prune(raw, self._schema, root=True)
        filled: Raw = schemas.fill_defaults(pruned, self._schema)
        problems = Problems()
        self._check.check(filled, problems)
        if problems:
            raise problems.refusal(self._resource, str(raw["metadata"].get("name") or ""))
        return filled


class VersionView:
    """Another version of stored objects, with conversion None: only the apiVersion differs."""

    def __init__(self, served: Resource, stored: Resource) -> None:
        self._served, self._stored = served.api_version, stored.api_version

    def inward(self, raw: Raw) -> Raw:
        return {**raw, "apiVersion": self._stored}

    def outward(self, raw: Raw) -> Raw:
        return raw if raw["apiVersion"] == self._served else {**raw, "apiVersion": self._served}

    def field(self, path: str) -> str:
        return path


def served_kinds(definition: Raw) -> list[ServedKind]:
    """Return the served versions of a definition, all on the objects of the storage version."""
    spec = definition["spec"]
    versions = [version for version in spec["versions"] if version.get("served")]
    storage = next((version for version in spec["versions"] if version.get("storage")), None)
    if storage is None:
        return []
    terminating = "deletionTimestamp" in definition["metadata"]
    stored = _resource(spec, storage["name"])
    alone = len(spec["versions"]) == 1 and len(_stored_versions(definition)) <= 1
    return [_served(spec, version, stored, alone, terminating) for version in versions]


def storage_resource(definition: Raw) -> Resource | None:
    """Return the resource under which the store holds the objects of a definition."""
    spec = definition["spec"]
    names = [version["name"] for version in spec["versions"] if version.get("storage")]
    return _resource(spec, names[0]) if names else None


def _stored_versions(definition: Raw) -> list[str]:
    return (definition.get("status") or {}).get("storedVersions") or []


def _resource(spec: Raw, version: str) -> Resource:
    names = spec["names"]
    return custom(spec["group"], version, names["plural"], names["kind"], spec["scope"] == "Namespaced")


def _served(spec: Raw, version: Raw, stored: Resource, alone: bool, terminating: bool) -> ServedKind:
    names, resource = spec["names"], _resource(spec, version["name"])
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    return ServedKind(
        resource,
        names.get("singular") or names["kind"].lower(),
        tuple(names.get("shortNames") or ()),
        _VERBS,
        subresources=_subresources(subresources),
        categories=tuple(names.get("categories") or ()),
        storage=stored,
        view=None if alone else VersionView(resource, stored),
        admission=CustomAdmission(resource, schema, terminating=terminating),
        scale=_scale(scale) if isinstance(scale, dict) else None,
        printer=custom_printer(_columns(version.get("additionalPrinterColumns") or ())),
        custom=True,
        schema=schema,
        list_kind=names.get("listKind") or "",
        deprecated=bool(version.get("deprecated")),
        warning=_warning(version, resource),
    )


def _subresources(declared: Raw) -> tuple[Subresource, ...]:
    known = {"status": STATUS, "scale": SCALE}
    return tuple(known[name] for name in ("status", "scale") if declared.get(name) is not None)


def _scale(declared: Raw) -> ScalePaths:
    selector = declared.get("labelSelectorPath")
    return ScalePaths(
        _steps(declared["specReplicasPath"]),
        _steps(declared["statusReplicasPath"]),
        _steps(selector) if selector else None,
    )


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.strip(".").split("."))


def _columns(declared: Any) -> tuple[Raw, ...]:
    """Return the columns with a valid path; a stored definition may have others."""
    return tuple(column for column in declared if _is_readable(column.get("jsonPath") or ""))


def _is_readable(path: str) -> bool:
    try:
        compile_path(path)
    except PathError:
        return False
    return True


def _warning(version: Raw, resource: Resource) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{resource.api_version} {resource.kind} is deprecated"
