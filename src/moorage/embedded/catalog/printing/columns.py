"""Columns of tables, and the values in their cells: ages, counts, texts, in the form that kubectl shows.

Objects may be of any shape: what is missing, or of another type than it should be, is shown as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from moorage.api.times import parse_time
from moorage.store.objects import Raw

Cells: TypeAlias = list[Any]
"""One row: texts, integers, booleans or None, one for each column."""
NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Priority 0 is always shown, 1 only in wide output."""

    name: str
    type: str = "string"
    priority: int = 0
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


@dataclass(frozen=True, slots=True)
class Printer:
    """How one kind is shown: its columns, and the row of an object at a moment (Unix seconds)."""

    columns: tuple[Column, ...]
    cells: Callable[[Raw, float], Cells]
    definitions: list[Raw] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "definitions", [column.definition() for column in self.columns])


NAME = Column("Name", format="name", description="The name, unique among the objects of its kind and place.")
AGE = Column("Age", description="The time since the object was created.")


def integer(name: str) -> Column:
    return Column(name, "integer")


def boolean(name: str) -> Column:
    return Column(name, "boolean")


def wide(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, priority=1) for name in names)


def plain(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def dig(raw: Any, *path: str) -> Any:
    """The value below the keys; None where the path ends early."""
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
    """The list of objects at a path, without elements that are none."""
    value = dig(raw, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping(raw: Any, *path: str) -> Raw:
    value = dig(raw, *path)
    return value if isinstance(value, dict) else {}


def words(raw: Any, *path: str) -> list[str]:
    """The list of strings at a path."""
    value = dig(raw, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def name_of(raw: Raw) -> str:
    return text(raw, "metadata", "name")


def terminating(raw: Raw) -> bool:
    return dig(raw, "metadata", "deletionTimestamp") is not None


def age(raw: Raw, now: float) -> str:
    return since(dig(raw, "metadata", "creationTimestamp"), now)


def since(timestamp: Any, now: float) -> str:
    """How long ago; `<unknown>` for a time that is not set."""
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
    """Two or three figures, as kubectl shows ages. A clock that is a second ahead is forgiven."""
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


def selector_text(selector: Any) -> str:
    """A label selector in the notation of `kubectl -l`; `<none>` where there is none or it is empty."""
    return selector_terms(selector) or NONE


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


def containers(spec: Any) -> tuple[str, str]:
    """Names and images of a pod spec's containers."""
    found = maps(spec, "containers")
    return ",".join(text(c, "name") for c in found), ",".join(text(c, "image") for c in found)


def at_most_three(items: Iterable[str], total: int, *, empty: str) -> str:
    """The first three, and how many more there are."""
    shown = list(items)[:3]
    joined = ",".join(shown)
    return f"{joined} + {total - 3} more..." if total > 3 else joined or empty
