"""Many writes of one kind at once, beginning carefully: one, then two, then four.

One after the other would make each wait for a turn of a busy loop; all at once would repeat one refusal
hundreds of times, such as that of a template which the API server does not take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

MOST = 64
"""Writes under way at the same time."""


async def slow_start(items: Iterable[T], act: Callable[[T], Awaitable[None]]) -> None:
    """Acts on all items, in growing batches; after a batch with a failure nothing more is begun, and its
    first failure is raised."""
    left, size = iter(items), 1
    while batch := list(islice(left, size)):
        results: Sequence[BaseException | None] = await asyncio.gather(
            *(act(item) for item in batch), return_exceptions=True
        )
        for result in results:
            if result is not None:
                raise result
        size = min(MOST, 2 * size)
