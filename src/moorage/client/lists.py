"""The list calls of a reflector, page by page, and what a failed list or watch says about the way back. The steps
themselves are in `reflector`."""

import asyncio
from typing import Any

from moorage.api.errors import (
    ApiError,
    BadAnswer,
    Forbidden,
    GatewayTimeout,
    Gone,
    MoorageError,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from moorage.api.resources import Resource
from moorage.framework.ports import ApiClient, ObjectList


class ShortWatch(MoorageError):
    """A watch or streaming list that ended before it was of any use."""


class Rewound(MoorageError):
    """The server is at a lower version than before: its history is another one."""


class Overdue(MoorageError):
    """An answer or the end of a watch did not come in time: the other end is probably gone."""


_PASSING = (TransportError, Overdue, TooManyRequests, Unauthorized, Forbidden, ServiceUnavailable, GatewayTimeout)


def version_lost(error: Exception) -> bool:
    """The server does not have the version that was asked for: compacted away, or from the future."""
    return isinstance(error, Gone | Rewound) or _is_too_large(error)


def is_older(version: str, other: str) -> bool:
    """Compare two versions as numbers. If either is not a number, neither is older."""
    numbers = version.isascii() and version.isdecimal() and other.isascii() and other.isdecimal()
    return numbers and int(version) < int(other)


def is_passing(error: Exception) -> bool:
    """Says nothing about the version: server away, overloaded, or credentials refused. Everything known is
    kept and the same watch is tried again; a list would only add to the load of a server that comes back."""
    return isinstance(error, _PASSING) and not isinstance(error, BadAnswer)


def is_unreachable(error: Exception) -> bool:
    """Nothing was answered: the server or the way to it is down."""
    return isinstance(error, TransportError | Overdue) and not isinstance(error, BadAnswer)


def is_suspect(error: Exception) -> bool:
    """May pass, or may come from the version itself when it goes on."""
    if isinstance(error, ShortWatch | BadAnswer):
        return True
    return isinstance(error, ServerError) and not is_passing(error)


def describe(error: Exception) -> str:
    """The text for logs and status; unforeseen errors are shown with their type."""
    return str(error) if isinstance(error, MoorageError) else f"{type(error).__name__}: {error}"


def _is_too_large(error: Exception) -> bool:
    """A replica that lags behind answers 504 with this cause; old servers only with the words."""
    if not isinstance(error, ApiError):
        return False
    causes = error.status.details.causes if error.status.details else ()
    return any(cause.reason == "ResourceVersionTooLarge" for cause in causes) or (
        "Too large resource version" in error.status.message
    )


PAGE_SECONDS = 90.0
"""For one page; API servers cut such a request off after 60 s themselves."""


class ChunkedLister:
    """The list calls of one resource under fixed selectors."""

    def __init__(self, client: ApiClient, resource: Resource, page_size: int, selectors: dict[str, str]) -> None:
        self._client = client
        self._resource = resource
        self._page_size = page_size
        self._selectors = selectors

    async def snapshot(self, version: str) -> tuple[list[Any], str]:
        """All objects (`Malformed` for unreadable ones) and the version of the snapshot.

        An exact version is asked for in one piece: that is served from the server's cache, while pages of
        it would all be read from etcd.
        """
        limit = self._page_size if version in ("", "0") else 0
        try:
            return await self._pages(version, limit)
        except _SnapshotGone:
            # Compacted between two pages. Pages of another snapshot cannot be joined to the ones at hand.
            return await self._pages(version, 0)

    async def _pages(self, version: str, limit: int) -> tuple[list[Any], str]:
        answer = await self._page(version, limit)
        items = [*answer.items, *answer.malformed]
        while answer.next_page:
            try:
                # The token carries the version; servers refuse both together.
                answer = await self._page("", limit, answer.next_page)
            except Gone as error:
                raise _SnapshotGone(error.status) from error
            items += [*answer.items, *answer.malformed]
        return items, answer.resource_version

    async def _page(self, version: str, limit: int, page: str = "") -> ObjectList:
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                return await self._client.list(
                    self._resource, resource_version=version, limit=limit, page=page, **self._selectors
                )
        except TimeoutError as error:
            raise Overdue(f"no complete list of {self._resource} within {PAGE_SECONDS:g} s") from error


class _SnapshotGone(Gone):
    """410 on a further page, as opposed to one on the version itself."""
