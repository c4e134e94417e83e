"""Files of Kubernetes objects: YAML or JSON, several documents, Lists opened. Whether the objects are good is
the business of whoever takes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from moorage.api.errors import MoorageError

MAX_BYTES = 64 << 20
STDIN = Path("-")


class _Loader(yaml.CSafeLoader):
    """Without timestamps, as sigs.k8s.io/yaml: a date in an annotation stays text."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def read_manifest(path: Path) -> list[dict[str, Any]]:
    """All objects of the file in order; one sentence when it cannot be read or holds something else."""
    try:
        text = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise MoorageError(f"the file {path} cannot be read: {error.strerror}") from error
    return parse_manifest(text, f"the file {path}")


def parse_manifest(text: str | bytes, source: str) -> list[dict[str, Any]]:
    """All objects of a text; `source` is what messages call it."""
    found = documents(text, source)
    return [obj for number, value in enumerate(found, 1) for obj in _objects(source, number, value)]


def documents(text: str | bytes, source: str) -> list[Any]:
    """What a text of YAML or JSON holds, objects or not."""
    if len(text) > MAX_BYTES:
        raise MoorageError(f"{source} has {len(text)} bytes; at most {MAX_BYTES} are read")
    try:
        return list(yaml.load_all(text, _Loader))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise MoorageError(f"{source} is not YAML: {' '.join(str(error).split())}") from error


def _objects(source: str, number: int, value: Any) -> Iterator[dict[str, Any]]:
    if value is None:
        return  # an empty document, as templates leave them behind
    if not isinstance(value, dict) or not value.get("kind") or not value.get("apiVersion"):
        raise MoorageError(f"{source}, document {number}, is no object: apiVersion and kind are needed")
    if str(value["kind"]).endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(source, number, item)
        return
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        kind = value["kind"]
        raise MoorageError(f"{source}, document {number}, is a {kind} without metadata.name: name it")
    yield value
