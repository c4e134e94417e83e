"""Opens a data directory: locks it, checks it, loads its objects into a store that goes on writing to it.

One process at a time has the directory. The kernel frees the lock however the process ends. Only the user can read the
directory and its files: the cluster may hold Secrets.
"""

from __future__ import annotations

import fcntl
import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from moorage.api import private_files
from moorage.embedded.durable import recovery
from moorage.embedded.durable.recovery import DATABASE, LOCK, SCHEMA, Contents, DataDirError, state_checksum
from moorage.embedded.durable.writer import Database, SqliteDurability
from moorage.store.store import Store
from moorage.telemetry import logs

_log = logs.get(__name__)


class DirectoryLock:
    """Held from `__init__` to `release`."""

    def __init__(self, directory: Path) -> None:
        path = directory / LOCK
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, private_files.FILE)
        except OSError as error:
            raise DataDirError(
                f"the data directory {directory} cannot be written: {error.strerror}; "
                "make it writable for this user, or choose another directory"
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise DataDirError(
                f"the data directory {directory} is in use by another process (pid {owner}); "
                "stop that process, or choose another directory"
            ) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """The file stays: removing it would let two processes lock two files of one name."""
        os.close(self._fd)


class DataDir:
    """An open data directory. `store` holds what it held; every change of the store goes back into it."""

    def __init__(self, path: Path, store: Store, durability: SqliteDurability, close: Callable[[], None]) -> None:
        self.path = path
        self.store = store
        self.durability = durability
        self._close = close

    def close(self) -> None:
        """Writes what is pending and frees the directory. Without it nothing acknowledged is lost either."""
        try:
            self.durability.flush()
        finally:
            self._close()

    def __enter__(self) -> DataDir:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_data_dir(
    path: Path | str,
    wall: Callable[[], float],
    rng: random.Random | None = None,
    *,
    synchronous: str = "FULL",
    **options: Any,
) -> DataDir:
    """The store in a directory, which is made if it is not there. `options` go to `Store`.

    A given `rng` is only where randomness begins: each start of the directory goes on differently, so that UIDs do not
    come again. DataDirError in one sentence when the directory cannot be used; it is unchanged then.
    """
    directory = _directory(Path(path))
    new = recovery.is_new(directory)
    lock = DirectoryLock(directory)
    try:
        recovery.take_over(directory)
        _make_private(directory)
        if new:
            _make_database(directory)
        contents = recovery.read(directory)
        database = _open_database(directory, contents, synchronous)
    except BaseException:
        lock.release()
        raise
    own = random.Random(f"{(rng or random.SystemRandom()).getrandbits(128)} {database.begin_start()}")
    durability = SqliteDurability(database, contents.version)
    store = Store(wall, own, start_version=contents.version, durability=durability, **options)
    for row in contents.rows:
        store.restore(row.resource, row.raw)

    def close() -> None:
        durability.close()
        database.close()
        lock.release()

    return DataDir(directory, store, durability, close)


def _directory(path: Path) -> Path:
    try:
        private_files.make_folder(path)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataDirError(f"the data directory {path} is a file, or below one; choose a directory") from error
    except OSError as error:
        raise DataDirError(
            f"the data directory {path} cannot be created: {error.strerror}; choose one that is writable"
        ) from error
    return path


def _make_private(directory: Path) -> None:
    """Take the directory and its files away from other users. A directory that has other files keeps its mode."""
    ours = [directory / LOCK, *directory.glob(f"{DATABASE}*")]
    alone = set(directory.iterdir()) <= set(ours)
    for path in (directory, *ours) if alone else ours:
        try:
            private_files.tighten(path)
        except OSError as error:
            _log.warning("Other users may be able to read the data; cannot change the mode", path=str(path), err=error)


def _make_database(directory: Path) -> None:
    """Under another name first: a crash leaves either no database or a whole one."""
    final, draft = directory / DATABASE, directory / f"{DATABASE}.new"
    try:
        for leftover in (draft, draft.with_name(f"{draft.name}-wal"), draft.with_name(f"{draft.name}-shm")):
            leftover.unlink(missing_ok=True)
        os.close(private_files.create(draft))  # SQLite gives its log and index the mode of the database
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.executescript(SCHEMA)
            row = (0, 1, 0, 0, 0, state_checksum(1, 0, 0, 0))
            connection.execute("INSERT INTO state VALUES (?, ?, ?, ?, ?, ?)", row)
        draft.rename(final)
        _sync(directory)
    except (sqlite3.Error, OSError) as error:
        raise DataDirError(f"cannot create a database in {directory}: {error}; is the disk full?") from error


def _sync(directory: Path) -> None:
    """A rename lasts when its directory is on disk."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _open_database(directory: Path, contents: Contents, synchronous: str) -> Database:
    try:
        return Database(directory / DATABASE, contents, synchronous=synchronous)
    except sqlite3.Error as error:
        raise DataDirError(f"{directory / DATABASE} cannot be written: {error}; make it writable") from error
