"""Writes only while this replica leads: the API client that the scheduler and its plugins get.

The question is asked right before each call. Reading is always allowed: a replica that has lost the lease may
still have to learn what became of a bind that it had sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from mooring.api.errors import NotSent
from mooring.api.resources import Resource
from mooring.framework.ports import ApiClient, ObjectList, WatchEvent

MayWrite = Callable[[], bool]

NOT_LEADING = "not sent: this replica no longer holds the lease"


def always() -> bool:
    """For a scheduler that is alone."""
    return True


class FencedClient:
    """Implements `framework.ports.ApiClient`; a write without the lease raises NotSent."""

    def __init__(self, client: ApiClient, may_write: MayWrite) -> None:
        self._client = client
        self._may_write = may_write

    def _check(self) -> None:
        if not self._may_write():
            raise NotSent(NOT_LEADING)

    async def list(self, resource: Resource, **options: Any) -> ObjectList:
        return await self._client.list(resource, **options)

    def watch(self, resource: Resource, **options: Any) -> AsyncIterator[WatchEvent]:
        return self._client.watch(resource, **options)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        return await self._client.get(resource, name, namespace)

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        self._check()
        return await self._client.create(resource, obj, dry_run=dry_run)

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        self._check()
        return await self._client.replace(resource, obj, subresource=subresource)

    async def patch(self, resource: Resource, name: str, patch: Any, **options: Any) -> Any:
        self._check()
        return await self._client.patch(resource, name, patch, **options)

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        self._check()
        await self._client.delete(resource, name, **options)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        self._check()
        await self._client.bind(name, namespace, uid, node)
