"""What the nodes of a cluster use, as its API server measures it (metrics.k8s.io), to the user's own
credentials. Not every cluster measures, and not every user may see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from moorage.api.errors import MoorageError
from moorage.api.requests import resource_value
from moorage.app.clock import SystemClock
from moorage.client.connection import connect, default_user_agent
from moorage.client.credentials import Credentials
from moorage.contrib.metrics.metrics_server import NODE_METRICS
from moorage.telemetry import logs
from moorage.web.source import Json

FRESH_SECONDS = 15.0
"""Metrics servers measure about as often."""
ANSWER_SECONDS = 5.0

_log = logs.get(__name__)


class Usage:
    def __init__(self, find_server: Callable[[], Awaitable[Credentials]]) -> None:
        """`find_server` may fail, as where there is no kubeconfig: then nothing is measured."""
        self._find_server = find_server
        self._clock = SystemClock()
        self._found: dict[str, Json] = {}
        self._until = float("-inf")

    async def add_to(self, nodes: Json) -> Json:
        """The columns of `nodes` with what is `measured` of each amount; as they are where nothing is."""
        if self._clock.now() >= self._until:
            self._until = self._clock.now() + FRESH_SECONDS
            self._found = await self._ask()
        measured = {name for usage in self._found.values() for name in usage} & set(nodes["amounts"])
        used = [self._found.get(name, {}) for name in nodes["names"]]
        columns = {name: [each.get(name, 0) for each in used] for name in measured}
        return {
            **nodes,
            "amounts": {
                name: {**amounts, "measured": columns[name]} if name in columns else amounts
                for name, amounts in nodes["amounts"].items()
            },
        }

    async def _ask(self) -> dict[str, Json]:
        """Node → resource → amount; nothing where there is no answer."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._list()
        except (MoorageError, TimeoutError) as error:
            _log.info(1, "The usage of nodes is not known", err=str(error) or "no answer in time")
            return {}

    async def _list(self) -> dict[str, Json]:
        agent = default_user_agent("read-cluster")
        client = connect(await self._find_server(), self._clock, user_agent=agent)
        try:
            items = (await client.list(NODE_METRICS)).items
        finally:
            await client.close()
        return {item.name: _amounts(item.get("usage", default={})) for item in items}


def _amounts(usage: Json) -> Json:
    return {name: resource_value(name, amount) for name, amount in usage.items()}
