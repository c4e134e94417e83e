"""Background work of plugins: started, named, cancelled together, and never lost without a log line."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from mooring.telemetry import logs

_log = logs.get(__name__)


class Tasks:
    """The tasks of one owner. `stop` cancels all of them and waits until they are gone."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, coro: Coroutine[Any, Any, Any], owner: str, name: str = "") -> asyncio.Task[Any]:
        """Run `coro`; what it raises is logged with the owner's name."""
        task = asyncio.get_running_loop().create_task(coro, name=f"{owner}:{name}" if name else owner)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("Background task failed", error=error, stack=True, task=task.get_name())

    def __len__(self) -> int:
        return len(self._tasks)

    async def stop(self) -> None:
        tasks = sorted(self._tasks, key=lambda task: task.get_name())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
