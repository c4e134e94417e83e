"""Read files of Kubernetes objects: YAML or JSON, several documents, Lists. The objects are not checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moorage.api import yaml_text
from moorage.api.errors import MoorageError

STDIN = Path("-")


def read_manifest(path: Path) -> list[dict[str, Any]]:
    """Return all objects of a file in order, or raise a MoorageError if it holds something else."""
    try:
        text = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise MoorageError(f"the file {path} cannot be read: {error.strerror}") from error
    return parse_manifest(text, f"the file {path}")


def parse_manifest(text: str | bytes, source: str) -> list[dict[str, Any]]:
    """Return all objects of a text; messages call it `source`."""
    found = yaml_text.load_all(text, source)
    return [obj for number, value in enumerate(found, 1) for obj in _objects(source, number, value)]


def _objects(source: str, number: int, value: Any) -> Iterator[dict[str, Any]]:
    if value is None:
        return  # an empty document, which templates may produce
    if not isinstance(value, dict) or not value.get("kind") or not value.get("apiVersion"):
        raise MoorageError(f"{source}, document {number}, is not an object: apiVersion and kind are missing")
    if str(value["kind"]).endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(source, number, item)
        return
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        kind = value["kind"]
        raise MoorageError(f"{source}, document {number}, is a {kind} without metadata.name")
    yield value
