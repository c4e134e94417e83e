"""The yardstick: the arithmetic of one plain pod over all nodes, in plain NumPy, and nothing else.

Three-resource filter, LeastAllocated, balance with and without the pod, `where`, `argmax`; int64 with
temporaries. Machines differ, so results are told in multiples of this.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from mooring.framework.nodes import FloatArray, IntArray


class Kernel:
    """One call is one bare evaluation of `nodes` nodes."""

    def __init__(self, nodes: int, seed: int = 0) -> None:
        draw = random.Random(seed)
        self._cpu = _column(draw.choice((8_000, 16_000, 32_000)) for _ in range(nodes))
        self._memory = _column(draw.choice((32, 64, 128)) << 30 for _ in range(nodes))
        self._pods = _column(110 for _ in range(nodes))
        self._used_cpu = _column(draw.randrange(0, 4_000) for _ in range(nodes))
        self._used_memory = _column(draw.randrange(0, 16 << 30) for _ in range(nodes))
        self._used_pods = _column(draw.randrange(0, 30) for _ in range(nodes))

    def __call__(self, cpu: int = 100, memory: int = 200 << 20) -> int:
        free_cpu, free_memory = self._cpu - self._used_cpu, self._memory - self._used_memory
        fits = (free_cpu >= cpu) & (free_memory >= memory) & (self._used_pods + 1 <= self._pods)
        least = (free_cpu - cpu) * 100 // self._cpu + (free_memory - memory) * 100 // self._memory
        before = _balance(self._used_cpu / self._cpu, self._used_memory / self._memory)
        after = _balance((self._used_cpu + cpu) / self._cpu, (self._used_memory + memory) / self._memory)
        total = least // 2 + 50 + (50 + after - before) // 2
        return int(np.argmax(np.where(fits, total, -1)))


def _balance(first: FloatArray, second: FloatArray) -> IntArray:
    spread = np.abs(np.minimum(first, 1.0) - np.minimum(second, 1.0)) / 2
    result: IntArray = ((1.0 - spread) * 100).astype(np.int64)
    return result


def _column(values: Iterable[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)
