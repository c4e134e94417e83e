"""Find pods by selector and selectors by pod, through labels, without trying them all.

There is one entry per namespace and set of labels, with the rows that run such pods. The pods of one controller have
the same labels, so there are far fewer entries than pods, and a selector is evaluated once per entry. `(namespace,
label=value)` leads to the entries, so that a new counter is built without looking at all pods.

In the other direction, a selector that requires `key in (values)` is filed under these values, and one that requires a
key is filed under the key. A pod finds it through its own labels. Selectors without such a requirement are tried for
every pod. Counters use this to find out which of them count a new set of labels, and the terms of running pods to find
out which of them match an incoming pod.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from moorage.api.meta import ObjectMeta
from moorage.api.recent import register
from moorage.api.selectors import EXISTS, IN, Selector
from moorage.framework.indexes import PodSelector

LabelsKey = tuple[tuple[str, str], ...]
"""Sorted labels, which identify a set of labels."""

_MAX_VACANT = 4096
"""Number of labels in entries without pods that are kept, because the next pod of a controller often arrives soon. A
pod may have thousands of labels."""
T = TypeVar("T", bound=Hashable)
_Items: TypeAlias = T | dict[T, None]
"""One item, as in most cases, or several."""
_Anchors: TypeAlias = dict[str, dict[str | None, _Items[T]]]
"""Key → value, or None for any value → items."""
_LabelDemand = tuple[str, tuple[str | None, ...]]
_NO_KEY = ""
"""The key of selectors that require no label; no label has an empty key."""
_ANY = (None,)
_MAX_VALUES = 16
"""A selector that lists more values of a label is filed under the key alone."""
_MAX_NAMESPACES = 8
"""A selector of more namespaces is filed under all namespaces."""


class LabelSetCounter(Protocol):
    """A counter of the pods of some label sets."""

    def change(self, row: int, number: int, terminating: bool) -> None:
        """Add `number` pods to the row; a negative number removes them."""
        ...

    def leave(self, entry: LabelSet) -> None:
        """The index calls this when it drops an entry that has no pods left."""
        ...


class LabelSet:
    """All pods of one namespace that have exactly these labels."""

    __slots__ = ("counters", "key", "labels", "namespace", "rows", "terminating")

    def __init__(self, namespace: str, labels: Mapping[str, str], key: LabelsKey) -> None:
        self.namespace = namespace
        self.labels = labels
        self.key = key
        self.rows: dict[int, int] = {}
        """Row → number of pods."""
        self.terminating: dict[int, int] = {}
        """Row → number of pods that are being deleted."""
        self.counters: tuple[LabelSetCounter, ...] = ()
        """The counters that count these pods."""

    def matches(self, wanted: PodSelector) -> bool:
        inside = wanted.namespaces is None or self.namespace in wanted.namespaces
        return inside and wanted.selector.matches(self.labels)


class _Namespace:
    """The entries of one namespace."""

    __slots__ = ("by_label", "sets")

    def __init__(self) -> None:
        self.sets: dict[LabelsKey, LabelSet] = {}
        self.by_label: dict[str, dict[str, dict[LabelSet, None]]] = {}
        """Key → value → entries with that label. No inner mapping is empty."""


class PodLabelsIndex:
    """The entries by namespace and label."""

    def __init__(self) -> None:
        self._spaces: dict[str, _Namespace] = {}
        self._vacant: dict[LabelSet, None] = {}
        """The entries without pods, in the order in which their last pod went."""
        self._vacant_labels = 0
        self._vacant_before: tuple[LabelSet, ...] = ()
        """The entries that had no pods at the last call of `forget_unused`."""
        register(self)

    def find(self, meta: ObjectMeta) -> LabelSet | None:
        """Return the set of a pod, or None."""
        space = self._spaces.get(meta.namespace)
        return None if space is None else space.sets.get(_key(meta.labels))

    def find_or_create(self, meta: ObjectMeta) -> tuple[LabelSet, bool]:
        """Return the set of a pod, and whether it is new."""
        key = _key(meta.labels)
        space = self._spaces.get(meta.namespace)
        if space is None:
            space = self._spaces[meta.namespace] = _Namespace()
        found = space.sets.get(key)
        if found is not None:
            if not found.rows:
                self._revive(found)
            return found, False
        found = space.sets[key] = LabelSet(meta.namespace, meta.labels, key)
        for label, value in key:
            space.by_label.setdefault(label, {}).setdefault(value, {})[found] = None
        return found, True

    def mark_vacant(self, entry: LabelSet) -> None:
        """Keep an entry without pods for a while. The oldest one is dropped, and its counters are notified."""
        self._revive(entry)
        self._vacant[entry] = None
        self._vacant_labels += 1 + len(entry.key)
        while self._vacant_labels > _MAX_VACANT:
            oldest = next(iter(self._vacant))
            self._revive(oldest)
            self._drop(oldest)

    def forget_unused(self) -> None:
        """Drop the entries that had no pods at the last call and have none now."""
        for entry in self._vacant_before:
            if entry in self._vacant:
                self._revive(entry)
                self._drop(entry)
        self._vacant_before = tuple(self._vacant)

    def _revive(self, entry: LabelSet) -> None:
        """Take an entry out of those without pods."""
        if entry in self._vacant:
            del self._vacant[entry]
            self._vacant_labels -= 1 + len(entry.key)

    def matching(self, wanted: PodSelector, *, occupied: bool = False) -> Iterator[LabelSet]:
        """Iterate over the entries whose pods the selector matches; with `occupied` only those that have pods."""
        if wanted.selector.nothing:
            return
        for name in self._spaces if wanted.namespaces is None else wanted.namespaces:
            space = self._spaces.get(name)
            if space is not None:
                for entry in _candidates(space, wanted.selector):
                    if (entry.rows or not occupied) and entry.matches(wanted):
                        yield entry

    def __iter__(self) -> Iterator[LabelSet]:
        """Iterate over all entries. For checks."""
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


def _candidates(space: _Namespace, selector: Selector) -> Iterable[LabelSet]:
    """Return a few entries that include all matching ones: those that meet the rarest label requirement."""
    best: list[dict[LabelSet, None]] | None = None
    min_count = len(space.sets)
    for demand in selector.requirements:
        if demand.operator not in (IN, EXISTS):
            continue
        values = space.by_label.get(demand.key, {})
        wanted = values if demand.operator == EXISTS else [v for v in demand.values if v in values]
        found = [values[value] for value in wanted]
        count = sum(map(len, found))
        if count <= min_count:
            best, min_count = found, count
    if best is None:
        return list(space.sets.values())
    return [entry for entries in best for entry in entries]


def _key(labels: Mapping[str, str]) -> LabelsKey:
    return tuple(sorted(labels.items()))


class SelectorRegistry(Generic[T]):
    """Items by the namespaces and the labels that they select."""

    def __init__(self) -> None:
        self._spaces: dict[str | None, _Anchors[T]] = {}
        """Namespace (None: several or all) → items by a required label. No inner mapping is empty."""

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
        """Iterate over items that may match a pod, each once. All matching items are among them."""
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


def _items(found: _Items[T] | None) -> Collection[T]:
    return () if found is None else found if isinstance(found, dict) else (found,)


def _demands(selector: Selector) -> list[_LabelDemand]:
    """Return the requirements of a selector that can find it; each one is sufficient. None means any value."""
    listed: list[_LabelDemand] = [
        (r.key, r.values) for r in selector.requirements if r.operator == IN and len(r.values) <= _MAX_VALUES
    ]
    listed += [
        (r.key, _ANY)
        for r in selector.requirements
        if r.operator == EXISTS or (r.operator == IN and len(r.values) > _MAX_VALUES)
    ]
    return listed or [(_NO_KEY, _ANY)]


def is_tried_by_all(selector: Selector) -> bool:
    """Return whether no label leads to the selector, so that it is tried for every pod of its namespaces."""
    return not any(r.operator in (IN, EXISTS) for r in selector.requirements)


def _rarest(anchors: _Anchors[Any], demands: list[_LabelDemand]) -> _LabelDemand:
    """Return the requirement with the fewest items filed under it.

    A label that all pods of a namespace have does not narrow the search.
    """

    def filed(demand: _LabelDemand) -> int:
        places = anchors.get(demand[0], {})
        return sum([len(_items(places.get(value))) for value in demand[1]])

    return min(demands, key=filed)


def _spaces_of(namespaces: frozenset[str] | None) -> Iterable[str | None]:
    few = namespaces is not None and len(namespaces) <= _MAX_NAMESPACES
    return (namespaces or ()) if few else (None,)
