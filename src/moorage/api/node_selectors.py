"""Node selectors: terms are ORed, expressions in a term are ANDed, and an empty term matches no node.

A term that cannot be parsed matches no node and does not affect the others; its problem is in `errors`.
Follows k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from moorage.api.errors import SelectorError
from moorage.api.meta import key_of
from moorage.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from moorage.api.pod import NodeAffinity, Pod
from moorage.api.recent import cached
from moorage.api.selectors import IN, NOT_IN, Requirement, Selector, make_requirement, selector_from_labels, size_of

METADATA_NAME = "metadata.name"
_MAX_CACHED_SIZE = 32
"""Selectors with more expressions and values are not cached: one pod may have thousands that no other pod has."""

_Requirements = tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A compiled term. `fields` has only In and NotIn, with one value each."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if self.errors or not all(requirement.matches(labels) for requirement in self.labels):
            return False
        # As upstream, fields of a node without a name are not evaluated.
        return not name or all(_field_matches(requirement, name) for requirement in self.fields)


@dataclass(frozen=True, slots=True)
class CompiledNodeSelector:
    """Terms of which at least one must match; without terms no node matches."""

    terms: tuple[NodeTerm, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """The parse errors of all terms. As upstream, they matter only if no term matches."""
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A compiled term with its weight."""

    weight: int
    term: NodeTerm


@dataclass(frozen=True, slots=True)
class PreferredTerms:
    """All node preferences of a pod."""

    terms: tuple[PreferredTerm, ...] = ()

    @property
    def key(self) -> Hashable:
        """A short cache key for these terms."""
        return self if _size(each.term for each in self.terms) <= _MAX_CACHED_SIZE else key_of(self)

    def score(self, labels: Mapping[str, str], name: str) -> int:
        """Return the sum of the weights of the terms that match."""
        return sum(each.weight for each in self.terms if each.term.matches(labels, name))


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """A pod's nodeSelector and required node affinity; None if the pod has none."""

    selector: Selector | None
    terms: CompiledNodeSelector | None

    @property
    def key(self) -> Hashable:
        """A short cache key for this affinity."""
        size = size_of(self.selector.requirements) if self.selector is not None else 0
        size += _size(self.terms.terms) if self.terms is not None else 0
        return self if size <= _MAX_CACHED_SIZE else key_of(self)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if self.selector is not None and not self.selector.matches(labels):
            return False
        return self.terms is None or self.terms.matches(labels, name)


def compile_node_selector(selector: NodeSelector | None) -> CompiledNodeSelector:
    """Compile a selector. None matches no node, like a selector without terms."""
    return CompiledNodeSelector() if selector is None else compile_node_selector_terms(selector.node_selector_terms)


def compile_node_selector_terms(terms: Iterable[NodeSelectorTerm]) -> CompiledNodeSelector:
    listed = tuple(terms)
    size = sum([1 + _values(term.match_expressions) + _values(term.match_fields) for term in listed])
    return _compiled(listed) if size <= _MAX_CACHED_SIZE else _compile(listed)


def _values(listed: tuple[NodeSelectorRequirement, ...]) -> int:
    return sum([1 + len(wanted.values) for wanted in listed])


def _size(terms: Iterable[NodeTerm]) -> int:
    return sum([1 + size_of(term.labels) + size_of(term.fields) for term in terms])


def compile_preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> PreferredTerms:
    """Compile preferences, dropping those without weight or expressions. Raises SelectorError."""
    compiled = []
    for index, preferred in enumerate(terms):
        if preferred.weight == 0 or _is_empty(preferred.preference):
            continue
        labels, fields, errors = _parse_term(preferred.preference, f"[{index}]")
        if errors:
            raise errors[0]
        compiled.append(PreferredTerm(preferred.weight, NodeTerm(labels, fields)))
    return PreferredTerms(tuple(compiled))


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """Return the nodeSelector and the required node affinity of the pod."""
    labels = pod.spec.node_selector
    affinity = _node_affinity(pod).required_during_scheduling_ignored_during_execution
    return RequiredNodeAffinity(
        selector_from_labels(labels) if labels else None, None if affinity is None else compile_node_selector(affinity)
    )


def required_node_names(selector: NodeSelector | None) -> frozenset[str] | None:
    """Return the only nodes that can match, if every term names nodes by metadata.name; otherwise None.

    An empty set means that the terms contradict each other, so that no node can match.
    """
    terms = selector.node_selector_terms if selector is not None else ()
    names: set[str] = set()
    for term in terms:
        listed = [
            set(field.values) for field in term.match_fields if field.key == METADATA_NAME and field.operator == IN
        ]
        if not listed:
            return None
        names |= set.intersection(*listed)
    return frozenset(names) if terms else None


def _node_affinity(pod: Pod) -> NodeAffinity:
    affinity = pod.spec.affinity
    return affinity.node_affinity or NodeAffinity() if affinity is not None else NodeAffinity()


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


@cached(4096)
def _compiled(terms: tuple[NodeSelectorTerm, ...]) -> CompiledNodeSelector:
    return _compile(terms)


def _compile(terms: tuple[NodeSelectorTerm, ...]) -> CompiledNodeSelector:
    compiled = []
    for index, term in enumerate(terms):
        if not _is_empty(term):
            labels, fields, errors = _parse_term(term, f"nodeSelectorTerms[{index}]")
            compiled.append(NodeTerm(labels, fields, tuple(map(str, errors))))
    return CompiledNodeSelector(tuple(compiled))


def _parse_term(term: NodeSelectorTerm, path: str) -> tuple[_Requirements, _Requirements, list[SelectorError]]:
    errors: list[SelectorError] = []
    labels = _parse(term.match_expressions, f"{path}.matchExpressions", _label_requirement, errors)
    fields = _parse(term.match_fields, f"{path}.matchFields", _field_requirement, errors)
    return labels, fields, errors


def _parse(
    required: tuple[NodeSelectorRequirement, ...],
    path: str,
    make: Callable[[NodeSelectorRequirement, str], Requirement],
    errors: list[SelectorError],
) -> _Requirements:
    requirements: list[Requirement] = []
    for index, requirement in enumerate(required):
        try:
            requirements.append(make(requirement, f"{path}[{index}]"))
        except SelectorError as error:
            errors.append(error)
    return tuple(requirements)


def _label_requirement(required: NodeSelectorRequirement, path: str) -> Requirement:
    return make_requirement(required.key, required.operator, required.values, path=path, compare=True)


def _field_requirement(required: NodeSelectorRequirement, path: str) -> Requirement:
    if required.operator not in (IN, NOT_IN):
        raise SelectorError(f"unknown operator {required.operator!r}; use In or NotIn", f"{path}.operator")
    if len(required.values) != 1:
        raise SelectorError("a field needs exactly one value", f"{path}.values")
    return Requirement(required.key, required.operator, required.values)


def _field_matches(requirement: Requirement, name: str) -> bool:
    actual = name if requirement.key == METADATA_NAME else ""
    return (actual in requirement.values) == (requirement.operator == IN)
