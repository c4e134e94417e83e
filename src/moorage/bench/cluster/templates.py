"""Objects of workloads as templates, with the part of Go's template language that scheduler_perf uses.

`{{.Index}}`, `{{Mod .Index 100}}` and `{{AddInt 50 (Mod .Index 350)}}` are replaced; anything else is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from moorage.api import yaml_text
from moorage.api.errors import MoorageError

Json = dict[str, Any]

FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "AddInt": lambda a, b: a + b,
    "SubtractInt": lambda a, b: a - b,
    "MultiplyInt": lambda a, b: a * b,
    "DivideInt": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "Min": min,
}
_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
_TOKEN = re.compile(r"\s*(\(|\)|\.\w+|\d+|\w+|\S)")


class WorkloadError(MoorageError):
    """A workload cannot be read, or asks for something that cannot be done."""


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Return the text with all actions in double braces replaced."""
    return _ACTION.sub(lambda found: str(_value(found[1], values)), text)


def _value(action: str, values: Mapping[str, Any]) -> Any:
    tokens = _TOKEN.findall(action)
    try:
        value = _call(tokens, values) if tokens[0] in FUNCTIONS else _operand(tokens, values)
    except (IndexError, ValueError, TypeError, ZeroDivisionError, KeyError) as error:
        tokens, value = [str(error)], None
    if tokens:
        raise WorkloadError(
            f"cannot evaluate {{{{{action}}}}}: only names such as .Index, numbers and {', '.join(FUNCTIONS)} with two "
            f"operands are supported; known names are {', '.join(values)}"
        )
    return value


def _call(tokens: list[str], values: Mapping[str, Any]) -> int:
    function = FUNCTIONS[tokens.pop(0)]
    return function(int(_operand(tokens, values)), int(_operand(tokens, values)))


def _operand(tokens: list[str], values: Mapping[str, Any]) -> Any:
    token = tokens.pop(0)
    if token == "(":
        result = _call(tokens, values)
        if tokens.pop(0) != ")":
            raise ValueError
        return result
    return values[token[1:]] if token.startswith(".") else int(token)


@dataclass(frozen=True)
class Template:
    """The text of one object, as JSON or, with actions outside of strings, as YAML."""

    text: str
    source: str

    @classmethod
    def of(cls, obj: Any, source: str) -> Template:
        if not isinstance(obj, dict):
            raise WorkloadError(f"{source} is not an object; write metadata and spec of one")
        return cls(msgspec.json.encode(obj).decode(), source)

    @classmethod
    def read(cls, path: Path) -> Template:
        try:
            text = path.read_text()
        except OSError as error:
            raise WorkloadError(
                f"{path}: {error.strerror}; paths of templates are relative to the workload file"
            ) from error
        return cls(text, str(path)) if _ACTION.search(text) else cls.of(yaml_text.load(text, str(path)), str(path))

    @cached_property
    def _is_json(self) -> bool:
        return self.text.startswith("{") and not self.text.startswith("{{")

    def render(self, values: Mapping[str, Any]) -> Json:
        """Return a new object."""
        try:
            text = fill(self.text, values)
            obj = msgspec.json.decode(text) if self._is_json else yaml_text.load(text, self.source)
        except msgspec.DecodeError as error:
            raise WorkloadError(f"{self.source}: {error}; correct the template") from error
        except WorkloadError as error:
            raise WorkloadError(f"{self.source}: {error}") from error
        if not isinstance(obj, dict):
            raise WorkloadError(f"{self.source} is not an object; write metadata and spec of one")
        return obj
