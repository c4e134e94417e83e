"""/openapi/v3 with its documents, and /openapi/v2. A document is made when a client first asks for it.

A version 2 document is written in Protocol Buffers, the only form in which kubectl reads it. The numbers are
those of the `openapi.v2` messages; what the documents here do not use is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from moorage.embedded.catalog.kinds import VIRTUAL, Catalog, ServedKind
from moorage.embedded.catalog.openapi import documents
from moorage.embedded.catalog.openapi.documents import KUBERNETES_VERSION
from moorage.embedded.http import JSON, ApiRequest, ServerAnswer
from moorage.store.objects import Raw

CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Clients ask for it with an @ in place of the third dot, which Go cannot read as a media type in answers."""

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_INDEX = "/openapi/v3"
_V2 = "/openapi/v2"


def encode(document: Raw) -> bytes:
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_message(2, _named(path, _path_item(item))) for path, item in document["paths"].items())
    return b"".join(
        (
            _text(1, document["swagger"]),
            _message(2, info),
            _message(8, paths),
            _message(9, _named_schemas(document["definitions"])),
        )
    )


def _schema(schema: Raw) -> bytes:
    parts = [
        _text(1, schema.get("$ref")),
        _text(2, schema.get("format")),
        _text(4, schema.get("description")),
        *(_text(19, name) for name in schema.get("required") or ()),
    ]
    if isinstance(schema.get("additionalProperties"), dict):
        parts.append(_message(21, _message(1, _schema(schema["additionalProperties"]))))
    if schema.get("type"):
        parts.append(_message(22, _text(1, schema["type"])))
    if isinstance(schema.get("items"), dict):
        parts.append(_message(23, _message(1, _schema(schema["items"]))))
    if schema.get("properties"):
        parts.append(_message(25, _named_schemas(schema["properties"])))
    return b"".join((*parts, *_extensions(31, schema)))


def _named_schemas(schemas: Raw) -> bytes:
    return b"".join(_message(1, _named(name, _schema(schema))) for name, schema in schemas.items())


def _path_item(item: Raw) -> bytes:
    operations = (_message(number, _operation(item[name])) for name, number in _METHODS.items() if name in item)
    return b"".join((*operations, *_parameters(9, item.get("parameters") or ())))


def _operation(operation: Raw) -> bytes:
    responses = (
        _message(1, _named(code, _message(1, _text(1, response["description"]))))
        for code, response in operation["responses"].items()
    )
    return b"".join(
        (
            _text(3, operation.get("description")),
            *(_text(7, media) for media in operation.get("consumes") or ()),
            *_parameters(8, operation["parameters"]),
            _message(9, b"".join(responses)),
            *_extensions(13, operation),
        )
    )


def _parameters(number: int, parameters: Iterable[Raw]) -> Iterable[bytes]:
    for parameter in parameters:
        yield _message(number, _message(1, _parameter(parameter)))


def _parameter(parameter: Raw) -> bytes:
    name, place = parameter["name"], parameter["in"]
    if place == "body":
        body = _text(2, name) + _text(3, place) + _flag(4, True) + _message(5, _schema(parameter["schema"]))
        return _message(1, body)
    described = _text(2, place) + _text(3, parameter.get("description")) + _text(4, name)
    if place == "path":
        return _message(2, _message(4, _flag(1, True) + described + _text(5, parameter["type"])))
    return _message(2, _message(3, described + _text(6, parameter["type"])))


def _extensions(number: int, value: Raw) -> Iterable[bytes]:
    """Extensions travel as YAML; JSON is YAML."""
    for name, content in value.items():
        if name.startswith("x-"):
            yield _message(number, _named(name, _text(2, msgspec.json.encode(content).decode() + "\n")))


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _message(2, value)


def _text(number: int, text: Any) -> bytes:
    return _message(number, text.encode()) if text else b""


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _flag(number: int, value: bool) -> bytes:
    return _varint(number << 3) + _varint(int(value))


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


class OpenApi:
    """The endpoint for OpenAPI."""

    def __init__(self, catalog: Catalog, virtual: Iterable[ServedKind] = VIRTUAL) -> None:
        self._catalog = catalog
        self._virtual = tuple(virtual)
        self._made_of = -1
        self._kept: dict[str, bytes] = {}

    def answer(self, request: ApiRequest) -> ServerAnswer | None:
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

    def _version_2(self, request: ApiRequest) -> ServerAnswer:
        def make() -> Raw:
            return documents.version_2((*self._catalog.all(), *self._virtual))

        if "protobuf" in request.accept:
            body = self._keep("protobuf", lambda: encode(make()))
            return _tagged(request, body, CONTENT_TYPE)
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

    def _group_versions(self) -> dict[str, list[ServedKind]]:
        found: dict[str, list[ServedKind]] = {}
        for served in (*self._catalog.all(), *self._virtual):
            found.setdefault(served.resource.path_prefix.lstrip("/"), []).append(served)
        return found

    def _keep(self, key: str, make: Callable[[], bytes]) -> bytes:
        body = self._kept.get(key)
        if body is None:
            body = self._kept[key] = make()
        return body


def _fingerprint(kinds: list[ServedKind]) -> str:
    """Made of what a document is made of, so that the index needs no documents."""
    described = [(s.resource.plural, s.resource.kind, s.verbs, s.schema) for s in kinds]
    return _hash(msgspec.json.encode([KUBERNETES_VERSION, described]))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest().upper()


def _tagged(request: ApiRequest, body: bytes, content_type: str) -> ServerAnswer:
    tag = f'"{_hash(body)}"'
    headers = (("ETag", tag), ("Vary", "Accept"))
    if tag in request.headers.get("if-none-match", ""):
        return ServerAnswer(304, b"", content_type, headers)
    return ServerAnswer(200, body, content_type, headers)
