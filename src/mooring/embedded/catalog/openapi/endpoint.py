"""/openapi/v3 with its documents, and /openapi/v2. A document is made when somebody first asks for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import msgspec

from mooring.embedded.catalog.kinds import Catalog, Served
from mooring.embedded.catalog.openapi import documents, protobuf
from mooring.embedded.catalog.openapi.documents import KUBERNETES_VERSION
from mooring.embedded.catalog.virtual import VIRTUAL
from mooring.embedded.http import JSON, Answer, Request
from mooring.store.objects import Raw

_INDEX = "/openapi/v3"
_V2 = "/openapi/v2"


class OpenApi:
    """The endpoint for OpenAPI."""

    def __init__(self, catalog: Catalog, virtual: Iterable[Served] = VIRTUAL) -> None:
        self._catalog = catalog
        self._virtual = tuple(virtual)
        self._made_of = -1
        self._kept: dict[str, bytes] = {}

    def answer(self, request: Request) -> Answer | None:
        if request.method not in ("GET", "HEAD") or not request.path.startswith("/openapi/"):
            return None
        if self._made_of != self._catalog.version:
            self._kept.clear()
            self._made_of = self._catalog.version
        if request.path == _V2:
            return self._version_2(request)
        if request.path == _INDEX:
            return _tagged(request, self._keep(_INDEX, lambda: msgspec.json.encode(self._index())), JSON)
        group_version = request.path.removeprefix(f"{_INDEX}/")
        if group_version not in self._group_versions():
            return None
        return _tagged(request, self._document(group_version), JSON)

    def _version_2(self, request: Request) -> Answer:
        def make() -> Raw:
            return documents.version_2((*self._catalog.all(), *self._virtual))

        if "protobuf" in request.accept:
            body = self._keep("protobuf", lambda: protobuf.encode(make()))
            return _tagged(request, body, protobuf.CONTENT_TYPE)
        return _tagged(request, self._keep(_V2, lambda: msgspec.json.encode(make())), JSON)

    def _index(self) -> Raw:
        """Where each document is; the hash tells clients whether they have it already."""
        found = self._group_versions()
        return {
            "paths": {
                name: {"serverRelativeURL": f"{_INDEX}/{name}?hash={_fingerprint(found[name])}"}
                for name in sorted(found)
            }
        }

    def _document(self, group_version: str) -> bytes:
        def make() -> bytes:
            return msgspec.json.encode(documents.version_3(self._group_versions()[group_version]))

        return self._keep(group_version, make)

    def _group_versions(self) -> dict[str, list[Served]]:
        found: dict[str, list[Served]] = {}
        for served in (*self._catalog.all(), *self._virtual):
            found.setdefault(served.resource.path_prefix.lstrip("/"), []).append(served)
        return found

    def _keep(self, key: str, make: Callable[[], bytes]) -> bytes:
        body = self._kept.get(key)
        if body is None:
            body = self._kept[key] = make()
        return body


def _fingerprint(kinds: list[Served]) -> str:
    """Made of what a document is made of, so that the index needs no documents."""
    told = [(s.resource.plural, s.resource.kind, s.verbs, s.schema) for s in kinds]
    return _hash(msgspec.json.encode([KUBERNETES_VERSION, told]))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest().upper()


def _tagged(request: Request, body: bytes, content_type: str) -> Answer:
    tag = f'"{_hash(body)}"'
    headers = (("ETag", tag), ("Vary", "Accept"))
    if tag in request.headers.get("if-none-match", ""):
        return Answer(304, b"", content_type, headers)
    return Answer(200, body, content_type, headers)
