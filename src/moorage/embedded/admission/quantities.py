"""The canonical form of quantities, in which kube-apiserver returns them: 1.5Gi is 1536Mi, 0.5 is 500m.

As CanonicalizeBytes of k8s.io/apimachinery/pkg/api/resource/quantity.go. Which fields hold quantities comes from
the description of the API (`store.schemas`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, TypeAlias

from moorage.api import quantity
from moorage.api.errors import QuantityError
from moorage.api.quantity import Quantity
from moorage.api.resources import Resource
from moorage.store.objects import Raw
from moorage.store.schemas import Definition, Library, ListOf, MapOf, Plain, Type, library

_EXPONENT = re.compile(r"[eE][+-]?[0-9]+\Z")
_Rewrite: TypeAlias = Callable[[Any], Any]


@lru_cache(maxsize=65536, typed=True)
def canonical(given: Quantity) -> Quantity:
    """Return the quantity in its canonical form, or as it is if it is invalid; validation rejects it later."""
    try:
        nanos = quantity.parse(given)
    except QuantityError:
        return given
    text = str(given)
    return quantity.format_nanos(nanos, binary=text.endswith("i"), exponent=_EXPONENT.search(text) is not None)


def with_canonical_quantities(resource: Resource, raw: Raw) -> Raw:
    """Return an object with all quantities in canonical form. Its types have been checked."""
    rewrite = _of_kind(resource.api_version, resource.kind)
    rewritten: Raw = raw if rewrite is None else rewrite(raw)
    return rewritten


@cache
def _of_kind(api_version: str, kind: str) -> _Rewrite | None:
    known = library()
    definition = known.kind(api_version, kind)
    return None if definition is None else _of_struct(known, definition, ())


def _of_type(known: Library, described: Type, above: tuple[str, ...]) -> _Rewrite | None:
    """Return what to do with values of a type; None if they contain no quantities."""
    if isinstance(described, Plain):
        return canonical if described.name == "quantity" else None
    if isinstance(described, ListOf):
        item = _of_type(known, described.item, above)
        return None if item is None else _of_list(item)
    if isinstance(described, MapOf):
        item = _of_type(known, described.item, above)
        return None if item is None else _of_map(item)
    return _of_struct(known, known.resolve(described), above)


def _of_list(rewrite: _Rewrite) -> _Rewrite:
    def rewrite_items(values: list[Any]) -> list[Any]:
        made = [value if value is None else rewrite(value) for value in values]
        return made if any(new is not old for new, old in zip(made, values, strict=True)) else values

    return rewrite_items


def _of_map(rewrite: _Rewrite) -> _Rewrite:
    def rewrite_values(values: Raw) -> Raw:
        made = {key: rewrite(value) for key, value in values.items()}
        return made if made != values or any(not isinstance(value, str) for value in values.values()) else values

    return rewrite_values


def _of_struct(known: Library, definition: Definition, above: tuple[str, ...]) -> _Rewrite | None:
    if definition.fields is None or definition.openapi_name in above:
        return None
    inside = (*above, definition.openapi_name)
    found = {name: _of_type(known, field.type, inside) for name, field in definition.fields.items()}
    plan = [(name, rewrite) for name, rewrite in found.items() if rewrite is not None]
    if not plan:
        return None

    def rewrite_fields(value: Raw) -> Raw:
        changed = value
        for name, rewrite in plan:
            old = value.get(name)
            if old is not None and (new := rewrite(old)) is not old and (new != old or not isinstance(old, str)):
                if changed is value:
                    changed = dict(value)
                changed[name] = new
        return changed

    return rewrite_fields
