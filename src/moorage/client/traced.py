"""A client whose writes are spans of the attempt that they belong to."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Unpack

from moorage.api.resources import PODS, Resource
from moorage.framework.ports import ApiClient, DelegatingClient, DeleteOptions, Patch, PatchOptions
from moorage.telemetry.tracing import Tracing


class TracedClient(DelegatingClient):
    """Reads are passed on as they are."""

    def __init__(self, client: ApiClient, tracing: Tracing) -> None:
        super().__init__(client)
        self._tracing = tracing

    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        """Everything may pass."""

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        with self._span("create", resource):
            return await super().create(resource, obj, dry_run=dry_run)

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        with self._span("update", resource, subresource):
            return await super().replace(resource, obj, subresource=subresource)

    async def patch(
        self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]
    ) -> Any:
        with self._span("patch", resource, options.get("subresource", ""), name):
            return await super().patch(resource, name, patch, **options)

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        with self._span("delete", resource, name=name):
            await super().delete(resource, name, **options)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        with self._span("create", PODS, "binding", name):
            await super().bind(name, namespace, uid, node)

    def _span(
        self, verb: str, resource: Resource, subresource: str = "", name: str = ""
    ) -> AbstractContextManager[None]:
        what = f"{resource}/{subresource}" if subresource else str(resource)
        return self._tracing.write(f"{verb} {what}", {"moorage.object": name} if name else {})
