"""Selectors over labels and over fields.

Label selectors are compiled from LabelSelector records or from the text of list requests. Field selectors
such as `spec.nodeName!=,status.phase!=Failed` come from text only; the server knows which fields a resource
supports. Selectors expose their requirements, so that callers can compile them to something faster than
`matches`. Selectors over nodes are in `node_selectors`.

Follows k8s.io/apimachinery/pkg/labels/selector.go and pkg/fields/selector.go.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from moorage.api.errors import SelectorError
from moorage.api.meta import LabelSelector, LabelSelectorRequirement, is_label_key, is_label_value
from moorage.api.recent import cached

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GT = "Gt"
LT = "Lt"

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_MAX_CACHED_SELECTORS = 4096
"""Number of selectors kept; the latest ones."""
_MAX_CACHED_SIZE = 32
"""Selectors with more requirements and values are not kept: one pod may have a selector of a megabyte."""
_MAX_SCANNED = 16
"""More values than this are searched by bisection."""


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """`key operator values`, with sorted and distinct values. `make_requirement` validates."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and self.lists(value)
            case "NotIn":
                return value is None or not self.lists(value)
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def lists(self, value: str) -> bool:
        """Return whether the value is one of the values, which are sorted."""
        values = self.values
        if len(values) <= _MAX_SCANNED:
            return value in values
        place = bisect_left(values, value)
        return place < len(values) and values[place] == value

    def _compares(self, text: str) -> bool:
        value, bound = parse_integer(text), parse_integer(self.values[0])
        if value is None or bound is None:
            return False
        return value > bound if self.operator == GT else value < bound

    def __str__(self) -> str:
        """Return the text form of list requests: `a=b`, `a!=b`, `a in (b,c)`, `a`, `!a`, `a>1`."""
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
    """Return a signed 64-bit integer in ASCII digits, as Gt and Lt compare, or None."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def make_requirement(
    key: str, operator: str, values: Iterable[str] = (), *, path: str = "", compare: bool = False
) -> Requirement:
    """Return a valid requirement. `compare` allows Gt and Lt.

    Raises SelectorError that names the field under `path`.
    """
    listed = tuple(values)
    if len(listed) > 1:
        listed = tuple(sorted(set(listed)))
    if not is_label_key(key):
        raise SelectorError(f"{key!r} is not a label key; write name or prefix.example/name", _at(path, "key"))
    _check_values(operator, listed, path, compare)
    bad = next((value for value in listed if not is_label_value(value)), None)
    if bad is not None:
        raise SelectorError(f"{bad!r} is not a label value; write at most 63 of A-Z a-z 0-9 - _ .", _at(path, "values"))
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


_WORD = r"[^\s=!<>(),]"
_CLAUSE = re.compile(
    rf"\s*(?:!\s*(?P<absent>{_WORD}+)"
    rf"|(?P<key>{_WORD}+)(?:\s*(?P<sign>==|=|!=|>|<)\s*(?P<value>{_WORD}*)"
    r"|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?"
    r")\s*(?:,(?=.)|\Z)",
    re.DOTALL,
)
_SIGNS = {"=": IN, "==": IN, "!=": NOT_IN, ">": GT, "<": LT}


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold. Hashable; equal selectors are shared, so comparing them is cheap."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    empty: bool = field(init=False, compare=False, repr=False)
    """Whether it selects every object."""
    _hash: int = field(init=False, compare=False, repr=False)
    """Computed once, because selectors are keys of counters and looked up for every pod."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "empty", not self.requirements and not self.nothing)
        object.__setattr__(self, "_hash", hash((self.requirements, self.nothing)))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110  # several times as fast as all()
            if not requirement.matches(labels):
                return False
        return True

    def plus(self, *requirements: Requirement) -> "Selector":
        """Return this selector with more requirements. One that selects nothing stays unchanged."""
        return self if self.nothing else make_selector((*self.requirements, *requirements))

    def __str__(self) -> str:
        return "<nothing>" if self.nothing else ",".join(map(str, self.requirements))


NOTHING = Selector(nothing=True)


def make_selector(requirements: Iterable[Requirement]) -> Selector:
    """Return the Selector of these requirements, in any order. Equal ones are shared unless they are large."""
    ordered = _ordered(requirements)
    return _interned(ordered) if size_of(ordered) <= _MAX_CACHED_SIZE else Selector(ordered)


def size_of(requirements: Iterable[Requirement]) -> int:
    """Return the number of requirements and their values, which is what a selector costs."""
    return sum([1 + len(requirement.values) for requirement in requirements])


