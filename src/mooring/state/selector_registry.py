"""Which of many selectors match this pod: found by the pod's labels, without trying them all.

A selector that demands `key in (values)` is filed under these values; a pod finds it by its own label.
Selectors without such a demand are on a short list that everybody tries. Used for counters (a new set of
labels: who counts it?) and for the terms of running pods (an incoming pod: whom does it concern?).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from mooring.api.selectors import IN, Requirement, Selector

T = TypeVar("T", bound=Hashable)

Anchor = tuple[str, str]
_UNANCHORED: Anchor = ("", "")
"""No label has an empty key."""
_MOST_VALUES = 16
_MOST_NAMESPACES = 8


class SelectorRegistry(Generic[T]):
    """Items, each with the namespaces and the labels that it wants."""

    def __init__(self) -> None:
        self._spaces: dict[str | None, dict[Anchor, dict[T, None]]] = {}
        """Namespace (None: several or all) → label → items that want it. Nothing in it is empty."""

    def add(self, item: T, namespaces: frozenset[str] | None, selector: Selector) -> None:
        for space, anchor in _places(namespaces, selector):
            self._spaces.setdefault(space, {}).setdefault(anchor, {})[item] = None

    def remove(self, item: T, namespaces: frozenset[str] | None, selector: Selector) -> None:
        for space, anchor in _places(namespaces, selector):
            anchors = self._spaces[space]
            del anchors[anchor][item]
            if not anchors[anchor]:
                del anchors[anchor]
                if not anchors:
                    del self._spaces[space]

    @property
    def is_empty(self) -> bool:
        return not self._spaces

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """Items that may match a pod, each once; all that do match are among them."""
        for space in (namespace, None):
            anchors = self._spaces.get(space)
            if anchors is None:
                continue
            yield from anchors.get(_UNANCHORED, ())
            for label in labels.items():
                yield from anchors.get(label, ())


def anchor_of(selector: Selector) -> Requirement | None:
    """The demand that the fewest labels fulfil."""
    demands = [r for r in selector.requirements if r.operator == IN and len(r.values) <= _MOST_VALUES]
    return min(demands, key=lambda demand: len(demand.values), default=None)


def _places(namespaces: frozenset[str] | None, selector: Selector) -> Iterator[tuple[str | None, Anchor]]:
    if selector.nothing:
        return
    few = namespaces is not None and len(namespaces) <= _MOST_NAMESPACES
    anchor = anchor_of(selector)
    labels = [_UNANCHORED] if anchor is None else [(anchor.key, value) for value in anchor.values]
    for space in (namespaces or ()) if few else (None,):
        for label in labels:
            yield space, label
