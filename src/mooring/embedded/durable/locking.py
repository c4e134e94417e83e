"""One process at a time per data directory. The kernel frees the lock however the process ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from mooring.embedded.durable.layout import LOCK, DataDirError


class DirectoryLock:
    """Held from `__init__` to `release`."""

    def __init__(self, directory: Path) -> None:
        path = directory / LOCK
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirError(
                f"the data directory {directory} cannot be written: {error.strerror}; "
                "make it writable for this user, or name another one"
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise DataDirError(
                f"the data directory {directory} is in use by another process (pid {owner}); "
                "stop that one, or name another directory"
            ) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """The file stays: removing it would let two processes lock two files of one name."""
        os.close(self._fd)
