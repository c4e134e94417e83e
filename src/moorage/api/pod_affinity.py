"""Compiled pod affinity terms: the pods that a term matches, and its topology key.

`state.counting` counts where these pods run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from weakref import WeakValueDictionary

import msgspec

from moorage.api.errors import SelectorError
from moorage.api.meta import key_of
from moorage.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity
from moorage.api.recent import Recent
from moorage.api.selectors import Selector, compile_once

Side = PodAffinity | PodAntiAffinity | None

_NO_LABELS: Mapping[str, str] = {}


class AffinityTerm(msgspec.Struct, frozen=True, gc=False):
    """One term.

    It matches a pod if the selector matches the pod's labels, and the pod's namespace is listed or has labels
    that the namespace selector matches.
    """

    topology_key: str
    namespaces: frozenset[str]
    selector: Selector
    namespace_selector: Selector

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str] = _NO_LABELS) -> bool:
        """Return whether the term matches the pod. `namespace_labels` are those of the pod's namespace."""
        if pod.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(pod.labels)
        return False


class WeightedTerm(msgspec.Struct, frozen=True, gc=False):
    """A preference. The weight of an anti-affinity is not negated."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PodTerms:
    """All terms of a pod. A list with an invalid selector is left out as a whole and named in `errors`."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    preferred_anti: tuple[WeightedTerm, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        return len(self.affinity) + len(self.anti_affinity) + len(self.preferred) + len(self.preferred_anti)


NO_TERMS = PodTerms()


def compile_pod_terms(pod: Pod) -> PodTerms:
    """Return the terms of a running or pending pod; the object NO_TERMS if it has none."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    key = pod.metadata.namespace, terms_key(pod)
    found = _compiled.get(key)
    if found is None:
        found = _compiled[key] = _compile(pod.namespace, affinity)
        _recent.put(found, None, 1 + found.number)
    return found


def terms_key(pod: Pod) -> bytes:
    """Return a key for the terms of a pod; equal for pods of one template."""
    affinity = pod.spec.affinity
    return b"" if affinity is None else key_of(affinity.pod_affinity, affinity.pod_anti_affinity)


_recent: Recent[PodTerms, None] = Recent(4096)
"""Keeps the latest compiled terms alive until a pod's holder does."""
_compiled: "WeakValueDictionary[tuple[str, bytes], PodTerms]" = WeakValueDictionary()
"""Namespace and key → terms. Pods of one template have equal terms, and each is compiled several times."""


def _compile(pod_namespace: str, affinity: Affinity) -> PodTerms:
    near, away = affinity.pod_affinity, affinity.pod_anti_affinity
    namespace = frozenset((pod_namespace,))
    errors: list[str] = []
    return PodTerms(
        _required(namespace, near, "requiredAffinityTerms", errors),
        _required(namespace, away, "requiredAntiAffinityTerms", errors),
        _preferred(namespace, near, "preferredAffinityTerms", errors),
        _preferred(namespace, away, "preferredAntiAffinityTerms", errors),
        tuple(errors),
    )


def _required(namespace: frozenset[str], side: Side, name: str, errors: list[str]) -> tuple[AffinityTerm, ...]:
    terms = side.required_during_scheduling_ignored_during_execution if side is not None else ()
    try:
        return tuple([_compile_term(namespace, term) for term in terms])
    except SelectorError as error:
        errors.append(f"{name}: {error}")
        return ()


def _preferred(namespace: frozenset[str], side: Side, name: str, errors: list[str]) -> tuple[WeightedTerm, ...]:
    preferred = side.preferred_during_scheduling_ignored_during_execution if side is not None else ()
    try:
        return tuple(
            [WeightedTerm(each.weight, _compile_term(namespace, each.pod_affinity_term)) for each in preferred]
        )
    except SelectorError as error:
        errors.append(f"{name}: {error}")
        return ()


def _compile_term(namespace: frozenset[str], term: PodAffinityTerm) -> AffinityTerm:
    """Compile a term of a pod in `namespace`, which is the default if the term selects no namespaces.

    Raises SelectorError.
    """
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        intern(term.topology_key),
        namespace if own else frozenset(term.namespaces),
        compile_once(term.label_selector),
        compile_once(term.namespace_selector),
    )
