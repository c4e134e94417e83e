"""Objects, lists and watch events as bytes, in the form that the client asked for.

The forms are the object itself, a Table, or its metadata only.

In the plain form an object is encoded once per stored version; answers, lists and watches share those bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import msgspec

from moorage.api.errors import ApiError
from moorage.embedded.catalog.kinds import ServedKind
from moorage.embedded.http import status_json
from moorage.framework.ports import BOOKMARK
from moorage.store import refusals
from moorage.store.objects import Raw, Stored
from moorage.store.reading import StoreEvent, StoreListing

OBJECT, TABLE, METADATA = "object", "table", "metadata"
_TYPES = frozenset({"application/json", "application/*", "*/*"})
_VIEWS = {"": OBJECT, "Table": TABLE, "PartialObjectMetadata": METADATA, "PartialObjectMetadataList": METADATA}
_VERSIONS = ("v1", "v1beta1")
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_encode = msgspec.json.encode


class ObjectForm(NamedTuple):
    """The form, and for other forms than the object the version of meta.k8s.io."""

    kind: str
    version: str = "v1"


AS_IT_IS = ObjectForm(OBJECT)


@lru_cache(maxsize=256)
def form_of(accept: str) -> ObjectForm:
    """The first form in the Accept header that is served; 406 if there is none.

    Protobuf is passed over, so clients that prefer it and accept JSON too get JSON.
    """
    if not accept.strip():
        return AS_IT_IS
    for clause in accept.split(","):
        form = _clause(clause)
        if form is not None:
            return form
    message = "only the following media types are accepted: application/json, application/json;stream=watch"
    raise refusals.failure(406, "NotAcceptable", message)


def _clause(clause: str) -> ObjectForm | None:
    kind, *rest = (part.strip() for part in clause.split(";"))
    if kind.lower() not in _TYPES:
        return None
    parameters = dict(part.partition("=")[::2] for part in rest)
    if parameters.get("q") in ("0", "0.0", "0.00", "0.000"):
        return None
    view = parameters.get("as", "")
    if not view:
        return AS_IT_IS
    version = parameters.get("v", "v1")
    if view not in _VIEWS or version not in _VERSIONS or parameters.get("g", "meta.k8s.io") != "meta.k8s.io":
        return None
    return ObjectForm(_VIEWS[view], version)


def accepts_gzip(accept_encoding: str) -> bool:
    for clause in accept_encoding.split(","):
        coding, _, quality = clause.partition(";")
        if coding.strip().lower() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


class TablePrinter(Protocol):
    """Makes Tables; the catalog's printing does."""

    def __call__(
        self, served: ServedKind, raws: Sequence[Raw], now: float, include: Any, list_meta: Raw | None, *, headers: bool
    ) -> Raw: ...


class Presenter:
    """The plain form: objects as they are served."""

    def __init__(self, served: ServedKind) -> None:
        self._view = served.view
        self._api_version, self._kind = served.resource.api_version, served.resource.kind
        self._list_kind = served.list_name

    def object(self, stored: Stored) -> bytes:
        return stored.encoded if self._view is None else _encode(self._view.outward(stored.raw))

    def list(self, listing: StoreListing) -> bytes:
        head = {"kind": self._list_kind, "apiVersion": self._api_version, "metadata": list_meta(listing)}
        items = b",".join([self.object(stored) for stored in listing.items])
        return b"".join((_encode(head)[:-1], b',"items":[', items, b"]}"))

    def event(self, event: StoreEvent) -> bytes:
        """One line of a watch."""
        if event.stored is None:
            return self._line(BOOKMARK, _encode(self._bookmark(event)))
        return self._line(event.type, self.object(event.stored))

    def error(self, error: ApiError) -> bytes:
        """The last line of a watch that ends with an error."""
        return self._line("ERROR", _encode(status_json(error)))

    def _line(self, type_: str, encoded: bytes) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), encoded)

    def _bookmark(self, event: StoreEvent) -> Raw:
        meta: Raw = {"resourceVersion": str(event.version), "creationTimestamp": None}
        if event.initial_events_end:
            meta["annotations"] = {_INITIAL_EVENTS_END: "true"}
        return {"kind": self._kind, "apiVersion": self._api_version, "metadata": meta}

    def _outward(self, stored: Stored) -> Raw:
        return stored.raw if self._view is None else self._view.outward(stored.raw)


class MetadataPresenter(Presenter):
    """PartialObjectMetadata: what is common to all kinds."""

    def __init__(self, served: ServedKind, version: str) -> None:
        super().__init__(served)
        self._api_version = f"meta.k8s.io/{version}"
        self._kind, self._list_kind = "PartialObjectMetadata", "PartialObjectMetadataList"

    def object(self, stored: Stored) -> bytes:
        meta = self._outward(stored)["metadata"]
        return _encode({"kind": self._kind, "apiVersion": self._api_version, "metadata": meta})


class TablePresenter(Presenter):
    """Tables as kubectl prints them. In a watch only the first one carries the columns."""

    def __init__(
        self, served: ServedKind, version: str, printer: TablePrinter, include: str, wall: Callable[[], float]
    ) -> None:
        super().__init__(served)
        self._served, self._printer, self._include, self._wall = served, printer, include, wall
        self._version = f"meta.k8s.io/{version}"
        self._headers = True

    def object(self, stored: Stored) -> bytes:
        meta = {"resourceVersion": stored.resource_version}
        return _encode(self._table([self._outward(stored)], meta))

    def list(self, listing: StoreListing) -> bytes:
        raws = [self._outward(stored) for stored in listing.items]
        return _encode(self._table(raws, list_meta(listing)))

    def event(self, event: StoreEvent) -> bytes:
        if event.stored is None:
            meta = self._bookmark(event)["metadata"]
            line = self._line(BOOKMARK, _encode(self._table([], meta)))
        else:
            line = super().event(event)
        self._headers = False
        return line

    def _table(self, raws: Sequence[Raw], meta: Raw) -> Raw:
        table = self._printer(self._served, raws, self._wall(), self._include, meta, headers=self._headers)
        return {**table, "apiVersion": self._version}


def list_meta(listing: StoreListing) -> Raw:
    meta: Raw = {"resourceVersion": str(listing.version)}
    if listing.next_page:
        meta["continue"] = listing.next_page
        if listing.remaining is not None:
            meta["remainingItemCount"] = listing.remaining
    return meta


def presenter(
    served: ServedKind, form: ObjectForm, include: str, printer: TablePrinter | None, wall: Callable[[], float]
) -> Presenter:
    """The presenter of one request. Without a printer there are no Tables, and objects come as they are."""
    if form.kind == METADATA:
        return MetadataPresenter(served, form.version)
    if form.kind == TABLE and printer is not None:
        return TablePresenter(served, form.version, printer, include, wall)
    return Presenter(served)
