"""Columns of Tables and the values in their cells: ages, counts and texts in the form that kubectl shows.

A column is data: a name, a type and the JSONPath of its value, as in a CustomResourceDefinition. A function stands in
place of the path where kubectl computes the value. The columns are those of pkg/printers/internalversion/printers.go.
Objects may have any shape: a value that is missing or of another type is shown as the default of its column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from moorage.api.times import parse_time
from moorage.embedded.catalog.printing.json_path import compile_path, first
from moorage.store.objects import Raw

Cells: TypeAlias = list[Any]
"""One row: a text, an integer, a boolean or None for each column."""
Read: TypeAlias = Callable[[Raw, float], Any]
"""Compute a cell from an object and the current time in Unix seconds."""
NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400
_EMPTY: dict[str, Any] = {"string": "", "integer": 0, "boolean": False}


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One column. Priority 0 is always shown, 1 only in wide output."""

    name: str
    value: str | Read
    type: str = "string"
    priority: int = 0
    default: Any = None
    """Shown in place of a missing value at a path; None means empty, 0 or false."""
    description: str = ""
    format: str = ""

    def definition(self) -> Raw:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }

    def reader(self) -> Read:
        """Return the function that computes the cells of this column."""
        if callable(self.value):
            return self.value
        path, kind = compile_path(self.value), self.type
        default = _EMPTY[kind] if self.default is None else self.default
        return lambda raw, now: _typed(first(path, raw), kind, default)


def _typed(value: Any, kind: str, default: Any) -> Any:
    if kind == "integer":
        return value if isinstance(value, int) and not isinstance(value, bool) else default
    if kind == "boolean":
        return value if isinstance(value, bool) else default
    return value if isinstance(value, str) and value else default


@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of one kind. `row` computes all cells at once, where columns belong together."""

    columns: tuple[PrinterColumn, ...]
    row: Callable[[Raw, float], Cells] | None = None
    definitions: list[Raw] = field(init=False, repr=False, compare=False)
    readers: list[Read] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "definitions", [column.definition() for column in self.columns])
        object.__setattr__(self, "readers", [column.reader() for column in self.columns])

    def cells(self, raw: Raw, now: float) -> Cells:
        return [read(raw, now) for read in self.readers] if self.row is None else self.row(raw, now)


def string(name: str, value: str | Read, default: str = "", description: str = "") -> PrinterColumn:
    return PrinterColumn(name, value, default=default, description=description)


def integer(name: str, value: str | Read) -> PrinterColumn:
    return PrinterColumn(name, value, "integer")


def boolean(name: str, value: str | Read, default: bool = False) -> PrinterColumn:
    return PrinterColumn(name, value, "boolean", default=default)


def wide(name: str, value: str | Read, default: str = "") -> PrinterColumn:
    return PrinterColumn(name, value, priority=1, default=default)


def listed(path: str, name: str = "", default: str = "") -> Read:
    """Join a list of strings, or one field of a list of objects, with commas."""
    steps = _steps(path)

    def read(raw: Raw, now: float) -> str:
        items = [text(item, name) for item in maps(raw, *steps)] if name else words(raw, *steps)
        return ",".join(items) or default

    return read


def count(path: str) -> Read:
    """Count the objects of a list."""
    steps = _steps(path)
    return lambda raw, now: len(maps(raw, *steps))


def labels(path: str) -> Read:
    steps = _steps(path)
    return lambda raw, now: labels_text(dig(raw, *steps))


def selector(path: str, default: str = NONE) -> Read:
    """Show a label selector in the notation of `kubectl -l`."""
    steps = _steps(path)
    return lambda raw, now: selector_terms(dig(raw, *steps)) or default


def containers(path: str) -> tuple[PrinterColumn, PrinterColumn]:
    """Return the columns of the containers' names and images in the pod spec at a path."""
    spec = f"{path}.containers"
    return wide("Containers", listed(spec, "name")), wide("Images", listed(spec, "image"))


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def age(raw: Raw, now: float) -> str:
    return since(dig(raw, "metadata", "creationTimestamp"), now)


NAME = PrinterColumn(
    "Name", ".metadata.name", format="name", description="The name, unique among the objects of its kind and place."
)
AGE = PrinterColumn("Age", age, description="The time since the object was created.")


def dig(raw: Any, *path: str) -> Any:
    """Return the value below the keys, None if the path ends early."""
    for step in path:
        if not isinstance(raw, dict):
            return None
        raw = raw.get(step)
    return raw


def text(raw: Any, *path: str, default: str = "") -> str:
    value = dig(raw, *path)
    return value if isinstance(value, str) and value else default


def number(raw: Any, *path: str) -> int:
    value = dig(raw, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def flag(raw: Any, *path: str, default: bool = False) -> bool:
    value = dig(raw, *path)
    return value if isinstance(value, bool) else default


def maps(raw: Any, *path: str) -> list[Raw]:
    """Return the objects of the list at a path."""
    value = dig(raw, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping(raw: Any, *path: str) -> Raw:
    value = dig(raw, *path)
    return value if isinstance(value, dict) else {}


def words(raw: Any, *path: str) -> list[str]:
    """Return the strings of the list at a path."""
    value = dig(raw, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def terminating(raw: Raw) -> bool:
    return dig(raw, "metadata", "deletionTimestamp") is not None


def since(timestamp: Any, now: float) -> str:
    """Return the time since a timestamp, `<unknown>` if it is not set."""
    moment = instant(timestamp)
    return UNKNOWN if moment is None else human_duration(now - moment)


def instant(timestamp: Any) -> float | None:
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return parse_time(timestamp)
    except ValueError:
        return None


def human_duration(seconds: float) -> str:
    """Return a duration with two or three figures, as kubectl shows ages; -1 s counts as 0."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, unit: int, sign: str, smaller: int, smaller_sign: str) -> str:
    rest = seconds % unit // smaller
    return f"{seconds // unit}{sign}" + (f"{rest}{smaller_sign}" if rest else "")


def labels_text(labels: Any) -> str:
    """`a=1,b=2` in order of the keys, or `<none>`."""
    pairs = sorted(labels.items()) if isinstance(labels, dict) else []
    return ",".join(f"{key}={value}" for key, value in pairs) or NONE


def selector_terms(selector: Any) -> str:
    terms = [f"{key}={value}" for key, value in sorted(mapping(selector, "matchLabels").items())]
    for expression in maps(selector, "matchExpressions"):
        terms.append(_expression(expression))
    return ",".join(terms)


def _expression(expression: Raw) -> str:
    key, operator = text(expression, "key"), text(expression, "operator")
    values = ",".join(sorted(words(expression, "values")))
    forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "DoesNotExist": f"!{key}"}
    return forms.get(operator, key)
