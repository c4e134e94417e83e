"""The JSONPath of kubectl and of additionalPrinterColumns, as in k8s.io/client-go/util/jsonpath.

Supported are fields (`.a.b`, `['a.b']`, with `\\` as escape), indexes (`[0]`, `[-1]`, `[*]`) and filters
(`[?(@.type=="Ready")]`, also with `!=`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[Any], Iterator[Any]]

_FIELD = re.compile(r"\.((?:[^.\[\]\\]|\\.)+)")
_QUOTED = re.compile(r"""\[(['"])(.*?)\1\]""")
_INDEX = re.compile(r"\[(-?\d+|\*)\]")
_FILTER = re.compile(r"""\[\?\(\s*+@((?:\.(?:[^.\[\]\\=!\s]|\\.)+)+)\s*+(==|!=)\s*+(['"]?)(.*?)\3\s*+\)\]""")
MAX_CHARACTERS = 1000
"""Of a path: the time to read one is at most quadratic in its length."""


class PathError(ValueError):
    """The path uses a notation that is not supported."""


@lru_cache(maxsize=256)
def compile_path(path: str) -> tuple[Step, ...]:
    """Return the steps of a path, or raise a PathError."""
    if len(path) > MAX_CHARACTERS:
        raise PathError(f"JSONPath {path[:40]!r}… is longer than {MAX_CHARACTERS} characters")
    steps: list[Step] = []
    rest = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    while rest and rest != ".":
        step, length = _next(rest, path)
        steps.append(step)
        rest = rest[length:]
    return tuple(steps)


def first(path: tuple[Step, ...], value: Any) -> Any:
    """Return the first value that the path leads to, or None."""
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
