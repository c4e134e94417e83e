"""A running scheduler as a source of the pages: what /moorage/v1 says, to the user's own credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from moorage.api.errors import MoorageError
from moorage.app.clock import SystemClock
from moorage.client.credentials import Credentials
from moorage.endpoints import client
from moorage.endpoints.client import Endpoints
from moorage.endpoints.v1.routes import ROOT
from moorage.web.source import Json, Question, QueueQuery
from moorage.web.sources import configurations
from moorage.web.sources.labels import label_columns
from moorage.web.sources.trying import what_if
from moorage.web.sources.usage import Usage

FRESH_SECONDS, NODES_FRESH_SECONDS = 0.4, 4.0
"""Several browsers that ask at about the same time get one answer; all nodes are much to ask for."""
MOST_NODES = 10_000
PER_PAGE = 1000
ATTEMPTS = 50
"""Of one pod, the newest."""
MOST_NAMES = 5000
"""Of nodes that one plugin refused in an attempt."""


class ServerSource:
    refresh_seconds = 1.0

    def __init__(self, given: Credentials, *, usage: Usage | None = None, read_only: bool = False) -> None:
        self.read_only = read_only
        self.title = f"scheduler at {given.server}"
        self._given = given
        self._usage = usage
        self._clock = SystemClock()
        self._endpoints: Endpoints | None = None
        self._kept: dict[tuple[str, str], tuple[float, asyncio.Task[Json]]] = {}
        """What was asked → until when the answer is given again, and the answer."""

    async def summary(self) -> Json:
        return await self._ask("summary")

    async def queue(self, query: QueueQuery) -> Json:
        return await self._ask(
            "queue",
            place=query.place,
            reason=query.reason,
            search=query.search,
            after=query.after,
            limit=query.limit,
        )

    async def pod(self, key: str) -> Json:
        answer = await self._ask("records", pod=key, limit=ATTEMPTS, nodes=0)
        return {**answer, "explanation": None}

    async def attempt(self, key: str, sequence: int) -> Json:
        answer = await self._ask("records", pod=key, before=sequence + 1, limit=1, nodes=MOST_NAMES)
        if not answer["records"] or answer["records"][-1]["sequence"] != sequence:
            raise MoorageError(
                f"attempt {sequence} of the pod {key} is not kept any more: choose another one"
            )
        return dict(answer["records"][-1])

    async def what_if(self, question: Question) -> Json:
        """By the scheduler's own configuration, on what it sees at this moment."""
        configured = await client.configuration(self._given)
        cluster = await client.cluster(self._given, configured.resources())
        return await asyncio.to_thread(what_if, cluster, configured, question)

    async def nodes(self) -> Json:
        return await self._shared(("nodes", ""), NODES_FRESH_SECONDS, self._columns)

    async def _columns(self) -> Json:
        found = await self._pages("nodes", "nodes")
        resources = dict.fromkeys(name for node in found for name in node["allocatable"])
        requested = [{**node["requested"], "pods": node["podCount"]} for node in found]
        columns = {
            "names": [node["name"] for node in found],
            "unschedulable": [node["unschedulable"] for node in found],
            "labels": label_columns([node["labels"] for node in found]),
            "amounts": {
                name: {
                    "allocatable": [node["allocatable"].get(name, 0) for node in found],
                    "requested": [each.get(name, 0) for each in requested],
                }
                for name in resources
            },
        }
        return columns if self._usage is None else await self._usage.add_to(columns)

    async def node(self, name: str) -> Json:
        return await self._ask(f"nodes/{quote(name, safe='')}", limit=PER_PAGE)

    async def configuration(self) -> Json:
        found = await self._ask("configuration")
        warnings = [f"A newer configuration is not used: {found['error']}"] if found["error"] else []
        return {**found, "problems": [], "warnings": [*warnings, *found["warnings"]]}

    async def check(self, text: str) -> Json:
        """By the scheduler, which knows its plugins; here where it takes no configuration."""
        if self.read_only or not (await self._ask("configuration"))["writable"]:
            return await asyncio.to_thread(configurations.check, text)
        return await self._send(text, dryRun="All")

    async def past_configuration(self, number: int) -> str:
        return str((await self._ask(f"configuration/{number}"))["text"])

    async def apply(self, text: str) -> Json:
        self._may_change()
        answer = await self._send(text)
        self._kept.clear()  # what was asked before is of the former one
        return answer

    async def _send(self, text: str, **query: str) -> Json:
        self._endpoints = self._endpoints or Endpoints(self._given)
        return await self._endpoints.send(f"{ROOT}/configuration", query, text)

    def _may_change(self) -> None:
        if self.read_only:
            raise MoorageError("these pages are read-only: start `moorage ui` without --read-only to change")

    async def _pages(self, path: str, key: str) -> list[Json]:
        """All pages of a list."""
        found: list[Json] = []
        after: str | None = ""
        while after is not None and len(found) < MOST_NODES:
            answer = await self._ask(path, limit=PER_PAGE, after=after)
            found += answer[key]
            after = answer["after"]
        return found

    async def _ask(self, path: str, **query: Any) -> Json:
        given = {name: str(value) for name, value in query.items() if value != ""}
        path = path if path.startswith("/") else f"{ROOT}/{path}"

        async def answer() -> Json:
            # Made on the loop that uses it.
            self._endpoints = self._endpoints or Endpoints(self._given)
            return await self._endpoints.ask(path, given)

        return await self._shared((path, repr(given)), FRESH_SECONDS, answer)

    async def _shared(
        self, key: tuple[str, str], seconds: float, ask: Callable[[], Coroutine[Any, Any, Json]]
    ) -> Json:
        """One answer for all who ask within these seconds; a failure is not kept."""
        now = self._clock.now()
        self._kept = {k: kept for k, kept in self._kept.items() if kept[0] > now}
        if key not in self._kept:
            self._kept[key] = (now + seconds, asyncio.ensure_future(ask()))
        try:
            return await asyncio.shield(self._kept[key][1])
        except MoorageError:
            self._kept.pop(key, None)
            raise
