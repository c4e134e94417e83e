"""Endless works that live and end together, as those of the controllers and of the kubelets do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Together:
    """Runs once at a time. When one of the works fails all end, and the failure is raised."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, **works: Coroutine[Any, Any, None]) -> None:
        """Runs until cancelled, which is raised, or stopped, which is not."""
        self._tasks = [asyncio.create_task(work, name=f"{self._name} {name}") for name, work in works.items()]
        try:
            await asyncio.gather(*self._tasks)
        except asyncio.CancelledError:
            if self._tasks:
                raise
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Returns when all have ended."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
