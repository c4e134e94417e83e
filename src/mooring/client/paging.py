"""Reads one complete snapshot of a resource, in pages where that spares the server."""

import asyncio
from typing import Any

from mooring.api.errors import Gone
from mooring.api.resources import Resource
from mooring.client.failures import Overdue
from mooring.framework.ports import ApiClient, ObjectList

PAGE_SECONDS = 90.0
"""For one page; API servers cut such a request off after 60 s themselves."""


class Lister:
    """The list calls of one resource under fixed selectors."""

    def __init__(
        self, client: ApiClient, resource: Resource, page_size: int, selectors: dict[str, str]
    ) -> None:
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
