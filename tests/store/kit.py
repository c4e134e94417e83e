"""A store with fixed time and randomness, and plain JSON objects to put into it."""

from __future__ import annotations

import random
from typing import Any

from moorage.store.store import Store

NOW = 1_767_225_600.0
NOW_TEXT = "2026-01-01T00:00:00Z"


class Wall:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> float:
        return self.time


def new_store(wall: Wall | None = None, **options: Any) -> Store:
    return Store(wall or Wall(), random.Random(1), **options)


def pod(name: str = "a", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [{"name": "main"}], **spec}}


def node(name: str = "n1", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **meta}, "status": {"capacity": {"cpu": "4"}}}


def labelled(raw: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {**raw, "metadata": {**raw["metadata"], "labels": labels}}
