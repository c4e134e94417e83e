"""An engine without an API server, to evaluate, check or measure in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

from moorage.api.resources import Resource
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration
from moorage.framework.extending import Extender
from moorage.framework.ports import Clock, ObjectList, WatchEvent
from moorage.scheduler.assembly import assemble
from moorage.scheduler.engine import Engine
from moorage.scheduler.generation import Ports


def offline_engine(
    configured: Configuration,
    seed: int = 0,
    extenders: Sequence[Extender] = (),
    clock: Clock | None = None,
) -> Engine:
    """Return an engine with all profiles of the configuration. Writes succeed and change nothing."""
    clock = clock or SystemClock()
    ports = Ports(NoApi(), clock, random.Random(seed), NoEvents(), extenders=extenders)
    return assemble(configured.config, configured.profiles, configured.registry, ports)


class NoEvents:
    """An event recorder that drops all events."""

    def event(self, regarding: Any, **_: Any) -> None:
        pass


class NoApi:
    """An API client whose writes succeed and change nothing."""

    async def list(self, resource: Resource, **_: Any) -> ObjectList:
        return ObjectList((), "0")

    async def watch(self, resource: Resource, **_: Any) -> AsyncIterator[WatchEvent]:
        return
        yield

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        return None

    async def create(self, resource: Resource, obj: Any, **_: Any) -> Any:
        return obj

    async def replace(self, resource: Resource, obj: Any, **_: Any) -> Any:
        return obj

    async def patch(self, resource: Resource, name: str, patch: Any, **_: Any) -> Any:
        return None

    async def delete(self, resource: Resource, name: str, **_: Any) -> None:
        return None

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        return None
