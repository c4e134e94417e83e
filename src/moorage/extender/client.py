"""HttpExtender: one extender behind the port of `framework.ports`, with one POST per call.

Every failure is an ExtenderError with the URL, except a bind that was sent and not confirmed: that is OutcomeUnknown,
because the pod may be bound, and only the API server knows. A call is repeated once if the server had closed the
kept-alive connection; a bind never is. The transport makes connections and forbids redirects, proxies, cookies and
decompression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from moorage.api.errors import KeptConnectionLost, NotSent, OutcomeUnknown, TransportError
from moorage.api.pod import Pod
from moorage.client.transport import HttpRequest, Transport
from moorage.config import Extender
from moorage.extender import wire
from moorage.framework.nodes import Nodes
from moorage.framework.ports import Clock, ExtenderError, ExtenderFilterResult, Victims
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

ANSWER_BYTES = 8 * 1024 * 1024
ANSWER_BYTES_PER_NODE = 256
"""Bytes that are read of an answer at most, and how many more for each node that was sent. Twice the request
comes on top: whole nodes come back, perhaps with more fields."""
JSON = "application/json"

T = TypeVar("T")
Verb = Literal["filter", "prioritize", "preempt", "bind"]


class HttpExtender:
    """Implements `framework.ports.Extender`."""

    def __init__(
        self, config: Extender, transport: Transport, clock: Clock, metrics: SchedulerMetrics | None = None
    ) -> None:
        self.name = config.url_prefix.rstrip("/")
        self.weight = config.weight
        self.ignorable = config.ignorable
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.preempts = bool(config.preempt_verb)
        self.binds = bool(config.bind_verb)
        self._verbs: dict[Verb, str] = {
            "filter": config.filter_verb,
            "prioritize": config.prioritize_verb,
            "preempt": config.preempt_verb,
            "bind": config.bind_verb,
        }
        """What is asked for → the last part of its URL."""
        self._timeout = config.http_timeout
        self._names_only = config.node_cache_capable
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._transport = transport
        self._clock = clock
        self._metrics = metrics
        self._warnings = logs.Throttle(clock.now)

    async def close(self) -> None:
        await self._transport.close()

    def is_interested(self, pod: Pod) -> bool:
        """Return whether a container requests or limits one of the managed resources; always True without any."""
        return not self._managed or any(
            not self._managed.isdisjoint(amounts)
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for amounts in (container.resources.requests, container.resources.limits)
        )

    def warn(self, error: Exception) -> None:
        if self._warnings.admits():
            _log.warning(
                "Skipping extender that returned an error",
                extender=self.name,
                err=str(error),
                suppressed=self._warnings.take_suppressed(),
            )

    async def filter(self, pod: Pod, nodes: Nodes) -> ExtenderFilterResult:
        body = wire.node_args(pod, nodes, names_only=self._names_only)
        return await self._ask(
            "filter",
            pod,
            body,
            len(nodes),
            lambda answer: wire.filter_result(answer, nodes.names, names_only=self._names_only),
        )

    async def prioritize(self, pod: Pod, nodes: Nodes) -> Mapping[str, int]:
        body = wire.node_args(pod, nodes, names_only=self._names_only)
        return await self._ask("prioritize", pod, body, len(nodes), wire.host_priorities)

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        body = wire.preemption_args(pod, victims, names_only=self._names_only)
        return await self._ask(
            "preempt", pod, body, len(victims), lambda answer: wire.preemption_result(answer, victims)
        )

    async def bind(self, pod: Pod, node_name: str) -> None:
        body = wire.binding_args(pod, node_name)
        try:
            await self._ask("bind", pod, body, 1, wire.check_binding_result)
        except ExtenderError as error:
            if isinstance(error.__cause__, NotSent):
                raise
            raise OutcomeUnknown(str(error)) from error

    async def _ask(self, verb: Verb, pod: Pod, body: bytes, nodes: int, read: Callable[[bytes], T]) -> T:
        """Send one request; every failure is an ExtenderError with the URL."""
        began, outcome = self._clock.now(), "cancelled"
        try:
            most = ANSWER_BYTES + ANSWER_BYTES_PER_NODE * nodes + 2 * len(body)
            found = read(await self._exchange(verb, body, most))
            outcome = "success"
            return found
        except (TransportError, ExtenderError) as error:
            outcome = _outcome(error)
            url = f"{self.name}/{self._verbs[verb]}"
            raise ExtenderError(f"failed {verb} with extender at URL {url}: {error}") from error
        finally:
            self._observe(verb, pod, nodes, self._clock.now() - began, outcome)

    async def _exchange(self, verb: Verb, body: bytes, most: int) -> bytes:
        began = self._clock.now()
        try:
            return await self._send(verb, body, most, self._timeout)
        except KeptConnectionLost:
            remaining = self._timeout - (self._clock.now() - began)
            if verb == "bind" or remaining <= 0:
                raise
            return await self._send(verb, body, most, remaining)

    async def _send(self, verb: Verb, body: bytes, most: int, timeout: float) -> bytes:
        headers = {"Content-Type": JSON, "Accept": JSON, "Accept-Encoding": "identity"}
        path = f"/{self._verbs[verb]}"
        request = HttpRequest("POST", path, headers=headers, body=body, timeout=timeout)
        async with self._transport.send(request) as response:
            if response.status != 200:
                raise ExtenderError(f"code {response.status}")
            kind = response.headers.get("Content-Type", "")
            if kind.partition(";")[0].strip().lower() != JSON:
                raise ExtenderError(f'the answer has the Content-Type "{wire.shown(kind)}", not {JSON}')
            if coding := response.headers.get("Content-Encoding", ""):
                raise ExtenderError(f'the answer is encoded as "{wire.shown(coding)}", which was not asked for')
            return await response.read(most)

    def _observe(self, verb: Verb, pod: Pod, nodes: int, seconds: float, outcome: str) -> None:
        _log.info(
            5,
            "Asked extender",
            extender=self.name,
            verb=verb,
            pod=pod,
            nodes=nodes,
            seconds=round(seconds, 6),
            outcome=outcome,
        )
        if self._metrics is not None:
            self._metrics.extender_requests.inc(self.name, verb, outcome)
            self._metrics.extender_seconds.observe(seconds, self.name, verb)


def _outcome(error: Exception) -> str:
    """Return the label of the metric."""
    if isinstance(error, NotSent):
        return "not_sent"
    return "no_answer" if isinstance(error, OutcomeUnknown) else "bad_answer"
