"""Rows of custom resources, with the additionalPrinterColumns of their definition."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.embedded.catalog.printing import jsonpath
from mooring.embedded.catalog.printing.columns import NAME, Cells, Column, Printer
from mooring.embedded.catalog.printing.values import name_of, number, since, text
from mooring.store.objects import Raw

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
"""What a definition without columns gets."""


def printer(declared: tuple[Raw, ...]) -> Printer:
    """The printer of one version of a custom kind."""
    columns = declared or (_AGE,)
    paths = [(text(column, "type"), jsonpath.compile_path(text(column, "jsonPath"))) for column in columns]

    def cells(raw: Raw, now: float) -> Cells:
        return [name_of(raw), *(_cell(kind, jsonpath.first(path, raw), now) for kind, path in paths)]

    return Printer((NAME, *(_column(column) for column in columns)), cells)


def _column(declared: Raw) -> Column:
    return Column(
        text(declared, "name"),
        text(declared, "type", default="string"),
        number(declared, "priority"),
        text(declared, "description") or f"The value at {text(declared, 'jsonPath')}.",
        text(declared, "format"),
    )


def _cell(kind: str, value: Any, now: float) -> Any:
    """The value if it is of the column's type; None, shown as empty, if not."""
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
