"""The status of ResourceQuotas: the limits, and what the objects of the namespace use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.api.resources import Resource, Unstructured
from moorage.embedded.admission.quotas import status_of
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import is_terminating
from moorage.store.objects import Raw


class ResourceQuotas(Controller):
    """The controller of ResourceQuotas."""

    name = "resourcequota-controller"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.quotas = self.watch(kinds.RESOURCE_QUOTAS, own_key)
        self.counted = [self.watch(resource, self._quotas_of) for resource in kinds.FOLLOWED if resource.namespaced]

    def _quotas_of(self, obj: Unstructured) -> Iterable[str]:
        return [quota.key for quota in self.quotas.in_namespace(obj.namespace)]

    async def reconcile(self, key: str) -> float | None:
        quota = self.quotas.get(key)
        if quota is not None and not is_terminating(quota):
            status = status_of(quota.raw, self._objects(quota.namespace))
            await self.writer.update_status(kinds.RESOURCE_QUOTAS, quota, status)
        return None

    def _objects(self, namespace: str) -> Iterator[tuple[Resource, Raw]]:
        for cache in self.counted:
            for obj in cache.in_namespace(namespace):
                yield cache.resource, obj.raw
