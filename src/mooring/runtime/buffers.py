"""Arrays that attempts use one after another instead of allocating their own.

A fresh array of 40 KB costs more than the arithmetic on it: the memory comes back from the system page by
page.
"""

from __future__ import annotations

import numpy as np

from mooring.framework.nodes import IntArray


class Buffers:
    """Arrays of zeros of one length. What was taken belongs to the attempt until `reset`, which begins the
    next one; nothing may keep them longer."""

    def __init__(self) -> None:
        self._arrays: list[IntArray] = []
        self._taken = 0
        self._length = 0

    def reset(self, length: int) -> None:
        if length != self._length:
            self._arrays.clear()
            self._length = length
        self._taken = 0

    def take_as_is(self) -> IntArray:
        """An array that holds anything, for whoever writes all of it."""
        if self._taken == len(self._arrays):
            return self.take()
        self._taken += 1
        return self._arrays[self._taken - 1]

    def take(self) -> IntArray:
        if self._taken == len(self._arrays):
            self._arrays.append(np.zeros(self._length, dtype=np.int64))
        else:
            self._arrays[self._taken].fill(0)
        self._taken += 1
        return self._arrays[self._taken - 1]
