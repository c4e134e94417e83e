"""One requirement on labels: a key, an operator and values. The atom of every selector.

Selectors expose their requirements, so that an engine can compile them to something faster than `matches`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mooring.api.errors import SelectorError
from mooring.api.names import is_label_key, is_label_value

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GT = "Gt"
LT = "Lt"

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")


@dataclass(frozen=True, slots=True)
class Requirement:
    """`key operator values`; the values are sorted and distinct. Use `make_requirement` for checked ones."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, text: str) -> bool:
        value, bound = parse_integer(text), parse_integer(self.values[0])
        if value is None or bound is None:
            return False
        return value > bound if self.operator == GT else value < bound

    def __str__(self) -> str:
        """The text form of list calls: `a=b`, `a!=b`, `a in (b,c)`, `a`, `!a`, `a>1`."""
        match self.operator, self.values:
            case "In" | "NotIn", (value,):
                return f"{self.key}{'=' if self.operator == IN else '!='}{value}"
            case "In" | "NotIn", values:
                return f"{self.key} {self.operator.lower()} ({','.join(values)})"
            case "Exists", _:
                return self.key
            case "DoesNotExist", _:
                return f"!{self.key}"
            case _:
                return f"{self.key}{'>' if self.operator == GT else '<'}{self.values[0]}"


def parse_integer(text: str) -> int | None:
    """A signed 64-bit integer in ASCII digits, as Gt and Lt compare; None for anything else."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def make_requirement(
    key: str, operator: str, values: Iterable[str] = (), *, path: str = "", compare: bool = False
) -> Requirement:
    """A checked requirement; SelectorError names the field under `path`. `compare` allows Gt and Lt."""
    listed = tuple(sorted(set(values)))
    if not is_label_key(key):
        raise SelectorError(
            f"{key!r} is not a label key; write name or prefix.example/name", _at(path, "key")
        )
    _check_values(operator, listed, path, compare)
    bad = next((value for value in listed if not is_label_value(value)), None)
    if bad is not None:
        raise SelectorError(
            f"{bad!r} is not a label value; write at most 63 of A-Z a-z 0-9 - _ .", _at(path, "values")
        )
    return Requirement(key, operator, listed)


def _check_values(operator: str, values: tuple[str, ...], path: str, compare: bool) -> None:
    match operator:
        case "In" | "NotIn":
            if not values:
                raise SelectorError(f"operator {operator} needs at least one value", _at(path, "values"))
        case "Exists" | "DoesNotExist":
            if values:
                raise SelectorError(f"operator {operator} takes no values", _at(path, "values"))
        case "Gt" | "Lt" if compare:
            if len(values) != 1 or parse_integer(values[0]) is None:
                raise SelectorError(f"operator {operator} needs exactly one integer", _at(path, "values"))
        case _:
            known = "In, NotIn, Exists, DoesNotExist" + (", Gt, Lt" if compare else "")
            raise SelectorError(f"unknown operator {operator!r}; use one of {known}", _at(path, "operator"))


def _at(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
