"""The terms of an incoming pod, with namespaces by name.

As upstream, a namespace selector is resolved to the names of the namespaces that it matches now, and stays on
the term all the same, where it is held against no labels at all: one that is made of NotIn and DoesNotExist
only matches pods of every namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from moorage.api.core import Namespace
from moorage.api.pod import Pod
from moorage.api.pod_affinity import AffinityTerm
from moorage.api.resources import NAMESPACES
from moorage.api.selectors import NOTHING, Requirement, Selector, make_selector
from moorage.framework.access import Version
from moorage.framework.handle import Handle
from moorage.framework.indexes import PodSelector

_REMEMBERED = 1024
"""Namespace selectors whose namespaces are remembered."""
_NO_LABELS: Mapping[str, str] = {}


class Namespaces:
    """Labels of namespaces, and the namespaces that a selector means."""

    def __init__(self, handle: Handle) -> None:
        self._lister = handle.lister(NAMESPACES)
        self._index = handle.object_index("labels", NAMESPACES, label_keys)
        self._resolved: dict[Selector, tuple[int, frozenset[str]]] = {}
        """Selector → version of the namespaces, and what it meant then."""

    @property
    def version(self) -> Version:
        return self._index.version

    def labels(self, name: str) -> Mapping[str, str]:
        """Those of a namespace; none for an unknown one."""
        namespace: Namespace | None = self._lister.get(name)
        return _NO_LABELS if namespace is None else namespace.labels

    def matching(self, selector: Selector) -> frozenset[str]:
        """The names of the namespaces that the selector matches."""
        version, found = self._resolved.get(selector, (-1, frozenset()))
        if version != self.version.value:
            found = frozenset(ns.name for ns in self._lister.list() if selector.matches(ns.labels))
            if len(self._resolved) >= _REMEMBERED:
                self._resolved.clear()
            self._resolved[selector] = (self.version.value, found)
        return found

    def resolve(self, term: AffinityTerm) -> AffinityTerm:
        """The term of an incoming pod: with the names that its namespace selector means."""
        selector = term.namespace_selector
        if selector.nothing or selector.empty:
            return term
        names = term.namespaces | self.matching(selector)
        return AffinityTerm(term.topology_key, names, term.selector, selector)


def label_keys(namespace: Namespace) -> Iterator[object]:
    yield msgspec.json.encode(sorted(namespace.labels.items()))


def wanted(term: AffinityTerm) -> PodSelector:
    """The pods that a resolved term of an incoming pod means."""
    everywhere = term.namespace_selector.matches(_NO_LABELS)
    return PodSelector(None if everywhere else term.namespaces, term.selector)


def wanted_by_all(terms: Iterable[AffinityTerm]) -> PodSelector:
    """The pods that all of the terms mean."""
    namespaces: frozenset[str] | None = None
    requirements: list[Requirement] = []
    for selected in map(wanted, terms):
        if selected.selector.nothing:
            return PodSelector(frozenset(), NOTHING)
        requirements += selected.selector.requirements
        if selected.namespaces is not None:
            namespaces = selected.namespaces if namespaces is None else namespaces & selected.namespaces
    return PodSelector(namespaces, make_selector(requirements))


def matches_all(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Whether one pod matches all resolved terms of an incoming pod; no terms match no pod."""
    return bool(terms) and all(term.matches(pod) for term in terms)
