"""Which form of an answer a client can read: the object itself, a Table, or its metadata only."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from mooring.store import refusals

OBJECT, TABLE, METADATA = "object", "table", "metadata"
_TYPES = frozenset({"application/json", "application/*", "*/*"})
_VIEWS = {
    "": OBJECT,
    "Table": TABLE,
    "PartialObjectMetadata": METADATA,
    "PartialObjectMetadataList": METADATA,
}
_VERSIONS = ("v1", "v1beta1")


class Form(NamedTuple):
    """The form, and for other forms than the object the version of meta.k8s.io."""

    kind: str
    version: str = "v1"


AS_IT_IS = Form(OBJECT)


@lru_cache(maxsize=256)
def form_of(accept: str) -> Form:
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


def _clause(clause: str) -> Form | None:
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
    return Form(_VIEWS[view], version)


def accepts_gzip(accept_encoding: str) -> bool:
    for clause in accept_encoding.split(","):
        coding, _, quality = clause.partition(";")
        if coding.strip().lower() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
