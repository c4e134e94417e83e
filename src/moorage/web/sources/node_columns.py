"""Columns of nodes that no scheduler provides: labels by which nodes can be grouped, and measured usage.

Usage comes from the metrics API (metrics.k8s.io) with the user's credentials. Not every cluster serves it,
and not every user may read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from moorage.api.errors import MoorageError
from moorage.api.requests import resource_value
from moorage.app.clock import SystemClock
from moorage.client.connection import connect, default_user_agent
from moorage.client.credentials import Credentials
from moorage.contrib.metrics.metrics_server import NODE_METRICS
from moorage.telemetry import logs
from moorage.web.source import Json

MAX_VALUES = 200
"""Values of a label by which nodes can be grouped: one group for each node shows nothing."""
FRESH_SECONDS = 15.0
"""Metrics servers measure about as often."""
ANSWER_SECONDS = 5.0

_log = logs.get(__name__)


def label_columns(labels: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return key → value on each node, empty if a node lacks the key; without keys that have many values."""
    columns = {}
    for key in dict.fromkeys(key for each in labels for key in each):
        values = [each.get(key, "") for each in labels]
        if len(set(values)) <= MAX_VALUES:
            columns[key] = values
    return columns


class UsageColumns:
    """The measured usage of nodes."""

    def __init__(self, find_server: Callable[[], Awaitable[Credentials]]) -> None:
        """`find_server` may fail, for example without a kubeconfig; then nothing is measured."""
        self._find_server = find_server
        self._clock = SystemClock()
        self._found: dict[str, Json] = {}
        self._until = float("-inf")

    async def add_to(self, nodes: Json) -> Json:
        """Return the columns with `measured` added to each amount that is known."""
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
        """Return node → resource → amount; empty if there is no answer."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._list()
        except (MoorageError, TimeoutError) as error:
            _log.info(1, "Node usage is not available", err=str(error) or "no answer in time")
            return {}

    async def _list(self) -> dict[str, Json]:
        agent = default_user_agent("read-cluster")
        client = connect(await self._find_server(), self._clock, user_agent=agent)
        try:
            items = (await client.list(NODE_METRICS)).items
        finally:
            await client.close()
        return {
            item.name: {name: resource_value(name, amount) for name, amount in item.get("usage", default={}).items()}
            for item in items
        }
