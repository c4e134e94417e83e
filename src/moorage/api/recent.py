"""Caches whose content tenants decide: bounded by weight, and empty again after the tenants have gone.

Tenants decide how large the things are that are computed from their pods: a limit on the number of values alone would
let one tenant fill the memory with a few thousand pods. And what only deleted pods used would stay until other pods
push it out, which may never happen. `forget_unused` therefore drops it after a while.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Forgetful(Protocol):
    """A cache that can drop what has not been used for a while."""

    def forget_unused(self) -> None: ...


_caches: WeakSet[Forgetful] = WeakSet()


def register(cache: Forgetful) -> None:
    """Let `forget_unused` include a cache while it lives."""
    _caches.add(cache)


def forget_unused() -> None:
    """Drop everything that no cache was asked for since the last call. Call it between two scheduling cycles."""
    for cache in list(_caches):
        cache.forget_unused()
    for function in _functions:
        function.cache_clear()


def cached(max_values: int) -> Callable[[Callable[..., V]], Callable[..., V]]:
    """Decorate a function with `functools.lru_cache`, for values that are cheap to compute again.

    Its cache cannot tell what was used, so all of it is forgotten."""

    def decorate(function: Callable[..., V]) -> Callable[..., V]:
        found = lru_cache(maxsize=max_values)(function)
        _functions.append(found)
        return found

    return decorate


_functions: list[Any] = []

_MARK: Any = object()
"""The key that separates what was used since the last call of `forget_unused` from what was not."""


class Recent(Generic[K, V]):
    """The values that were used last, by key. The least recently used ones go when the total weight is too large."""

    __slots__ = ("__weakref__", "_evicted", "_is_marked", "_kept", "_max_weight", "_weight")

    def __init__(self, max_weight: int, evicted: Callable[[V], None] = lambda value: None) -> None:
        """`evicted` is called with each value that goes because of its weight or age."""
        self._max_weight = max_weight
        self._evicted = evicted
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        """Key → value and weight, the most recently used last. One key may be the mark."""
        self._is_marked = False
        self._weight = 0
        register(self)

    def __len__(self) -> int:
        return len(self._kept) - self._is_marked

    def __iter__(self) -> Iterator[K]:
        return (key for key in self._kept if key is not _MARK)

    def values(self) -> Iterator[V]:
        """Iterate over the values, the least recently used first. For checks."""
        return (self._kept[key][0] for key in self)

    @property
    def weight(self) -> int:
        """The total weight of the values."""
        return self._weight

    def get(self, key: K) -> V | None:
        """Return the value, or None. It counts as used now."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> V:
        """Keep a value and return it. The newest value is kept whatever its weight, because it is used again soon."""
        before = self._kept.pop(key, None)
        self._kept[key] = value, weight
        self._weight += weight if before is None else weight - before[1]
        if self._weight > self._max_weight:
            self._shrink()
        return value

    def drop(self, key: K) -> V | None:
        """Forget a value, and return it if it was kept."""
        gone = self._kept.pop(key, None)
        if gone is None:
            return None
        self._weight -= gone[1]
        return gone[0]

    def clear(self) -> None:
        """Forget all values."""
        self._kept.clear()
        self._is_marked = False
        self._weight = 0

    def forget_unused(self) -> None:
        """Drop the values that were not used since the last call."""
        while self._is_marked:
            self._evict()
        self._kept[_MARK] = _MARK, 0
        self._is_marked = True

    def _shrink(self) -> None:
        while self._weight > self._max_weight and len(self) > 1:
            self._evict()

    def _evict(self) -> None:
        """Drop the least recently used value, or the mark."""
        key, (value, weight) = self._kept.popitem(last=False)
        if key is _MARK:
            self._is_marked = False
            return
        self._weight -= weight
        self._evicted(value)
