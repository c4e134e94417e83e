"""Which groups, versions and kinds there are: /api, /apis and below, plain and aggregated.

The answers are made once for each state of the catalog and carry an ETag, so that a client that has them
already is told so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from mooring.embedded.catalog import listings
from mooring.embedded.catalog.kinds import Catalog, Served
from mooring.embedded.catalog.virtual import VIRTUAL
from mooring.embedded.http import JSON, Answer, Request
from mooring.store.objects import Raw


class Discovery:
    """The endpoint for all discovery paths."""

    def __init__(self, catalog: Catalog, virtual: Iterable[Served] = VIRTUAL) -> None:
        self._catalog = catalog
        self._virtual = tuple(virtual)
        self._made_of = -1
        self._documents: dict[tuple[str, str], tuple[bytes, str]] = {}

    def answer(self, request: Request) -> Answer | None:
        if request.method not in ("GET", "HEAD"):
            return None
        self._refresh()
        path = request.path.rstrip("/")
        version = _aggregated_version(request.accept) if path in ("/api", "/apis") else ""
        document = self._documents.get((path, version))
        if document is None:
            return None
        body, tag = document
        content_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        headers = (("ETag", tag), ("Vary", "Accept"))
        if tag in request.headers.get("if-none-match", ""):
            return Answer(304, b"", content_type if version else JSON, headers)
        return Answer(200, body, content_type if version else JSON, headers)

    def _refresh(self) -> None:
        if self._made_of == self._catalog.version:
            return
        groups = listings.groups_of((*self._catalog.all(), *self._virtual))
        self._documents = {key: _with_tag(value) for key, value in listings.documents(groups).items()}
        self._made_of = self._catalog.version


def _aggregated_version(accept: str) -> str:
    """The aggregated form that the client would like best, "" for the plain one."""
    for media in accept.split(","):
        name, *parameters = (part.strip() for part in media.split(";"))
        asked = dict(part.partition("=")[::2] for part in parameters)
        if (
            asked.get("as") == "APIGroupDiscoveryList"
            and name in (JSON, "*/*")
            and asked.get("v") in listings.AGGREGATED
        ):
            return asked["v"]
        if name in (JSON, "*/*") and "as" not in asked:
            return ""
    return ""


def _with_tag(document: Raw) -> tuple[bytes, str]:
    body = msgspec.json.encode(document)
    return body, f'"{hashlib.sha256(body).hexdigest().upper()}"'
