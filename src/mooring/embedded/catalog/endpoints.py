"""All endpoints of the catalog, in the order in which a server asks them."""

from __future__ import annotations

from collections.abc import Callable

from mooring.embedded.catalog.discovery import Discovery
from mooring.embedded.catalog.kinds import Catalog
from mooring.embedded.catalog.metrics import Metrics
from mooring.embedded.catalog.openapi.endpoint import OpenApi
from mooring.embedded.catalog.reviews import Reviews, Tokens
from mooring.embedded.catalog.usage import NoUsage, UsageSource
from mooring.embedded.http import Endpoint
from mooring.embedded.store import Store


def endpoints(
    store: Store,
    catalog: Catalog,
    wall: Callable[[], float],
    tokens: Tokens,
    usage: UsageSource | None = None,
) -> list[Endpoint]:
    """`wall` gives Unix seconds, `tokens` whose token one is, `usage` what nodes and pods use."""
    return [
        Discovery(catalog),
        OpenApi(catalog),
        Metrics(store, usage or NoUsage(), wall),
        Reviews(tokens),
    ]
