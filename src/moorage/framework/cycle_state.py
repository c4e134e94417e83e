"""CycleState: the data that plugins pass from one extension point to the next during one attempt.

A clone is a delta on what its origin held at that moment: reads fall through, and writes on either side stay
there. A dry run over hundreds of candidate nodes therefore copies only what it changes. Follows
pkg/scheduler/framework/cycle_state.go."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Protocol


class StateKeyError(KeyError):
    """A plugin read a key that no plugin wrote in this attempt."""

    def __str__(self) -> str:
        return f"no entry {self.args[0]!r} in the cycle state: the point that writes it did not run for this pod"


class Stopwatch(Protocol):
    """Accounts the time of an attempt to plugin calls. The runtime calls it when `now()` has passed `next_look`."""

    now: Callable[[], float]
    next_look: float

    def lap(self, plugin: str, point: str) -> None:
        """Account the time since the last look to a plugin call."""

    def check(self, plugin: str, point: str) -> None:
        """Account a plugin call, and raise if the attempt has used up its time."""


_ABSENT: Any = object()
"""Marks a key that a clone deleted and its parent still has."""
_MISSING: Any = object()


class CycleState:
    """A key/value store that lives for one scheduling attempt.

    Keys are strings, by convention `<PluginName>` or `<PluginName>.<what>`. AddPod and RemovePod must change
    a value through `own(key)`, which gives a clone its own copy: by the value's `clone()` method if it has
    one, otherwise by `copy.copy`.
    """

    __slots__ = ("_data", "_parent", "skip_filter", "skip_score", "stopwatch", "to_activate")

    def __init__(self, parent: CycleState | None = None) -> None:
        self._parent = parent
        self._data: dict[str, Any] = {}
        self.skip_filter: set[str] = set()
        """The plugins whose PreFilter returned Skip: their Filter, AddPod and RemovePod are not called."""
        self.skip_score: set[str] = set()
        """The plugins whose PreScore returned Skip: their Score and NormalizeScore are not called."""
        self.to_activate: dict[str, Any] = {}
        """Pods, by key, to move to the active queue when this attempt has succeeded."""
        self.stopwatch: Stopwatch | None = None
        """Set by the runtime, which looks at it between plugin calls."""

    def read(self, key: str, default: Any = _ABSENT) -> Any:
        """Return the value under `key`. Raises `StateKeyError` if it was not written and there is no default."""
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
        """Store `value` under `key`, in this state only."""
        self._data[key] = value

    def delete(self, key: str) -> None:
        """Delete `key` in this state only; a parent keeps its value."""
        self._data[key] = _ABSENT

    def own(self, key: str) -> Any:
        """Return the value under `key`, after copying it into this state if it belongs to a parent."""
        if self._data.get(key, _ABSENT) is not _ABSENT:
            return self._data[key]
        value = self.read(key)
        if self._parent is not None:
            value = value.clone() if hasattr(value, "clone") else copy.copy(value)
            self._data[key] = value
        return value

    def clone(self) -> CycleState:
        """Return a state that reads as this one does now. Later changes of either are not seen by the other."""
        if self._data:
            # What is here becomes the common parent of both; from now on this state is a delta on it too.
            common = CycleState(self._parent)
            common._data = self._data
            self._data, self._parent = {}, common
        clone = CycleState(self._parent)
        clone.stopwatch = self.stopwatch
        clone.skip_filter, clone.skip_score = set(self.skip_filter), set(self.skip_score)
        return clone

    def settled(self) -> CycleState:
        """Return a copy that reads as this one does now, without parents."""
        copied = CycleState()
        copied._data = {key: self.read(key) for key in self.keys()}
        copied.skip_filter, copied.skip_score = set(self.skip_filter), set(self.skip_score)
        return copied

    def detached(self) -> CycleState:
        """Return only what was written here, without the parents."""
        alone = CycleState()
        alone._data = {key: value for key, value in self._data.items() if value is not _ABSENT}
        return alone

    def child(self, asked: bool = True) -> CycleState:
        """Return a clone of a state that is not written any more. If no PreFilter or PreScore is `asked` any
        more, no plugin can answer Skip, and the sets are shared."""
        child = CycleState.__new__(CycleState)
        child._parent, child._data, child.to_activate = self, {}, {}
        child.stopwatch = None
        child.skip_filter = self.skip_filter.copy() if asked else self.skip_filter
        child.skip_score = self.skip_score.copy() if asked else self.skip_score
        return child

    def __contains__(self, key: str) -> bool:
        return self.read(key, _MISSING) is not _MISSING

    def keys(self) -> Iterator[str]:
        """Iterate over all keys that can be read, each once."""
        seen: set[str] = set()
        state: CycleState | None = self
        while state is not None:
            for key, value in state._data.items():
                if key not in seen:
                    seen.add(key)
                    if value is not _ABSENT:
                        yield key
            state = state._parent
