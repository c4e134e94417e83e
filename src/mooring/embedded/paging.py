"""Lists, in one piece or in pages that all show the same moment.

A continue token holds the version of the first page and the last key given out; later pages are computed
from the history, so nothing is kept for clients that never come back.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from mooring.embedded import refusals
from mooring.embedded.objects import Key, Stored
from mooring.embedded.selecting import Selection
from mooring.embedded.table import Table


@dataclass(frozen=True, slots=True)
class Listing:
    """One answer: objects in order, the version they show, and the token of the next page if one follows."""

    items: list[Stored]
    version: int
    next_page: str = ""
    remaining: int | None = field(default=None)
    """How many objects follow; unknown (None) with selectors, as in the API server."""


class _Token(msgspec.Struct, frozen=True):
    version: int
    after: Key


def list_page(
    table: Table, selection: Selection, version: int, limit: int, page: str, exact: int | None = None
) -> Listing:
    """`version` is the current one; with a token, the token's is shown instead, or else the `exact` one."""
    token = _read(page) if page else None
    if token is None and exact is not None:
        if exact < table.floor:
            raise refusals.too_old(exact, table.floor)
        return _cut(table.at(exact), selection, exact, limit)
    if token is None:
        return _cut(table.in_order(), selection, version, limit)
    if token.version < table.floor or token.version > version:
        raise refusals.page_expired()
    rest = [stored for stored in table.at(token.version) if stored.key > token.after]
    return _cut(rest, selection, token.version, limit)


def _cut(objects: Iterable[Stored], selection: Selection, version: int, limit: int) -> Listing:
    found = list(objects) if selection.everything else [s for s in objects if selection.matches(s)]
    if limit <= 0 or len(found) <= limit:
        return Listing(found, version)
    last = found[limit - 1]
    remaining = len(found) - limit if selection.labels.empty and not selection.fields else None
    return Listing(found[:limit], version, _write(_Token(version, last.key)), remaining)


def _write(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _read(page: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(page.encode()), type=_Token)
    except (binascii.Error, ValueError) as error:
        raise refusals.bad_request(f"continue key is not valid: {error}") from error
