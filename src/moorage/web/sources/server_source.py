"""A running scheduler as a source of the pages: asks /moorage/v1 with the user's credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from moorage.api.errors import MoorageError
from moorage.app.clock import SystemClock
from moorage.client.credentials import Credentials
from moorage.endpoints.answers import (
    AttemptDetails,
    CheckedConfiguration,
    ConfigurationAnswer,
    NodeAnswer,
    NodesAnswer,
    NodeSummary,
    PastConfiguration,
    PastConfigurationText,
    QueueAnswer,
    RecordsAnswer,
    SummaryAnswer,
)
from moorage.endpoints.client import EndpointsClient
from moorage.endpoints.queries import ROOT, NodeQuery, NodesQuery, QueueQuery, RecordsQuery
from moorage.endpoints.v1 import configuration
from moorage.web.source import Explained, Json, NodeContent, PodContent, Question
from moorage.web.sources.live_copy import LiveCopy
from moorage.web.sources.node_columns import UsageColumns, label_columns

FRESH_SECONDS, NODES_FRESH_SECONDS = 0.4, 4.0
"""Several browsers that ask at about the same time share one answer; listing all nodes is expensive."""
MAX_NODES = 10_000
PER_PAGE = 1000
ATTEMPTS = 50
"""The number of attempts of one pod, the newest."""
MAX_NAMES = 5000
"""Names of nodes that one plugin rejected in an attempt."""
CONFIGURATION = f"{ROOT}/configuration"
T = TypeVar("T")


class ServerSource:
    refresh_seconds = 1.0

    def __init__(self, given: Credentials, *, usage: UsageColumns | None = None, read_only: bool = False) -> None:
        self.read_only = read_only
        self.title = f"{f'context {given.context}, ' if given.context else ''}scheduler at {given.server}"
        self._given = given
        self._usage = usage
        self._clock = SystemClock()
        self._client: EndpointsClient | None = None
        self._copy: LiveCopy | None = None
        self._shared_answers: dict[tuple[str, str], tuple[float, asyncio.Task[Any]]] = {}
        """Request → when its answer expires, and the answer."""

    async def summary(self) -> SummaryAnswer:
        return await self._ask(f"{ROOT}/summary", SummaryAnswer)

    async def queue(self, query: QueueQuery) -> QueueAnswer:
        return await self._ask(f"{ROOT}/queue", QueueAnswer, query)

    async def pod(self, key: str) -> PodContent:
        query = RecordsQuery(key, limit=ATTEMPTS, nodes=0)
        answer = await self._ask(f"{ROOT}/records", RecordsAnswer, query)
        return PodContent(None, answer.waiting, answer.records, answer.exists, answer.node)

    async def attempt(self, key: str, sequence: int) -> AttemptDetails:
        query = RecordsQuery(key, before=sequence + 1, limit=1, nodes=MAX_NAMES)
        answer = await self._ask(f"{ROOT}/records", RecordsAnswer, query)
        if not answer.records or answer.records[-1].sequence != sequence:
            raise MoorageError(f"Attempt {sequence} of the pod {key} is no longer kept. Choose another one.")
        return answer.records[-1]

    async def what_if(self, question: Question) -> Json:
        """Try a change with the scheduler's own configuration, on the objects that it sees now."""
        return await self._copied().what_if(question)

    async def upgrade(self, to: str) -> Json:
        """Preview an upgrade with the scheduler's own configuration, on the objects that it sees now."""
        return await self._copied().upgrade(to)

    async def explained(self, key: str, since: float) -> Explained:
        return await self._copied().explain(key, since)

    def _copied(self) -> LiveCopy:
        self._copy = self._copy or LiveCopy(self._given)
        return self._copy

    async def nodes(self) -> Json:
        return await self._shared(("nodes", ""), NODES_FRESH_SECONDS, self._columns)

    async def _columns(self) -> Json:
        found = await self._all_nodes()
        resources = dict.fromkeys(name for node in found for name in node.allocatable)
        requested = [{**node.requested, "pods": node.pod_count} for node in found]
        columns = {
            "names": [node.name for node in found],
            "unschedulable": [node.unschedulable for node in found],
            "deleting": [node.deleting_since is not None for node in found],
            "labels": label_columns([node.labels for node in found]),
            "amounts": {
                name: {
                    "allocatable": [node.allocatable.get(name, 0) for node in found],
                    "requested": [each.get(name, 0) for each in requested],
                }
                for name in resources
            },
        }
        return columns if self._usage is None else await self._usage.add_to(columns)

    async def _all_nodes(self) -> list[NodeSummary]:
        found: list[NodeSummary] = []
        after: str | None = ""
        while after is not None and len(found) < MAX_NODES:
            answer = await self._ask(f"{ROOT}/nodes", NodesAnswer, NodesQuery(limit=PER_PAGE, after=after))
            found += answer.nodes
            after = answer.after
        return found

    async def node(self, name: str) -> NodeContent:
        path = f"{ROOT}/nodes/{quote(name, safe='')}"
        return NodeContent(await self._ask(path, NodeAnswer, NodeQuery(limit=PER_PAGE)))

    async def configuration(self) -> ConfigurationAnswer:
        found = await self._ask(CONFIGURATION, ConfigurationAnswer)
        if not found.error:
            return found
        warning = f"Reload failed; this is still the previous configuration: {found.error}"
        return msgspec.structs.replace(found, warnings=[warning, *found.warnings])

    async def check(self, text: str) -> CheckedConfiguration:
        """Let the scheduler check it, which knows its plugins; check it here if it accepts no configuration."""
        if self.read_only or not (await self._ask(CONFIGURATION, ConfigurationAnswer)).writable:
            return await asyncio.to_thread(configuration.check, text)
        return await self._endpoints().send(CONFIGURATION, CheckedConfiguration, text, dryRun="All")

    async def past_configuration(self, number: int) -> str:
        return (await self._ask(f"{CONFIGURATION}/{number}", PastConfigurationText)).text

    async def apply(self, text: str) -> PastConfiguration:
        self._may_change()
        answer = await self._endpoints().send(CONFIGURATION, PastConfiguration, text)
        self._shared_answers.clear()  # they belong to the previous configuration
        return answer

    def _may_change(self) -> None:
        if self.read_only:
            raise MoorageError("These pages are read-only. Start `moorage ui` without --read-only to change it.")

    def _endpoints(self) -> EndpointsClient:
        """Return the client, which must be created on the loop that uses it."""
        self._client = self._client or EndpointsClient(self._given)
        return self._client

    async def _ask(self, path: str, kind: type[T], query: msgspec.Struct | None = None) -> T:
        async def answer() -> T:
            return await self._endpoints().ask(path, kind, query)

        return await self._shared((path, repr(query)), FRESH_SECONDS, answer)

    async def _shared(self, key: tuple[str, str], seconds: float, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Share one answer among all who ask within these seconds; failures are not shared."""
        now = self._clock.now()
        self._shared_answers = {k: kept for k, kept in self._shared_answers.items() if kept[0] > now}
        if key not in self._shared_answers:
            self._shared_answers[key] = (now + seconds, asyncio.ensure_future(ask()))
        try:
            found: T = await asyncio.shield(self._shared_answers[key][1])
        except MoorageError:
            self._shared_answers.pop(key, None)
            raise
        return found
