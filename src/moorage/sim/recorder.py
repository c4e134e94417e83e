"""Records the changes of a cluster as they happen, for `moorage record`.

Informers watch the kinds that plugins read, so a recording contains what a scheduler would see: each change
once and, after an interrupted watch, the differences. A file begins with all existing objects and can be
replayed by itself. The recorder sends only list and watch requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from moorage import snapshots
from moorage.api import private_files
from moorage.api.errors import Forbidden, MoorageError, NotFound
from moorage.api.node import Node
from moorage.api.resources import NODES, PODS, Resource, Unstructured
from moorage.api.times import format_time
from moorage.client.informers import InformerSet
from moorage.framework.ports import ApiClient, Change, Clock, Served
from moorage.sim.recording_files import RecordingFile, check_name, part, snapshot_file
from moorage.sim.recordings import as_line
from moorage.snapshots.cluster import ClusterObjects

FLUSH = 1.0
"""Seconds between two flushes, and so the maximum that is lost if the process is killed."""
BATCH = 1000
"""Objects at the beginning of a file that are written per flush, which keeps memory low."""
MICROSECOND = 1e-6

Aside = Callable[..., Awaitable[object]]
"""Calls a function without blocking the event loop."""


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """What to record, and where."""

    output: Path
    duration: float | None = None
    """Seconds. None means until the recorder is cancelled."""
    rotate_bytes: int | None = None
    """Start a new file after this many bytes of changes, not counting the objects at its beginning."""
    rotate_seconds: float | None = None
    snapshot_seconds: float | None = None
    """Seconds between snapshots. None means no snapshots."""
    annotations: bool = False

    @property
    def rotates(self) -> bool:
        """Whether the recording is split into several files."""
        return self.rotate_bytes is not None or self.rotate_seconds is not None


@dataclass(slots=True)
class Written:
    """The progress of a recording."""

    objects: int = 0
    """Objects in the cluster now."""
    events: int = 0
    """Changes since the beginning."""
    size: int = 0
    """Bytes in all files."""
    files: list[Path] = field(default_factory=list)
    snapshots: int = 0


class ClusterRecorder:
    """Records a cluster from the first listing to the end. Call `run` once."""

    def __init__(
        self,
        client: ApiClient,
        resources: Iterable[Resource],
        options: RecordingOptions,
        *,
        clock: Clock,
        random: Random,
        namespace: str = "default",
        on_progress: Callable[[Written], None] = lambda written: None,
        aside: Aside = asyncio.to_thread,
    ) -> None:
        check_name(options.output)
        self._client = client
        self._options = options
        self._clock = clock
        self._namespace = namespace
        self._on_progress = on_progress
        self._aside = aside
        self._resources = sorted({NODES, PODS, *resources}, key=lambda kind: (kind == PODS, str(kind)))
        self._random = random
        self._informers = self._follow(())
        self._file: RecordingFile | None = None
        self._began, self._beginning = 0.0, 0
        """When the current file was started, and how many bytes the objects at its beginning take."""
        self._earlier_bytes = 0
        """Bytes in the earlier files."""
        self._latest = 0.0
        self._unserved: set[Resource] = set()
        self._unread: dict[Resource, str] = {}
        self.written = Written()

    async def run(self) -> None:
        """Record until the duration is over or the task is cancelled. All changes up to then are written."""
        self._informers = self._follow(await self._readable())
        tasks = [asyncio.ensure_future(self._informers.run()), asyncio.ensure_future(self._record())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # raises the exception that ended it
        finally:
            if self._file is not None:
                self._file.close()  # first, so that a second request to stop does not wait for the rest
                self._report(self._file)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def cluster(self) -> ClusterObjects:
        """Return the current objects of the cluster."""
        objects = {kind: list(informer.objects.values()) for kind, informer in self._informers.informers.items()}
        return ClusterObjects(objects, tuple(self._unserved), dict(self._unread), self._namespace)

    def troubles(self) -> list[str]:
        """Return the kinds whose watch was broken at the end, with the reason."""
        return [
            f"{status.resource} could no longer be watched ({status.last_error}); changes may be missing"
            for status in self._informers.status()
            if status.last_error and status.resource not in self._unserved
        ]

    def _follow(self, kinds: Iterable[Resource]) -> InformerSet:
        return InformerSet(self._client, self._changed, self._clock, self._random, kinds, on_served=self._served)

    async def _readable(self) -> list[Resource]:
        """Return the kinds that may be listed. Nodes and pods are required. A kind that the API server does
        not serve may appear later."""
        kinds = []
        for resource in self._resources:
            try:
                await self._client.list(resource, limit=1)
            except NotFound:
                pass
            except Forbidden as error:
                if resource in (NODES, PODS):
                    raise
                self._unread[resource] = str(error)
                continue
            kinds.append(resource)
        return kinds

    # Lines

    def _changed(self, change: Change) -> None:
        """Handle a change from the informers. Changes before the first file are part of its beginning."""
        if self._file is None:
            return
        old, new = self._shown(change.old), self._shown(change.new)
        if old is None or new is None or _without_heartbeats(old) != _without_heartbeats(new):
            self._file.add(as_line(self._time(), Change(change.resource, old, new)))
            self.written.events += 1

    def _served(self, served: Served) -> None:
        (self._unserved.discard if served.known else self._unserved.add)(served.resource)

    def _shown(self, obj: Any) -> Any:
        """Return the parts of an object that are written."""
        if obj is None:
            return None
        kept = snapshots.pruned(obj, self._options.annotations)
        if isinstance(kept, Unstructured):
            metadata = {key: value for key, value in kept.raw["metadata"].items() if key != "resourceVersion"}
            return Unstructured({**kept.raw, "metadata": metadata})
        return replace(kept, metadata=replace(kept.metadata, resource_version=""))

    def _time(self) -> float:
        """Return the wall clock time, made strictly increasing so that snapshots have a place among the lines."""
        self._latest = max(self._clock.wall(), self._latest + MICROSECOND)
        return self._latest

    # Files

    async def _record(self) -> None:
        await self._informers.wait_synced()
        end = None if self._options.duration is None else self._clock.now() + self._options.duration
        snapshot_at = self._clock.now()
        file = self._begin_file()
        while end is None or self._clock.now() < end:
            if self._options.snapshot_seconds is not None and self._clock.now() >= snapshot_at:
                snapshot_at += self._options.snapshot_seconds
                await self._take_snapshot()
            await self._clock.sleep(FLUSH if end is None else min(FLUSH, max(0.0, end - self._clock.now())))
            file.flush()
            self._report(file)
            if self._is_full(file):
                file.close()
                self._earlier_bytes += file.size
                file = self._begin_file()

    def _begin_file(self) -> RecordingFile:
        """Start the next file with all objects: nodes and the kinds they need first, pods last."""
        number, output = len(self.written.files) + 1, self._options.output
        file = RecordingFile(part(output, number) if self._options.rotates else output)
        lines = 0
        for resource, objects in self.cluster().objects.items():
            for obj in objects:
                file.add(as_line(self._time(), Change(resource, None, self._shown(obj))))
                lines += 1
                if lines % BATCH == 0:
                    file.flush()
        file.flush()
        self.written.files.append(file.path)
        self._file, self._began, self._beginning = file, self._clock.now(), file.size
        self._report(file)
        return file

    def _is_full(self, file: RecordingFile) -> bool:
        size, seconds = self._options.rotate_bytes, self._options.rotate_seconds
        is_old = seconds is not None and self._clock.now() - self._began >= seconds
        return is_old or (size is not None and file.size - self._beginning >= size)

    def _report(self, file: RecordingFile) -> None:
        self.written.size = self._earlier_bytes + file.size
        self.written.objects = sum(len(found.objects) for found in self._informers.informers.values())
        self._on_progress(self.written)

    async def _take_snapshot(self) -> None:
        cluster, taken = self.cluster(), self._time()
        path = snapshot_file(self._options.output, taken)
        try:
            private_files.make_folder(path.parent)
        except OSError as error:
            raise MoorageError(f"Cannot create the folder {path.parent}: {error.strerror}.") from error
        text, annotations = format_time(taken, micro=True), self._options.annotations
        await self._aside(snapshots.save, cluster, path, taken=text, annotations=annotations)
        self.written.snapshots += 1


def _without_heartbeats(obj: Any) -> Any:
    """Drop the heartbeat times of a node, which change every few minutes and which no plugin reads."""
    if not isinstance(obj, Node):
        return obj
    conditions = tuple(replace(each, last_heartbeat_time=None) for each in obj.status.conditions)
    return replace(obj, status=replace(obj.status, conditions=conditions))
