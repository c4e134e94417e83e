"""Rows of custom resources: additionalPrinterColumns, and the JSONPath that they are written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from moorage.embedded.catalog.printing.columns import (
    NAME,
    Cells,
    Column,
    Printer,
    name_of,
    number,
    since,
    text,
)
from moorage.store.objects import Raw

Step: TypeAlias = Callable[[Any], Iterator[Any]]

_FIELD = re.compile(r"\.((?:[^.\[\]\\]|\\.)+)")
_QUOTED = re.compile(r"""\[(['"])(.*?)\1\]""")
_INDEX = re.compile(r"\[(-?\d+|\*)\]")
_FILTER = re.compile(r"""\[\?\(\s*@((?:\.(?:[^.\[\]\\=!\s]|\\.)+)+)\s*(==|!=)\s*(['"]?)(.*?)\3\s*\)\]""")
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
"""What a definition without columns gets."""


class PathError(ValueError):
    """The path is not in the notation above."""


@lru_cache(maxsize=256)
def compile_path(path: str) -> tuple[Step, ...]:
    """The steps of a path; PathError for one that is not understood."""
    steps: list[Step] = []
    rest = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    while rest and rest != ".":
        step, length = _next(rest, path)
        steps.append(step)
        rest = rest[length:]
    return tuple(steps)


def first(path: tuple[Step, ...], value: Any) -> Any:
    """The first value that the path leads to, or None."""
    return next(_follow(path, value), None)


def _follow(path: tuple[Step, ...], value: Any) -> Iterator[Any]:
    if not path:
        yield value
        return
    for below in path[0](value):
        yield from _follow(path[1:], below)


def _next(rest: str, path: str) -> tuple[Step, int]:
    if match := _FIELD.match(rest):
        return _field(match[1].replace("\\", "")), match.end()
    if match := _QUOTED.match(rest):
        return _field(match[2].replace("\\", "")), match.end()
    if match := _INDEX.match(rest):
        return _item(match[1]), match.end()
    if match := _FILTER.match(rest):
        return _filter(match[1], match[2], match[4]), match.end()
    raise PathError(f"JSONPath {path!r} is not understood at {rest!r}")


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _item(index: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            return
        if index == "*":
            yield from value
        elif -len(value) <= int(index) < len(value):
            yield value[int(index)]

    return step


def _filter(path: str, operator: str, wanted: str) -> Step:
    inner = compile_path(path)

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            if (_plain(first(inner, item)) == wanted) == (operator == "=="):
                yield item

    return step


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def printer(declared: tuple[Raw, ...]) -> Printer:
    """The printer of one version of a custom kind."""
    columns = declared or (_AGE,)
    paths = [(text(column, "type"), compile_path(text(column, "jsonPath"))) for column in columns]

    def cells(raw: Raw, now: float) -> Cells:
        return [name_of(raw), *(_cell(kind, first(path, raw), now) for kind, path in paths)]

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
