"""Changes go to the database in transactions: one thread writes, and each takes all that has gathered.

    pending ──hand over, one batch at a time──▶ thread: write, fsync ──▶ collected on the loop
       ▲                                                                    │ waiters of `settled` go on
       └── record() while the thread is busy                                └ the next batch is handed over

The loop is never blocked by the disk, and many requests share one fsync. A batch that cannot be written fails
everything that was recorded since, because later changes rest on it; the store takes it back.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias

from moorage.api.errors import ApiError
from moorage.api.resources import Resource
from moorage.embedded.durable.mark import DiskProgress, Mark
from moorage.embedded.durable.recovery import Contents, row_checksum, state_checksum
from moorage.store import refusals
from moorage.store.durability import DurabilityListener
from moorage.store.objects import Stored, key_of
from moorage.telemetry import logs

Change: TypeAlias = tuple[Stored, bool]
"""A new state, and whether the object is gone with it."""
_Name: TypeAlias = tuple[int, str, str]
"""Number of the kind, namespace, name."""
_Place: TypeAlias = tuple[int, int]
"""Row and checksum of an object."""

_log = logs.get(__name__)
_PUT = "INSERT OR REPLACE INTO objects (id, resource, namespace, name, body, checksum) VALUES (?, ?, ?, ?, ?, ?)"
_STATE = "UPDATE state SET version = ?, objects = ?, combined = ?, starts = ?, checksum = ?"
_KIND = "INSERT INTO resources (id, grp, version, plural, kind, namespaced) VALUES (?, ?, ?, ?, ?, ?)"


class Database:
    """The connection that writes, and where each object is in the database."""

    def __init__(self, path: Path, contents: Contents, *, synchronous: str = "FULL") -> None:
        self.path = path
        self._starts = contents.starts
        self._version = contents.version
        self._combined = 0
        self._kinds = {(r.group, r.plural): number for number, r in contents.resources.items()}
        self._places: dict[_Name, _Place] = {}
        for row in contents.rows:
            self._places[self._name(row.resource, *key_of(row.raw))] = (row.id, row.checksum)
            self._combined ^= row.checksum
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute(f"PRAGMA synchronous = {synchronous}")
        self._mark: Mark | None = None
        with self._marking():
            self._mark = Mark(path)

    def begin_start(self) -> int:
        """Counts this start of the database and gives its number."""
        self._starts += 1
        self._connection.execute("BEGIN IMMEDIATE")
        self._write_state(self._version, len(self._places), self._combined)
        self._connection.execute("COMMIT")
        self._write_mark()
        return self._starts

    def write(self, batch: list[Change]) -> None:
        """All or nothing; an sqlite3.Error leaves everything as it was."""
        newest = {(stored.resource.group, stored.resource.plural, stored.key): (stored, gone) for stored, gone in batch}
        connection = self._connection
        kinds = dict(self._kinds)
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._add_kinds(stored.resource for stored, _ in newest.values())
            changed = self._write_objects(newest.values())
            combined, count = self._sums(changed)
            version = batch[-1][0].version
            self._write_state(version, count, combined)
            connection.execute("COMMIT")
        except BaseException:
            self._kinds = kinds
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._version, self._combined = version, combined
        self._write_mark()
        for name, place in changed.items():
            if place is None:
                self._places.pop(name, None)
            else:
                self._places[name] = place

    def close(self) -> None:
        """Moves the log into the database and closes it."""
        self._connection.close()
        if self._mark is not None:
            self._mark.close()

    def _write_mark(self) -> None:
        with self._marking():
            if self._mark is not None:
                self._mark.write(DiskProgress(self._version, self._starts))

    @contextmanager
    def _marking(self) -> Iterator[None]:
        """Log that there is no mark: the writes are on disk all the same."""
        try:
            yield
        except OSError as error:
            _log.warning("Cannot mark the progress; lost writes may go unnoticed", path=str(self.path), err=error)

    def _name(self, resource: Resource, namespace: str, name: str) -> _Name:
        return self._kinds[resource.group, resource.plural], namespace, name

    def _add_kinds(self, found: Iterable[Resource]) -> None:
        for resource in found:
            key = (resource.group, resource.plural)
            if key not in self._kinds:
                number = self._kinds[key] = len(self._kinds)
                row = (number, resource.group, resource.version, resource.plural, resource.kind, resource.namespaced)
                self._connection.execute(_KIND, row)

    def _write_objects(self, changes: Iterable[Change]) -> dict[_Name, _Place | None]:
        changed: dict[_Name, _Place | None] = {}
        put: list[tuple[int, int, str, str, bytes, int]] = []
        gone: list[tuple[int]] = []
        for stored, deleted in changes:
            name = self._name(stored.resource, *stored.key)
            known = self._places.get(name)
            if deleted:
                changed[name] = None
                if known is not None:
                    gone.append((known[0],))
                continue
            row, body = (known[0] if known is not None else stored.version), stored.encoded
            checksum = row_checksum(stored.resource, name[1], name[2], body)
            changed[name] = (row, checksum)
            put.append((row, *name, body, checksum))
        self._connection.executemany(_PUT, put)
        self._connection.executemany("DELETE FROM objects WHERE id = ?", gone)
        return changed

    def _sums(self, changed: dict[_Name, _Place | None]) -> tuple[int, int]:
        combined, count = self._combined, len(self._places)
        for name, place in changed.items():
            known = self._places.get(name)
            if known is not None:
                combined, count = combined ^ known[1], count - 1
            if place is not None:
                combined, count = combined ^ place[1], count + 1
        return combined, count

    def _write_state(self, version: int, count: int, combined: int) -> None:
        checksum = state_checksum(version, count, combined, self._starts)
        self._connection.execute(_STATE, (version, count, combined, self._starts, checksum))


class SqliteDurability:
    """The durability of one store in one open database. All but `_write_batches` runs on the loop."""

    def __init__(self, database: Database, version: int) -> None:
        self.version = version
        self._database = database
        self._listener: DurabilityListener | None = None
        self._pending: list[Change] = []
        self._recorded = 0
        self._kept = 0
        self._waiters: deque[tuple[int, asyncio.Future[ApiError | None]]] = deque()
        self._broken: ApiError | None = None
        self._gathering: asyncio.AbstractEventLoop | None = None
        """The loop whose next turn will hand over what is pending."""
        self._writing = False
        """Whether the thread has a batch."""
        self._batches: SimpleQueue[tuple[list[Change], asyncio.AbstractEventLoop | None] | None] = SimpleQueue()
        self._results: SimpleQueue[tuple[list[Change], Exception | None]] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_batches, name="moorage-disk", daemon=True)
        self._thread.start()

    def attach(self, listener: DurabilityListener) -> None:
        self._listener = listener

    def check(self, stored: Stored) -> None:
        if self._broken is not None:
            raise self._broken
        try:
            stored.encoded  # noqa: B018 - what is no JSON must not come as far as the thread
        except (TypeError, ValueError, RecursionError) as error:
            raise refusals.bad_request(f"the object cannot be written as JSON: {error}") from error

    def record(self, stored: Stored, *, deleted: bool) -> None:
        self._pending.append((stored, deleted))
        self._recorded += 1
        if not self._writing:
            loop = asyncio._get_running_loop()
            if loop is not None and loop is not self._gathering:
                # After the other requests that have arrived in this turn of the loop.
                self._gathering = loop
                loop.call_soon(self._hand_over, loop)

    async def settled(self) -> None:
        if self._kept == self._recorded:
            return
        loop = asyncio.get_running_loop()
        if not self._writing and self._gathering is not loop:
            self._hand_over(loop)  # recorded outside of a loop, or in one that has ended
        waiter: asyncio.Future[ApiError | None] = loop.create_future()
        self._waiters.append((self._recorded, waiter))
        error = await waiter
        if error is not None:
            raise error

    def flush(self) -> None:
        """Writes what is pending and waits for it; for those who run no loop. Raises as `settled` does."""
        while self._kept != self._recorded:
            if not self._writing:
                self._hand_over(None)
            error = self._take_result(*self._results.get())
            if error is not None:
                raise error

    def close(self) -> None:
        """Ends the thread after what it has been handed. `flush` first."""
        self._batches.put(None)
        self._thread.join()

    def _hand_over(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._gathering = None
        if self._pending and not self._writing:
            batch, self._pending = self._pending, []
            self._writing = True
            self._batches.put((batch, loop))

    def _write_batches(self) -> None:
        """The thread. It touches nothing of the loop's; results go back through a queue."""
        while (work := self._batches.get()) is not None:
            batch, loop = work
            try:
                self._database.write(batch)
            except Exception as error:  # whatever it is, no request must wait for ever
                self._results.put((batch, error))
            else:
                self._results.put((batch, None))
            if loop is not None:
                with suppress(RuntimeError):  # the loop has ended; `flush` will take the result
                    loop.call_soon_threadsafe(self._collect, loop)

    def _collect(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._results.empty():
            self._take_result(*self._results.get())
            self._hand_over(loop)

    def _take_result(self, batch: list[Change], error: Exception | None) -> ApiError | None:
        self._writing = False
        if error is not None:
            return self._fail(error)
        self._kept += len(batch)
        self.version = batch[-1][0].version
        self._tell_waiters(None)
        if self._listener is not None:
            self._listener.advanced()
        return None

    def _fail(self, error: Exception) -> ApiError:
        refusal = _refusal(self._database.path, error)
        if refusal.code != refusals.DISK_FULL:
            self._broken = refusal
        self._pending.clear()
        self._kept = self._recorded
        if self._listener is not None:
            self._listener.failed()
        self._tell_waiters(refusal)
        return refusal

    def _tell_waiters(self, answer: ApiError | None) -> None:
        while self._waiters and self._waiters[0][0] <= self._kept:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(answer)


def _refusal(path: Path, error: Exception) -> ApiError:
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return refusals.disk_full(f"no room in {path.parent} for this write; it was taken back, free some space")
    return refusals.disk_broken(
        f"{path} could not be written ({error}); the write was taken back and no other is accepted: "
        "check the disk and start again"
    )
