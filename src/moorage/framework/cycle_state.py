"""CycleState: what plugins hand from one extension point to the next during one attempt.

A clone is a delta on what its origin held at that moment: reading falls through, writing stays where it was
done, on either side. A dry run over hundreds of candidate nodes therefore copies nothing but what it changes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any


class StateKeyError(KeyError):
    """A plugin read a key that no plugin wrote in this attempt."""

    def __str__(self) -> str:
        return (
            f"no entry {self.args[0]!r} in the cycle state: the point that writes it did not run for this pod"
        )


_ABSENT: Any = object()
"""Marks a key that a clone deleted although its parent has it."""
_MISSING: Any = object()


class CycleState:
    """A key/value store that lives for one scheduling attempt.

    Keys are strings, by convention `<PluginName>` or `<PluginName>.<what>`. Values are the plugin's own.
    A value that AddPod/RemovePod change must be changed through `own(key)`, which gives the clone its own
    copy: the value's `clone()` method if it has one, else `copy.copy`.
    """

    __slots__ = ("_data", "_parent", "skip_filter", "skip_score", "to_activate")

    def __init__(self, parent: CycleState | None = None) -> None:
        self._parent = parent
        self._data: dict[str, Any] = {}
        self.skip_filter: set[str] = set()
        """Plugins whose PreFilter returned Skip: no Filter, no AddPod/RemovePod."""
        self.skip_score: set[str] = set()
        """Plugins whose PreScore returned Skip: no Score, no NormalizeScore."""
        self.to_activate: dict[str, Any] = {}
        """Pods (by key) that a plugin wants in the active queue when this attempt has succeeded."""

    def read(self, key: str, default: Any = _ABSENT) -> Any:
        """The value under `key`; raises `StateKeyError` when it was not written and no default is given."""
        state: CycleState | None = self
        while state is not None:
            if key in state._data:
                value = state._data[key]
                if value is not _ABSENT:
                    return value
                break
            state = state._parent
        if default is _ABSENT:
            raise StateKeyError(key)
        return default

    def write(self, key: str, value: Any) -> None:
        """Put `value` under `key`, in this state only."""
        self._data[key] = value

    def delete(self, key: str) -> None:
        """Forget `key`, in this state only: a parent keeps its value."""
        self._data[key] = _ABSENT

    def own(self, key: str) -> Any:
        """The value under `key`, copied into this state first if it belongs to a parent."""
        if self._data.get(key, _ABSENT) is not _ABSENT:
            return self._data[key]
        value = self.read(key)
        if self._parent is not None:
            value = value.clone() if hasattr(value, "clone") else copy.copy(value)
            self._data[key] = value
        return value

    def clone(self) -> CycleState:
        """A state that reads as this one does now. What either of them changes later is its own."""
        if self._data:
            # What is here becomes the common parent of both; from now on this state is a delta on it too.
            common = CycleState(self._parent)
            common._data = self._data
            self._data, self._parent = {}, common
        clone = CycleState(self._parent)
        clone.skip_filter, clone.skip_score = set(self.skip_filter), set(self.skip_score)
        return clone

    def settled(self) -> CycleState:
        """A copy of its own that reads as this one does now, without parents to fall through to."""
        copied = CycleState()
        copied._data = {key: self.read(key) for key in self.keys()}
        copied.skip_filter, copied.skip_score = set(self.skip_filter), set(self.skip_score)
        return copied

    def detached(self) -> CycleState:
        """Only what was written here, without anything of the parents."""
        alone = CycleState()
        alone._data = {key: value for key, value in self._data.items() if value is not _ABSENT}
        return alone

    def child(self, asked: bool = True) -> CycleState:
        """A clone of a state that is not written any more, which therefore stays as it is. Where no PreFilter
        or PreScore is `asked` any more, no plugin can say Skip, and the sets are shared."""
        child = CycleState.__new__(CycleState)
        child._parent, child._data, child.to_activate = self, {}, {}
        child.skip_filter = self.skip_filter.copy() if asked else self.skip_filter
        child.skip_score = self.skip_score.copy() if asked else self.skip_score
        return child

    def __contains__(self, key: str) -> bool:
        return self.read(key, _MISSING) is not _MISSING

    def keys(self) -> Iterator[str]:
        """All keys that can be read, each once."""
        seen: set[str] = set()
        state: CycleState | None = self
        while state is not None:
            for key, value in state._data.items():
                if key not in seen:
                    seen.add(key)
                    if value is not _ABSENT:
                        yield key
            state = state._parent
