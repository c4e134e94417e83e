"""Pods found by a selector, and selectors found by a pod: by labels, without trying them all.

There is one entry per namespace and set of labels, with the rows where such pods run. Pods of one controller
have the same labels, so there are far fewer entries than pods, and a selector is judged once per entry.
`(namespace, label=value)` leads to the entries, which is how a new counter is built without looking at all
pods.

The other way round, a selector that demands `key in (values)` is filed under these values, and one that
demands a key under the key; a pod finds it by its own label. Selectors without such a demand are on a list
that is tried for every pod. Used for
counters (which of them count a new set of labels?) and for the terms of running pods (which of them concern
an incoming pod?).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from moorage.api.meta import ObjectMeta
from moorage.api.selectors import EXISTS, IN, Selector
from moorage.framework.indexes import PodSelector

LabelsKey = tuple[tuple[str, str], ...]
"""Labels in order, which is what a set of labels is known by."""

_VACANT = 1024
"""Entries without pods that are kept, because many are about to be used again: the next pod of a controller
often comes after the last one has gone."""
T = TypeVar("T", bound=Hashable)
_Place: TypeAlias = T | dict[T, None]
"""One item, as most places have, or several."""
_Anchors: TypeAlias = dict[str, dict[str | None, _Place[T]]]
"""Key → value, None for any → items."""
_Demand = tuple[str, tuple[str | None, ...]]
_NO_KEY = ""
"""No label has an empty key."""
_ANY = (None,)
_MOST_VALUES = 16
_MOST_NAMESPACES = 8


class Counting(Protocol):
    """A counter of pods."""

    def change(self, row: int, number: int, terminating: bool) -> None:
        """So many pods came to the row, or left it."""
        ...

    def leave(self, entry: LabelSet) -> None:
        """The entry is dropped; it has no pods any more."""
        ...


class LabelSet:
    """All pods of one namespace that have exactly these labels."""

    __slots__ = ("counters", "key", "labels", "namespace", "rows", "terminating")

    def __init__(self, namespace: str, labels: Mapping[str, str], key: LabelsKey) -> None:
        self.namespace = namespace
        self.labels = labels
        self.key = key
        self.rows: dict[int, int] = {}
        """Row → pods there."""
        self.terminating: dict[int, int] = {}
        """Row → how many of them are being deleted."""
        self.counters: tuple[Counting, ...] = ()
        """The counters that count these pods."""

    def matches(self, wanted: PodSelector) -> bool:
        inside = wanted.namespaces is None or self.namespace in wanted.namespaces
        return inside and wanted.selector.matches(self.labels)


class _Space:
    """One namespace."""

    __slots__ = ("by_label", "sets")

    def __init__(self) -> None:
        self.sets: dict[LabelsKey, LabelSet] = {}
        self.by_label: dict[str, dict[str, dict[LabelSet, None]]] = {}
        """Key → value → entries with that label. Nothing in it is empty."""


class PodLabelsIndex:
    """Entries by namespace and label."""

    def __init__(self) -> None:
        self._spaces: dict[str, _Space] = {}
        self._vacant: dict[LabelSet, None] = {}

    def find(self, meta: ObjectMeta) -> LabelSet | None:
        """The set of a pod, if it is there."""
        space = self._spaces.get(meta.namespace)
        return None if space is None else space.sets.get(_key(meta.labels))

    def find_or_make(self, meta: ObjectMeta) -> tuple[LabelSet, bool]:
        """The set of a pod, and whether it is new."""
        key = _key(meta.labels)
        space = self._spaces.get(meta.namespace)
        if space is None:
            space = self._spaces[meta.namespace] = _Space()
        found = space.sets.get(key)
        if found is not None:
            if not found.rows:
                self._vacant.pop(found, None)
            return found, False
        found = space.sets[key] = LabelSet(meta.namespace, meta.labels, key)
        for label, value in key:
            space.by_label.setdefault(label, {}).setdefault(value, {})[found] = None
        return found, True

    def vacated(self, entry: LabelSet) -> None:
        """The last pod of an entry is gone. In time the entry is dropped, and its counters are notified."""
        self._vacant[entry] = None
        if len(self._vacant) > _VACANT:
            oldest = next(iter(self._vacant))
            del self._vacant[oldest]
            self._drop(oldest)

    def matching(self, wanted: PodSelector) -> Iterator[LabelSet]:
        """The entries whose pods are wanted."""
        if wanted.selector.nothing:
            return
        for name in self._spaces if wanted.namespaces is None else wanted.namespaces:
            space = self._spaces.get(name)
            if space is not None:
                yield from (entry for entry in _candidates(space, wanted.selector) if entry.matches(wanted))

    def __iter__(self) -> Iterator[LabelSet]:
        """All entries; for checks."""
        for space in self._spaces.values():
            yield from space.sets.values()

    def _drop(self, entry: LabelSet) -> None:
        for counter in entry.counters:
            counter.leave(entry)
        space = self._spaces[entry.namespace]
        del space.sets[entry.key]
        if not space.sets:
            del self._spaces[entry.namespace]
        for label, value in entry.key:
            values = space.by_label[label]
            del values[value][entry]
            if not values[value]:
                del values[value]
                if not values:
                    del space.by_label[label]


def _candidates(space: _Space, selector: Selector) -> Iterable[LabelSet]:
    """Few entries among which all matching ones are: those that fulfil the rarest demand for a label."""
    best: list[dict[LabelSet, None]] | None = None
    fewest = len(space.sets)
    for demand in selector.requirements:
        if demand.operator not in (IN, EXISTS):
            continue
        values = space.by_label.get(demand.key, {})
        wanted = values if demand.operator == EXISTS else [v for v in demand.values if v in values]
        found = [values[value] for value in wanted]
        count = sum(map(len, found))
        if count <= fewest:
            best, fewest = found, count
    if best is None:
        return list(space.sets.values())
    return [entry for entries in best for entry in entries]


def _key(labels: Mapping[str, str]) -> LabelsKey:
    return tuple(sorted(labels.items()))


class SelectorRegistry(Generic[T]):
    """Items, each with the namespaces and the labels that it wants."""

    def __init__(self) -> None:
        self._spaces: dict[str | None, _Anchors[T]] = {}
        """Namespace (None: several or all) → items by a label that they want. Nothing in it is empty."""

    def add(self, item: T, namespaces: frozenset[str] | None, selector: Selector) -> None:
        demands = _demands(selector)
        for space in _spaces_of(namespaces):
            anchors = self._spaces.setdefault(space, {})
            key, values = demands[0] if len(demands) == 1 else _rarest(anchors, demands)
            places = anchors.setdefault(key, {})
            for value in values:
                found = places.get(value)
                if found is None:
                    places[value] = item
                elif isinstance(found, dict):
                    found[item] = None
                else:
                    places[value] = {found: None, item: None}

    def remove(self, item: T, namespaces: frozenset[str] | None, selector: Selector) -> None:
        for space in _spaces_of(namespaces):
            anchors = self._spaces[space]
            for key, values in _demands(selector):
                places = anchors.get(key, {})
                for value in values:
                    found = places.get(value)
                    if isinstance(found, dict):
                        found.pop(item, None)
                    if found is item or found == {}:
                        del places[value]
                if not places:
                    anchors.pop(key, None)
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
            if _NO_KEY in anchors:
                yield from _items(anchors[_NO_KEY][None])
            for key, value in labels.items():
                places = anchors.get(key)
                if places is not None:
                    yield from _items(places.get(value))
                    yield from _items(places.get(None))


def _items(found: _Place[T] | None) -> Collection[T]:
    return () if found is None else found if isinstance(found, dict) else (found,)


def _demands(selector: Selector) -> list[_Demand]:
    """What a pod must have, in turn; each would do to find the selector. None stands for any value."""
    listed: list[_Demand] = [
        (r.key, r.values) for r in selector.requirements if r.operator == IN and len(r.values) <= _MOST_VALUES
    ]
    listed += [(r.key, _ANY) for r in selector.requirements if r.operator == EXISTS]
    return listed or [(_NO_KEY, _ANY)]


def _rarest(anchors: _Anchors[Any], demands: list[_Demand]) -> _Demand:
    """The demand that the fewest items are filed under: a label that all pods of a namespace have finds
    nothing."""

    def filed(demand: _Demand) -> int:
        places = anchors.get(demand[0], {})
        return sum([len(_items(places.get(value))) for value in demand[1]])

    return min(demands, key=filed)


def _spaces_of(namespaces: frozenset[str] | None) -> Iterable[str | None]:
    few = namespaces is not None and len(namespaces) <= _MOST_NAMESPACES
    return (namespaces or ()) if few else (None,)
