"""Data directories for tests: opened with fixed time and seed, read back, damaged on purpose."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from moorage.embedded.durable.opening import DataDir, open_data_dir
from moorage.store.objects import Raw
from moorage.store.store import Store
from tests.store.kit import NOW


def open_dir(path: Path, **options: Any) -> DataDir:
    return open_data_dir(path, lambda: NOW, random.Random(1), **options)


def contents(store: Store) -> dict[tuple[str, str, str], Raw]:
    """Every object of a store, by plural, namespace and name."""
    return {
        (resource.plural, *stored.key): stored.raw
        for resource in store.resources()
        for stored in store.list(resource).items
    }


def files(path: Path) -> dict[str, bytes]:
    """The bytes of a directory, without what SQLite derives from them."""
    kept = (file for file in path.iterdir() if file.is_file() and not file.name.endswith("-shm"))
    return {file.name: file.read_bytes() for file in kept}


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(data)
