"""Work arrays that a plugin keeps between calls: a fresh array costs as much as the arithmetic done in it."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

ScalarT = TypeVar("ScalarT", bound=np.generic)


class Scratch(Generic[ScalarT]):
    """A few arrays of one length. What they hold is left over from their last use."""

    __slots__ = ("_arrays", "_count", "_dtype")

    def __init__(self, count: int, dtype: type[ScalarT]) -> None:
        self._count = count
        self._dtype = dtype
        self._arrays: tuple[npt.NDArray[ScalarT], ...] = ()

    def of(self, length: int) -> tuple[npt.NDArray[ScalarT], ...]:
        """The arrays, made anew when the length has changed."""
        if not self._arrays or len(self._arrays[0]) != length:
            self._arrays = tuple(np.empty(length, dtype=self._dtype) for _ in range(self._count))
        return self._arrays
