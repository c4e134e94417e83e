"""Small integers for recurring values: labels, combinations of taints."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Value → code, counted from 0 in the order of first sight.

    Values whose last user is gone are not tracked. Instead the owner makes a fresh interner from the values
    in use once this one is `crowded`: with twice as many values as after the last time, that costs O(1) per
    value.
    """

    __slots__ = ("_crowd", "codes")

    def __init__(self, smallest_crowd: int, in_use: int = 0) -> None:
        self.codes: dict[T, int] = {}
        self._crowd = max(smallest_crowd, 2 * in_use)

    def code(self, value: T) -> int:
        found = self.codes.get(value)
        if found is None:
            found = self.codes[value] = len(self.codes)
        return found

    @property
    def crowded(self) -> bool:
        """Probably most values are out of use."""
        return len(self.codes) > self._crowd
