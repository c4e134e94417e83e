"""Label selectors: compiled from LabelSelector records or from the text of list calls."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from mooring.api.errors import SelectorError
from mooring.api.meta import LabelSelector, LabelSelectorRequirement
from mooring.api.requirements import DOES_NOT_EXIST, EXISTS, GT, IN, LT, NOT_IN, Requirement, make_requirement

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
    """Requirements that must all hold. Hashable; equal ones are shared, so comparing them is cheap."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    empty: bool = field(init=False, compare=False, repr=False)
    """Selects every object."""
    _hash: int = field(init=False, compare=False, repr=False)
    """Computed once: selectors are keys of counters, and looked up for every pod."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "empty", not self.requirements and not self.nothing)
        object.__setattr__(self, "_hash", hash((self.requirements, self.nothing)))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def plus(self, *requirements: Requirement) -> "Selector":
        """This selector with more requirements; one that selects nothing stays so."""
        return self if self.nothing else make_selector((*self.requirements, *requirements))

    def __str__(self) -> str:
        return "<nothing>" if self.nothing else ",".join(map(str, self.requirements))


NOTHING = Selector(nothing=True)


def make_selector(requirements: Iterable[Requirement]) -> Selector:
    """The one Selector of these requirements, whatever their order."""
    return _interned(tuple(sorted(set(requirements), key=lambda r: (r.key, r.operator, r.values))))


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """All these labels, unchecked as upstream: nodeSelector, services and replication controllers."""
    return make_selector(Requirement(key, IN, (value,)) for key, value in labels.items())


def compile_label_selector(selector: LabelSelector | None, path: str = "") -> Selector:
    """None selects nothing, an empty selector everything; SelectorError names the bad field under `path`."""
    if selector is None:
        return NOTHING
    return _compiled(tuple(sorted(selector.match_labels.items())), selector.match_expressions, path)


def parse_selector(text: str) -> Selector:
    """The selector of a list call: `a=b,c!=d,e in (f,g),!h,i,j>1`; an empty text selects everything."""
    requirements: list[Requirement] = []
    position = 0
    while position < len(text) and not (position == 0 and text.isspace()):
        match = _CLAUSE.match(text, position)
        if match is None:
            raise SelectorError(
                f"label selector {text!r} is not understood from {text[position:]!r} on; "
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


@lru_cache(maxsize=16384)
def _interned(requirements: tuple[Requirement, ...]) -> Selector:
    return Selector(requirements)


@lru_cache(maxsize=16384)
def _compiled(
    labels: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...], path: str
) -> Selector:
    prefix = f"{path}." if path else ""
    requirements = [
        make_requirement(key, IN, [value], path=f"{prefix}matchLabels[{key}]") for key, value in labels
    ]
    for index, wanted in enumerate(expressions):
        where = f"{prefix}matchExpressions[{index}]"
        requirements.append(make_requirement(wanted.key, wanted.operator, wanted.values, path=where))
    return make_selector(requirements)
