"""The API client that a plugin gets: only what its `needs` declare passes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from mooring.api.resources import PODS, Resource
from mooring.framework.access import Access
from mooring.framework.ports import ApiClient, ObjectList, WatchEvent


class GuardedClient:
    """Implements `framework.ports.ApiClient` by passing allowed calls on. The same declarations become RBAC
    rules, so what passes here passes on the cluster."""

    def __init__(self, client: ApiClient, plugin: str, needs: Sequence[Access]) -> None:
        self._client = client
        self._plugin = plugin
        self._allowed = {(need.resource, need.subresource, verb) for need in needs for verb in need.verbs}

    def _check(self, resource: Resource, verb: str, subresource: str = "") -> None:
        if (resource, subresource, verb) not in self._allowed:
            raise undeclared(self._plugin, Access(resource, (verb,), subresource))

    async def list(self, resource: Resource, **options: Any) -> ObjectList:
        self._check(resource, "list")
        return await self._client.list(resource, **options)

    def watch(self, resource: Resource, **options: Any) -> AsyncIterator[WatchEvent]:
        self._check(resource, "watch")
        return self._client.watch(resource, **options)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        self._check(resource, "get")
        return await self._client.get(resource, name, namespace)

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        self._check(resource, "create")
        return await self._client.create(resource, obj, dry_run=dry_run)

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        self._check(resource, "update", subresource)
        return await self._client.replace(resource, obj, subresource=subresource)

    async def patch(
        self, resource: Resource, name: str, patch: Any, *, subresource: str = "", **options: Any
    ) -> Any:
        self._check(resource, "patch", subresource)
        return await self._client.patch(resource, name, patch, subresource=subresource, **options)

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        self._check(resource, "delete")
        await self._client.delete(resource, name, **options)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        self._check(PODS, "create", "binding")
        await self._client.bind(name, namespace, uid, node)


def undeclared(plugin: str, access: Access) -> PermissionError:
    """The refusal of a kind or verb that is not among the plugin's `needs`, with the line to add."""
    verbs = "".join(f"{verb!r}, " for verb in access.verbs).rstrip()
    what = f"{access.resource}/{access.subresource}" if access.subresource else str(access.resource)
    sub = f', subresource="{access.subresource}"' if access.subresource else ""
    return PermissionError(
        f"plugin {plugin!r} uses {what} ({', '.join(access.verbs)}) without declaring it: "
        f"add Access(<{access.resource.kind}>, ({verbs}){sub}) to its `needs`"
    )
