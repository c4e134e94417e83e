"""Files and folders that only the user can read: credentials, private keys, and clusters on disk."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

FILE, FOLDER = 0o600, 0o700


def write(path: Path, content: Iterable[bytes]) -> None:
    """Write a file in one step, with mode 0600.

    The content goes to a new file beside it, which then takes the name. So no other user can read it through an older
    mode or an older open file, a link of that name is replaced and not followed, and a crash leaves the old file.
    Raises OSError.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-tmp-")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def create(path: Path) -> int:
    """Create a file with mode 0600 and return its descriptor. Raises FileExistsError, also for a link."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE)


def make_folder(path: Path) -> None:
    """Create a folder with mode 0700, and its parents as usual. One that exists is left as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=FOLDER, exist_ok=True)


def tighten(path: Path) -> None:
    """Take away what other users may do with a file or folder. Links are left alone. Raises OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if path.is_symlink() or not path.exists():
        return
    handle = os.open(path, flags)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode):
            wanted = FOLDER if stat.S_ISDIR(found.st_mode) else FILE
            if stat.S_IMODE(found.st_mode) & ~wanted:
                os.fchmod(handle, stat.S_IMODE(found.st_mode) & wanted)
    finally:
        os.close(handle)
