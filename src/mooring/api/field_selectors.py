"""Field selectors of list and watch calls, such as `spec.nodeName!=,status.phase!=Failed`.

Which fields a resource supports is known to the server, not here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from mooring.api.errors import SelectorError

_TERM = re.compile(r"(?P<path>[^=!,\\]+?)(?P<sign>==|=|!=)(?P<value>(?:[^\\,=]|\\[\\,=])*)")
_SEPARATOR = re.compile(r"((?:[^\\,]|\\.|\\\Z)*)(?:,|\Z)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\,=])")
_SPECIAL = re.compile(r"([\\,=])")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A field that must, or with `negated` must not, have a value. An absent field reads as empty."""

    path: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        escaped = _SPECIAL.sub(r"\\\1", self.value)
        return f"{self.path}{'!=' if self.negated else '='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Field requirements that must all hold; without any it selects everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.requirements

    def matches(self, lookup: Callable[[str], str | None]) -> bool:
        """`lookup` gives a field's text by its path, None where it is absent."""
        return all(((lookup(r.path) or "") == r.value) != r.negated for r in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_field_selector(text: str) -> FieldSelector:
    """Terms `path=value`, `path==value`, `path!=value` joined by commas; backslash escapes , = and itself."""
    terms = (match[1] for match in _SEPARATOR.finditer(text))
    return FieldSelector(tuple(_parse_term(text, term) for term in terms if term))


def _parse_term(text: str, term: str) -> FieldRequirement:
    match = _TERM.fullmatch(term)
    if match is None:
        raise SelectorError(f"field selector {text!r}: {term!r} is no term; write path=value or path!=value")
    return FieldRequirement(match["path"], _ESCAPED.sub(r"\1", match["value"]), match["sign"] == "!=")