def _ordered(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    found = tuple(requirements)
    if len(found) < 2:
        return found
    return tuple(sorted(set(found), key=lambda r: (r.key, r.operator, r.values)))


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """Select all these labels, unchecked as upstream: nodeSelector, services, replication controllers."""
    return make_selector(Requirement(key, IN, (value,)) for key, value in labels.items())


def compile_label_selector(selector: LabelSelector | None, path: str = "") -> Selector:
    """Compile a selector. None selects nothing, an empty selector selects everything.

    Raises SelectorError that names the field under `path`.
    """
    if selector is None:
        return NOTHING
    labels, expressions = tuple(sorted(selector.match_labels.items())), selector.match_expressions
    size = len(labels) + sum([1 + len(wanted.values) for wanted in expressions])
    if size > _MAX_CACHED_SIZE:
        return make_selector(_checked(labels, expressions, path))
    return _compiled(labels, expressions, path)


def compile_once(selector: LabelSelector | None) -> Selector:
    """Compile a selector without caching it, for callers that keep the result.

    One pod may have hundreds of selectors that no other pod has; they must not evict those of others.
    """
    if selector is None:
        return NOTHING
    return Selector(_ordered(_checked(selector.match_labels.items(), selector.match_expressions, "")))


def parse_selector(text: str) -> Selector:
    """Parse the selector of a list request: `a=b,c!=d,e in (f,g),!h,i,j>1`. An empty text selects everything."""
    requirements: list[Requirement] = []
    position = 0
    while position < len(text) and not (position == 0 and text.isspace()):
        match = _CLAUSE.match(text, position)
        if match is None:
            raise SelectorError(
                f"label selector {text!r} cannot be parsed from {text[position:]!r} on; "
                "write clauses such as a=b, a!=b, a in (b,c), a notin (b), a, !a, joined by commas"
            )
        requirements.append(_from_clause(match))
        position = match.end()
    return make_selector(requirements)


def _from_clause(match: re.Match[str]) -> Requirement:
    absent, key, sign, value, words, values = match.group("absent", "key", "sign", "value", "set", "values")
    if absent is not None:
        return make_requirement(absent, DOES_NOT_EXIST)
    if sign is not None:
        return make_requirement(key, _SIGNS[sign], [value], compare=True)
    if words is not None:
        return make_requirement(key, IN if words == "in" else NOT_IN, (v.strip() for v in values.split(",")))
    return make_requirement(key, EXISTS)


@cached(_MAX_CACHED_SELECTORS)
def _interned(requirements: tuple[Requirement, ...]) -> Selector:
    return Selector(requirements)


@cached(_MAX_CACHED_SELECTORS)
def _compiled(
    labels: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...], path: str
) -> Selector:
    return make_selector(_checked(labels, expressions, path))


def _checked(
    labels: Iterable[tuple[str, str]], expressions: tuple[LabelSelectorRequirement, ...], path: str
) -> list[Requirement]:
    prefix = f"{path}." if path else ""
    requirements = [make_requirement(key, IN, [value], path=f"{prefix}matchLabels[{key}]") for key, value in labels]
    for index, wanted in enumerate(expressions):
        where = f"{prefix}matchExpressions[{index}]"
        requirements.append(make_requirement(wanted.key, wanted.operator, wanted.values, path=where))
    return requirements


EVERYTHING = make_selector(())


_TERM = re.compile(r"(?P<path>[^=!,\\]+?)(?P<sign>==|=|!=)(?P<value>(?:[^\\,=]|\\[\\,=])*)")
_SEPARATOR = re.compile(r"((?:[^\\,]|\\.|\\\Z)*)(?:,|\Z)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\,=])")
_SPECIAL = re.compile(r"([\\,=])")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A field that must have a value, or must not if `negated`. An absent field is empty."""

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
        """Return whether all requirements hold. `lookup` returns a field's text by path, or None."""
        return all(((lookup(r.path) or "") == r.value) != r.negated for r in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_field_selector(text: str) -> FieldSelector:
    """Parse terms `path=value`, `path==value`, `path!=value`, joined by commas. Backslash escapes , = and \\."""
    terms = (match[1] for match in _SEPARATOR.finditer(text))
    return FieldSelector(tuple(_parse_term(text, term) for term in terms if term))


def _parse_term(text: str, term: str) -> FieldRequirement:
    match = _TERM.fullmatch(term)
    if match is None:
        raise SelectorError(f"field selector {text!r}: {term!r} is not a term; use path=value or path!=value")
    return FieldRequirement(match["path"], _ESCAPED.sub(r"\1", match["value"]), match["sign"] == "!=")
