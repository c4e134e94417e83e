"""The inbox: everything that wants to change stores, cache or queue waits here until no cycle runs.

Informers put changes, binding tasks and plugins put calls. Both are taken out in order, between cycles. A
call may return another call, its wake-ups: those run after all caches of the batch are up to date.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from mooring.framework.ports import Change

WakeUp = Callable[[], Any]
Call = Callable[[], "WakeUp | None"]


class Inbox:
    """Ordered and unbounded: what is dropped here would be lost."""

    def __init__(self) -> None:
        self._items: deque[Change | Call] = deque()
        self._arrived = asyncio.Event()

    def deliver(self, change: Change) -> None:
        """A change of an object, from an informer."""
        self._items.append(change)
        self._arrived.set()

    def post(self, call: Call) -> None:
        """Something to do between two cycles."""
        self._items.append(call)
        self._arrived.set()

    def drain(self) -> list[Change | Call]:
        """All that has arrived, in order."""
        items = list(self._items)
        self._items.clear()
        self._arrived.clear()
        return items

    def __len__(self) -> int:
        return len(self._items)

    async def wait(self) -> None:
        """Until something has arrived."""
        await self._arrived.wait()
