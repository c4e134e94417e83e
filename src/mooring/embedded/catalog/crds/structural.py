"""Structural schemas: what is cut off custom objects, and what is filled in.

A structural schema gives a type to every level, so that a field is either described or unknown. Both
functions give new values; unchanged parts are shared.
"""

from __future__ import annotations

from typing import Any

from mooring.store.objects import Raw

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")


def prune(value: Any, schema: Raw, *, root: bool = False) -> Any:
    """Without the fields that the schema does not have. Metadata is left to the rules of all kinds."""
    if isinstance(value, list):
        items = schema.get("items")
        return [prune(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    kept: Raw = {}
    for name, item in value.items():
        below = _schema_of(schema, name, root)
        if below is not None:
            kept[name] = prune(item, below)
    return kept


def _schema_of(schema: Raw, name: str, root: bool) -> Raw | None:
    """The schema of one field; None for a field that is cut off."""
    if (root or schema.get(EMBEDDED)) and name in OF_EVERY_OBJECT:
        return {PRESERVE: True}
    own = (schema.get("properties") or {}).get(name)
    if isinstance(own, dict):
        return own
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        return others
    if schema.get(PRESERVE) or others is True:
        # Fields below an unknown one are unknown too; those below a known one are judged again.
        return {PRESERVE: True}
    return None


def fill_defaults(value: Any, schema: Raw) -> Any:
    """With the defaults of missing fields. A null where none is allowed counts as missing."""
    if isinstance(value, list):
        items = schema.get("items")
        return [fill_defaults(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    own = schema.get("properties") or {}
    for name, below in own.items():
        if name in filled and filled[name] is None and not below.get("nullable"):
            del filled[name]
        if "default" in below and name not in filled:
            filled[name] = below["default"]
        if name in filled:
            filled[name] = fill_defaults(filled[name], below)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for name in filled.keys() - own.keys():
            filled[name] = fill_defaults(filled[name], others)
    return filled
