"""Tables of objects, and the printers of custom kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from moorage.api import resources
from moorage.embedded.catalog.kinds import ServedKind
from moorage.embedded.catalog.printing import cluster, pods
from moorage.embedded.catalog.printing.columns import NAME, Printer, PrinterColumn, number, since, text
from moorage.embedded.catalog.printing.json_path import compile_path, first
from moorage.store.objects import Raw

Include: TypeAlias = Literal["Metadata", "Object", "None"]
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
"""The column of a CustomResourceDefinition that declares none."""


def table(
    served: ServedKind,
    raws: Sequence[Raw],
    now: float,
    include: Include = "Metadata",
    list_meta: Raw | None = None,
    *,
    headers: bool = True,
    scale: bool = False,
) -> Raw:
    """Return objects in their served form as a Table. `now` is in Unix seconds.

    `include` is the part of each object that accompanies its row. The further tables of a watch have no
    `headers`, because clients keep those of the first. `scale` selects the columns of the scale subresource.
    """
    printer = cluster.SCALES if scale else served.printer or cluster.CREATED_AT
    is_pod = served.resource == resources.PODS
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta or {},
        "columnDefinitions": printer.definitions if headers else None,
        "rows": [_row(printer, raw, now, include, is_pod) for raw in raws],
    }


def _row(printer: Printer, raw: Raw, now: float, include: Include, is_pod: bool) -> Raw:
    row: Raw = {"cells": printer.cells(raw, now), "object": _object(raw, include)}
    conditions = pods.row_conditions(raw) if is_pod else None
    if conditions:
        row["conditions"] = conditions
    return row


def _object(raw: Raw, include: Include) -> Any:
    if include == "Object":
        return raw
    if include == "None":
        return None
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": raw["metadata"]}


def custom_printer(declared: Sequence[Raw]) -> Printer:
    """Return the printer of one version of a custom kind."""
    return Printer((NAME, *(_column(column) for column in declared or (_AGE,))))


def _column(declared: Raw) -> PrinterColumn:
    kind, source = text(declared, "type", default="string"), text(declared, "jsonPath")
    path = compile_path(source)
    return PrinterColumn(
        text(declared, "name"),
        lambda raw, now: _cell(kind, first(path, raw), now),
        kind,
        number(declared, "priority"),
        description=text(declared, "description") or f"The value at {source}.",
        format=text(declared, "format"),
    )


def _cell(kind: str, value: Any, now: float) -> Any:
    """Return the value if it has the type of the column, else None, which is shown as empty."""
    if value is None:
        return None
    match kind:
        case "integer" | "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value) if kind == "integer" else float(value)
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            return since(value, now).replace("<unknown>", "<invalid>")
        case "string":
            return value if isinstance(value, str) else msgspec.json.encode(value).decode()
        case _:
            return None
