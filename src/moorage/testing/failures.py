"""What a plugin did wrong without failing an attempt: hooks whose exceptions are only logged, and changed objects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Unpack

import msgspec

from moorage.api import decoding
from moorage.api.meta import Object
from moorage.api.resources import Resource
from moorage.framework.points import POST_BIND, UNRESERVE
from moorage.framework.ports import ListOptions, ObjectList, WatchEvent, WatchOptions
from moorage.runtime import calling
from moorage.state import cluster, indexes
from moorage.store.local import LocalClient
from moorage.telemetry import logs

MAX_REMEMBERED = 10_000
"""Objects that are compared when a cluster is closed."""
ONLY_LOGGED = (UNRESERVE, POST_BIND)
"""The points at which an exception changes nothing for the pod."""

OnLogged = Callable[[str, BaseException], None]
"""`on_logged(what, error)`."""


class LoggedFailures(logging.Filter):
    """A context that reports the exceptions of plugins that the scheduler of a loop only logs.

    A filter sees the records of its logger and lets them pass, so logs look the same with and without it.
    """

    SOURCES = {calling.__name__: "a hook", cluster.__name__: "a change callback", indexes.__name__: "an index function"}
    """The loggers of these exceptions, and what failed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_logged: OnLogged) -> None:
        super().__init__()
        self._loop = loop
        self._on_logged = on_logged

    def __enter__(self) -> None:
        for name in self.SOURCES:
            logging.getLogger(name).addFilter(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self.SOURCES:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        values = getattr(record, logs.VALUES, {})
        error, point = values.get(logs.ERR), values.get("point", "")
        if isinstance(error, BaseException) and point in ("", *ONLY_LOGGED) and self._is_running():
            plugin = f" of plugin {values['plugin']!r}" if "plugin" in values else ""
            self._on_logged(f"{point or self.SOURCES[record.name]}{plugin}", error)
        return True

    def _is_running(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:  # no loop runs
            return False


class RememberingClient(LocalClient):
    """A client that remembers the objects that it has handed out, to find those that were changed afterwards."""

    _seen: dict[int, tuple[Object, bytes]]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._seen = {}

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        found = await super().list(resource, **options)
        for obj in found.items:
            self._remember(obj)
        return found

    async def watch(self, resource: Resource, **options: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent]:
        async with aclosing(super().watch(resource, **options)) as events:  # type: ignore[type-var]
            async for event in events:
                self._remember(event.object)
                yield event

    def _remember(self, obj: object) -> None:
        if isinstance(obj, Object) and id(obj) not in self._seen and len(self._seen) < MAX_REMEMBERED:
            self._seen[id(obj)] = obj, decoding.encode(obj)

    def changed(self) -> Sequence[str]:
        """Return the objects that are not what they were, as `Pod default/web: spec.nodeSelector`."""
        return [
            f"{type(obj).__name__} {obj.key}: {_difference(obj, before)}"
            for obj, before in self._seen.values()
            if decoding.encode(obj) != before
        ]


def _difference(obj: Object, before: bytes) -> str:
    """Return the path of the first field that differs."""
    now: Any = decoding.to_builtins(obj)
    then: Any = msgspec.json.decode(before)
    path: list[str] = []
    while isinstance(now, dict) and isinstance(then, dict):
        name = next((name for name in {**then, **now} if now.get(name) != then.get(name)), None)
        if name is None:
            break
        path.append(name)
        now, then = now.get(name), then.get(name)
    return ".".join(path)
