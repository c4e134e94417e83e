"""A small API server with history, compaction and failing connections: the model that views must reach."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

from moorage.api.errors import NotSent, OutcomeUnknown
from moorage.api.pod import Pod
from moorage.framework.ports import ADDED, BOOKMARK, DELETED, MODIFIED, ObjectList, WatchEvent
from tests.client.scripted import GONE, TOO_LARGE, pod


class ModelServer:
    """Pods by name. Every change has a version; watches replay the history after theirs."""

    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[str, Pod] = {}
        self.snapshots: dict[int, dict[str, Pod]] = {1: {}}
        self.history: list[WatchEvent] = []
        self.compacted = 0
        """Versions up to this one are no longer known."""
        self.refusals = 0
        """So many next calls get no answer."""
        self.lag = 0
        """Lists that accept any version get one as old as this."""
        self._uids = count(1)
        self._news = asyncio.Condition()
        self._epoch = 0
        self._ending: Exception | None = None

    # What happens in the cluster

    async def put(self, name: str) -> None:
        known = self.objects.get(name)
        self.version += 1
        obj = pod(name, str(self.version), known.uid if known else f"uid-{next(self._uids)}")
        self.objects[name] = obj
        await self._happened(WatchEvent(MODIFIED if known else ADDED, obj, str(self.version)))

    async def delete(self, name: str) -> None:
        known = self.objects.pop(name, None)
        if known is not None:
            self.version += 1
            last = pod(name, str(self.version), known.uid)
            await self._happened(WatchEvent(DELETED, last, str(self.version)))

    async def recreate(self, name: str) -> None:
        await self.delete(name)
        await self.put(name)

    # What happens to the connections

    async def compact(self) -> None:
        self.compacted = self.version

    async def refuse(self, calls: int) -> None:
        self.refusals = calls

    async def cut(self) -> None:
        await self._end_watches(OutcomeUnknown("connection reset"))

    async def end(self) -> None:
        await self._end_watches(None)

    async def expire(self) -> None:
        await self._end_watches(GONE)

    async def _end_watches(self, error: Exception | None) -> None:
        self._ending = error
        self._epoch += 1
        async with self._news:
            self._news.notify_all()

    async def _happened(self, event: WatchEvent) -> None:
        self.history.append(event)
        self.snapshots[self.version] = dict(self.objects)
        async with self._news:
            self._news.notify_all()

    # The client's side

    async def list(self, resource, *, resource_version="", limit=0, page="", field_selector="", label_selector=""):
        self._answer_or_refuse()
        await asyncio.sleep(0.01)
        if page:
            version, start = map(int, page.split(":"))
            if version < self.compacted:
                raise GONE
        else:
            version, start = self._served(resource_version), 0
        found = [self.snapshots[version][name] for name in sorted(self.snapshots[version])]
        end = start + limit if limit else len(found)
        return ObjectList(found[start:end], str(version), f"{version}:{end}" if end < len(found) else "")

    def _served(self, asked: str) -> int:
        if asked == "0":
            return max(self.version - self.lag, self.compacted, 1)
        if asked and int(asked) > self.version:
            raise TOO_LARGE
        return self.version

    async def watch(
        self, resource, *, resource_version, send_initial_events, **options: Any
    ) -> AsyncIterator[WatchEvent]:
        self._answer_or_refuse()
        epoch = self._epoch
        version = int(resource_version or 0)
        if send_initial_events:
            version = self.version
            for obj in self.snapshots[version].values():
                yield WatchEvent(ADDED, obj, obj.resource_version)
                await asyncio.sleep(0.01)
            yield WatchEvent(BOOKMARK, None, str(version), initial_events_end=True)
        while True:
            if version < self.compacted:
                raise GONE
            for event in [event for event in self.history if int(event.resource_version) > version]:
                version = int(event.resource_version)
                yield event
            if epoch != self._epoch:
                if self._ending is not None:
                    raise self._ending
                return
            async with self._news:
                if version == self.version and epoch == self._epoch:
                    await self._news.wait()

    def _answer_or_refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise NotSent("connection refused")
