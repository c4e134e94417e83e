"""Columns and printers as values, so that a kind's table is declared and not programmed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mooring.store.objects import Raw

Cells: TypeAlias = list[Any]
"""One row: texts, integers, booleans or None, one for each column."""


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
