"""The rules of CustomResourceDefinitions: what is filled in, and what makes a definition wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS
from moorage.embedded.admission.problems import IMMUTABLE, Problems
from moorage.embedded.catalog.crds.patterns import PatternError, compile_pattern
from moorage.embedded.catalog.crds.schemas import INT_OR_STRING, PRESERVE
from moorage.embedded.catalog.printing.json_path import PathError, compile_path
from moorage.store.objects import Raw

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Keeps a definition until its objects are gone."""

_SCOPES = ("Cluster", "Namespaced")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_COLUMN_TYPES = ("integer", "number", "string", "boolean", "date")
_NOT_SUPPORTED = ("$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_UNIQUE_ITEMS = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
_ONE_STORAGE = "must have exactly one version marked as storage version"


class DefinitionAdmission:
    """Admission of definitions."""

    def admit(self, raw: Raw, old: Raw | None, subresource: str = "") -> Raw:
        if subresource:
            return raw
        filled = _filled(raw, new=old is None)
        problems = Problems()
        _check(filled, old, problems)
        if problems:
            raise problems.refusal(CUSTOM_RESOURCE_DEFINITIONS, str(raw["metadata"].get("name") or ""))
        return filled


def check_stored(raw: Raw) -> str:
    """Return why a stored definition cannot be served; empty if it can."""
    problems = Problems()
    _check(_filled(raw, new=False), None, problems)
    return ", ".join(f"{cause.field}: {cause.message}" for cause in problems.causes)


def _filled(raw: Raw, *, new: bool) -> Raw:
    spec = dict(_map(raw.get("spec")))
    names = dict(_map(spec.get("names")))
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    spec["names"] = names
    spec.setdefault("conversion", {"strategy": "None"})
    meta = raw["metadata"]
    if new:
        finalizers = meta.get("finalizers") or []
        meta = {**meta, "finalizers": [*finalizers, *({FINALIZER} - set(finalizers))]}
    return {**raw, "metadata": meta, "spec": spec}


def _check(raw: Raw, old: Raw | None, problems: Problems) -> None:
    spec, name = raw["spec"], raw["metadata"].get("name")
    group, plural = spec.get("group"), spec["names"].get("plural")
    for path, value in (
        ("spec.group", group),
        ("spec.names.plural", plural),
        ("spec.names.kind", spec["names"].get("kind")),
    ):
        if not isinstance(value, str) or not value:
            problems.required(path)
    if name != f"{plural}.{group}":
        problems.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    problems.one_of("spec.scope", spec.get("scope"), _SCOPES)
    strategy = _map(spec.get("conversion")).get("strategy")
    if strategy != "None":
        problems.not_supported("spec.conversion.strategy", strategy, ("None",))
    _check_versions(spec.get("versions"), problems)
    if old is not None:
        _check_unchanged(spec, _map(old.get("spec")), problems)


def _check_unchanged(spec: Raw, old: Raw, problems: Problems) -> None:
    for path, new, before in (
        ("spec.group", spec.get("group"), old.get("group")),
        ("spec.scope", spec.get("scope"), old.get("scope")),
        ("spec.names.plural", spec["names"].get("plural"), _map(old.get("names")).get("plural")),
        ("spec.names.kind", spec["names"].get("kind"), _map(old.get("names")).get("kind")),
    ):
        if new != before:
            problems.invalid(path, new, IMMUTABLE)


def _check_versions(versions: Any, problems: Problems) -> None:
    if not isinstance(versions, list) or not versions:
        problems.required("spec.versions")
        return
    seen: set[Any] = set()
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if not isinstance(version, dict) or not isinstance(version.get("name"), str) or not version["name"]:
            problems.required(f"{path}.name")
            continue
        if version["name"] in seen:
            problems.invalid(path, version["name"], "version name is not unique")
        seen.add(version["name"])
        _check_version(version, path, problems)
    if sum(_map(version).get("storage") is True for version in versions) != 1:
        names = [_map(version).get("name") for version in versions]
        problems.invalid("spec.versions", names, _ONE_STORAGE)


def _check_version(version: Raw, path: str, problems: Problems) -> None:
    schema = _map(version.get("schema")).get("openAPIV3Schema")
    at = f"{path}.schema.openAPIV3Schema"
    if not isinstance(schema, dict):
        problems.required(at, "schemas are required")
    elif schema.get("type") != "object":
        problems.invalid(f"{at}.type", schema.get("type"), "must be object at the root")
    else:
        for below, where in _levels(schema, at):
            _check_level(below, where, problems)
        for below, where in _all_schemas(schema, at):
            _check_keywords(below, where, problems)
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        _check_column(_map(column), f"{path}.additionalPrinterColumns[{index}]", problems)
    scale = _map(_map(version.get("subresources")).get("scale"))
    if scale:
        _check_scale(scale, f"{path}.subresources.scale", problems)


def _levels(schema: Raw, path: str) -> Iterator[tuple[Raw, str]]:
    """Every schema inside one, itself included, with its place."""
    yield schema, path
    for name, below in _map(schema.get("properties")).items():
        yield from _levels(_map(below), f"{path}.properties[{name}]")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from _levels(schema[keyword], f"{path}.{keyword}")


def _all_schemas(schema: Raw, path: str) -> Iterator[tuple[Raw, str]]:
    """Every schema inside one, itself and those of allOf, anyOf, oneOf and not included, with its place."""
    for level, where in _levels(schema, path):
        yield level, where
        for keyword in ("allOf", "anyOf", "oneOf"):
            choices = level.get(keyword)
            for index, below in enumerate(choices if isinstance(choices, list) else ()):
                yield from _all_schemas(_map(below), f"{where}.{keyword}[{index}]")
        if isinstance(level.get("not"), dict):
            yield from _all_schemas(level["not"], f"{where}.not")


def _check_keywords(schema: Raw, path: str, problems: Problems) -> None:
    """Follows apis/apiextensions/validation/validation.go and apiserver/schema/validation.go."""
    for keyword in _NOT_SUPPORTED:
        if schema.get(keyword):
            problems.forbidden(f"{path}.{keyword}", f"{keyword} is not supported")
    if schema.get("uniqueItems"):
        problems.forbidden(f"{path}.uniqueItems", _UNIQUE_ITEMS)
    pattern = schema.get("pattern")
    if pattern is None:
        return
    if not isinstance(pattern, str):
        problems.invalid(f"{path}.pattern", pattern, "must be a string")
        return
    try:
        compile_pattern(pattern)
    except PatternError as error:
        problems.invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _check_level(schema: Raw, path: str, problems: Problems) -> None:
    type_ = schema.get("type")
    if type_ is None or type_ == "":
        if not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
            problems.required(f"{path}.type", "must not be empty for specified object fields")
    elif type_ not in _TYPES:
        problems.not_supported(f"{path}.type", type_, _TYPES)
    if type_ == "array" and not isinstance(schema.get("items"), dict):
        problems.required(f"{path}.items", "must be specified")


def _check_column(column: Raw, path: str, problems: Problems) -> None:
    if not column.get("name"):
        problems.required(f"{path}.name")
    problems.one_of(f"{path}.type", column.get("type"), _COLUMN_TYPES)
    _check_path(column.get("jsonPath"), f"{path}.jsonPath", problems)


def _check_scale(scale: Raw, path: str, problems: Problems) -> None:
    for field, start, needed in (
        ("specReplicasPath", ".spec", True),
        ("statusReplicasPath", ".status", True),
        ("labelSelectorPath", "", False),
    ):
        value = scale.get(field)
        if not value and not needed:
            continue
        _check_path(value, f"{path}.{field}", problems)
        if isinstance(value, str) and value and not value.startswith(f"{start}."):
            problems.invalid(f"{path}.{field}", value, f"should be a json path under {start}")


def _check_path(value: Any, path: str, problems: Problems) -> None:
    if not isinstance(value, str) or not value:
        problems.required(path)
        return
    try:
        compile_path(value)
    except PathError as error:
        problems.invalid(path, value, str(error))


def _map(value: Any) -> Raw:
    return value if isinstance(value, dict) else {}
