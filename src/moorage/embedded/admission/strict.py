"""The rules of an API server: every write is read, filled in and checked as kube-apiserver does it.

Kinds without rules of their own, custom ones among them, get the rules of metadata only. The order is the
server's: types (400), defaults, admission (403), validation with all problems at once (422).

The types come from the description of the API (`store.schemas`), turned into msgspec types, so that a check
is one call in C. After it all rules may rely on the types. Fields that the kind does not have are left alone.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import msgspec

from moorage.api import resources
from moorage.api.errors import ApiError
from moorage.api.resources import Resource
from moorage.embedded.admission import pod_updates
from moorage.embedded.admission.access_kinds import check_account
from moorage.embedded.admission.limit_ranges import check_bounds, with_default_amounts
from moorage.embedded.admission.pod_security import check_security
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.quantities import with_canonical_quantities
from moorage.embedded.admission.quotas import check_quotas
from moorage.embedded.admission.runtime_classes import with_runtime_class
from moorage.embedded.admission.strategy import KindStrategy, check_metadata, check_metadata_update
from moorage.store import refusals
from moorage.store.objects import Raw, Stored
from moorage.store.rules import StoreCluster
from moorage.store.schemas import TYPE_FIELDS, Definition, Library, ListOf, MapOf, Plain, Ref, Type, library

_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_PLAIN_TYPES: dict[str, Any] = {
    "string": str,
    "bytes": str,
    "time": str,
    "microTime": str,
    "int32": _INT32,
    "int64": _INT64,
    "float": float,
    "bool": bool,
    "quantity": str | int | float,
    "intOrString": _INT32 | str,
    "any": Any,
}
_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_WHERE = re.compile(r"(?P<what>.*?)(?: - at `(?P<key>key in )?\$(?P<path>.*)`)?", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<found>[^`]*)`")
_PLAIN = KindStrategy()


def check_types(resource: Resource, raw: Raw) -> None:
    """Raise BadRequest if a field has a value of the wrong type. Kinds without a description pass."""
    shape = _shape(resource.api_version, resource.kind)
    if shape is None:
        return
    try:
        msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        raise _refusal(resource, str(error)) from error
    except RecursionError as error:
        raise _refusal(resource, "the object is nested too deeply") from error


def without_nulls(raw: Raw) -> Raw:
    """Return the object without null fields, which count as missing."""
    if b"null" not in msgspec.json.encode(raw):
        return raw
    cleaned: Raw = _without_nulls(raw)
    return cleaned


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _without_nulls(item) for field, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _refusal(resource: Resource, error: str) -> ApiError:
    match = _WHERE.fullmatch(error)
    path, what = "", error
    if match is not None:
        path = (match["path"] or "").replace("[...]", "").removeprefix(".")
        what = match["what"]
        if match["key"]:
            what = f"a key of the map: {what}"
    expected = _EXPECTED.fullmatch(what)
    if expected is not None:
        wanted = [_WORDS.get(word, word) for word in expected["wanted"].split(" | ") if word != "null"]
        what = f"expected {' or '.join(wanted)}, got {_WORDS.get(expected['found'], expected['found'])}"
    what = what.replace("Expected `int`", "expected a whole number")
    kind, where = resource.kind, f"{path}: " if path else ""
    return refusals.bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {where}{what}')


@cache
def _shape(api_version: str, kind: str) -> type[msgspec.Struct] | None:
    known = library()
    definition = known.kind(api_version, kind)
    return None if definition is None or definition.fields is None else _struct(known, definition, ())


def _struct(known: Library, definition: Definition, above: tuple[str, ...]) -> type[msgspec.Struct]:
    fields = {**(TYPE_FIELDS if definition.api_version else {}), **(definition.fields or {})}
    names = {name: _attribute(name) for name in fields}
    inside = (*above, definition.openapi_name)
    return msgspec.defstruct(
        definition.name,
        [(names[name], _python_type(known, field.type, inside) | None, None) for name, field in fields.items()],
        rename={attribute: name for name, attribute in names.items()},
        gc=False,
    )


def _attribute(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def _python_type(known: Library, described: Type, above: tuple[str, ...]) -> Any:
    if isinstance(described, Plain):
        return _PLAIN_TYPES[described.name]
    if isinstance(described, ListOf):
        return list[_python_type(known, described.item, above)]  # type: ignore[misc]
    if isinstance(described, MapOf):
        return dict[str, _python_type(known, described.item, above) | None]  # type: ignore[misc]
    definition = known.resolve(described)
    if definition.fields is None or definition.openapi_name in above:
        return Any  # free-form, or a type that contains itself (JSON schemas)
    return _shared_struct(definition.package, definition.name, above)


@cache
def _shared_struct(package: str, name: str, above: tuple[str, ...]) -> type[msgspec.Struct]:
    known = library()
    return _struct(known, known.resolve(Ref(package, name)), above)


class StrictRules:
    """Write rules of a store behind an API server. For kinds without a strategy they check metadata only."""

    def __init__(self, strategies: Mapping[Resource, KindStrategy]) -> None:
        # By group and plural: objects may come under another version.
        self._strategies = {(resource.group, resource.plural): s for resource, s in strategies.items()}

    def read(self, resource: Resource, raw: Raw) -> Raw:
        """Check the types of an object from a client, remove nulls, and write quantities in canonical form."""
        check_types(resource, raw)
        return with_canonical_quantities(resource, without_nulls(raw))

    def created(self, resource: Resource, raw: Raw, cluster: StoreCluster, *, keep_status: bool) -> Raw:
        kind = self._strategies.get((resource.group, resource.plural), _PLAIN)
        if not keep_status and kind.first_status is not None:
            raw = {**raw, "status": kind.first_status}
        raw["metadata"].setdefault("name", "")
        if not kind.generation:
            del raw["metadata"]["generation"]
        raw = kind.default(raw)
        if not keep_status:
            check_account(resource, raw, cluster)
            raw = with_runtime_class(resource, raw, cluster)
            raw = with_default_amounts(resource, raw, cluster)
        raw = kind.admit(raw, cluster)
        problems, meta = Problems(), raw["metadata"]
        check_metadata(meta, resource.namespaced, kind.name, problems)
        kind.check(raw, problems)
        kind.check_new(raw, problems)
        if problems:
            raise problems.refusal(resource, meta["name"])
        if not keep_status:
            check_bounds(resource, raw, cluster)
            check_security(resource, raw, cluster)
            check_quotas(resource, raw, None, cluster)
        return raw

    def updated(self, current: Stored, raw: Raw, subresource: str, cluster: StoreCluster) -> Raw:
        resource, old = current.resource, current.raw
        kind = self._strategies.get((resource.group, resource.plural), _PLAIN)
        problems = Problems()
        if subresource == "status":
            raw = kind.default_status(raw)
            kind.check_status(raw, old, problems)
        elif subresource == "finalize":
            kind.check(raw, problems)
        else:
            # A data directory may hold objects from before a default was known.
            old = kind.default(with_canonical_quantities(resource, old))
            raw = kind.carry(kind.default(raw), old, cluster)
            check_metadata(raw["metadata"], resource.namespaced, kind.name, problems)
            check_metadata_update(raw["metadata"], old["metadata"], problems)
            kind.check(raw, problems)
            if subresource == "resize":
                pod_updates.check_resize(raw["spec"], old["spec"], problems)
            else:
                kind.check_update(raw, old, problems)
        if problems:
            raise problems.refusal(resource, current.name)
        if subresource in ("", "resize"):
            check_quotas(resource, raw, old, cluster)
            if resource == resources.PERSISTENT_VOLUME_CLAIMS:
                check_bounds(resource, raw, cluster)
        return raw
