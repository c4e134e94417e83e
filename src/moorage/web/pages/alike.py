"""Rows that say the same are shown as one row with a count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import groupby
from typing import TypeVar

from moorage.web.source import Json

MIN_ALIKE = 5
"""Fewer rows than this are shown one by one."""
T = TypeVar("T")


def merged(rows: Iterable[Json], field: str, fields: Iterable[str], total: str = "") -> list[Json]:
    """Merge rows with equal values in `fields` into the first of them, if there are many.

    The values of `field` in the other rows, with their links, go into FIELD_more, which `shell.table` shows. The
    values of `total` are added up.
    """
    given, names = list(rows), tuple(fields)
    groups: dict[Hashable, list[Json]] = {}
    for row in given:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    found: list[Json] = []
    for row in given:
        same = groups[tuple(row[name] for name in names)]
        if len(same) < MIN_ALIKE:
            found.append(row)
        elif row is same[0]:
            found.append(_one(same, field, total))
    return found


def _one(same: list[Json], field: str, total: str) -> Json:
    more = [{"text": row[field], "url": row.get(f"{field}_url", "")} for row in same[1:]]
    added = {total: sum(row[total] for row in same)} if total else {}
    return {**same[0], f"{field}_more": more, **added}


def runs(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Split a sequence into runs of items with equal keys; short runs become single items."""
    found: list[list[T]] = []
    for _, group in groupby(items, key):
        same = list(group)
        found += [same] if len(same) >= MIN_ALIKE else [[each] for each in same]
    return found
