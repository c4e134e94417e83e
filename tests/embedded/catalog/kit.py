"""A store, a catalog and requests for the tests of the catalog; time stands still at NOW."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from moorage.embedded.builtin import built_in_catalog
from moorage.embedded.catalog.kinds import ServedKind
from moorage.embedded.http import ADMIN, ApiRequest, Endpoint, ServerAnswer
from moorage.store.store import Store

NOW = 1_700_000_000.0


def make_store() -> Store:
    return Store(lambda: NOW, random.Random(1))


def served(plural: str, group: str = "", version: str = "v1") -> ServedKind:
    found = built_in_catalog().find(group, version, plural)
    assert found is not None
    return found


def ask(endpoint: Endpoint, path: str, method: str = "GET", body: Any = None, **headers: str) -> ServerAnswer | None:
    """One request; underscores in header names stand for dashes."""
    path, _, query = path.partition("?")
    return endpoint.answer(
        ApiRequest(
            method,
            path,
            dict(pair.split("=", 1) for pair in query.split("&") if pair),
            {name.replace("_", "-"): value for name, value in headers.items()},
            b"" if body is None else msgspec.json.encode(body),
            ADMIN,
        )
    )


def get_json(endpoint: Endpoint, path: str, method: str = "GET", body: Any = None, **headers: str) -> Any:
    """The JSON value of the answer; there must be one."""
    answer = ask(endpoint, path, method, body, **headers)
    assert answer is not None
    return msgspec.json.decode(answer.body)
