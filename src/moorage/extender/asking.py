"""Ask extenders from a question or a simulation: filter and prioritize only, never preempt or bind.

An extender is a server of its own, so a call takes real time even where the scheduler runs in virtual time. The
requests run on the event loop of a thread, and the caller blocks until the answer is there, for at most twice the
httpTimeout and a second. An extender that fails several times in a row is not called again: its last failure is its
answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from moorage.api.pod import Pod
from moorage.config import Extender
from moorage.extender.client import HttpExtender
from moorage.extender.connecting import make_extenders
from moorage.framework.nodes import Nodes
from moorage.framework.ports import Clock, ExtenderError, ExtenderFilterResult, Victims

T = TypeVar("T")

MAX_FAILURES = 3
"""Failures in a row after which an extender is not called any more."""
GRACE_SECONDS = 1.0


class AskedExtender:
    """Implements `framework.ports.Extender` by blocking calls."""

    preempts = False
    binds = False

    def __init__(self, inner: HttpExtender, timeout: float, loop: asyncio.AbstractEventLoop) -> None:
        self.name, self.weight, self.ignorable = inner.name, inner.weight, inner.ignorable
        self.filters, self.prioritizes = inner.filters, inner.prioritizes
        self.problem = ""
        """The last failure, as the end of a sentence; empty if every call succeeded."""
        self._inner = inner
        self._seconds = 2 * timeout + GRACE_SECONDS
        self._loop = loop
        self._failures = 0

    def is_interested(self, pod: Pod) -> bool:
        return self._inner.is_interested(pod)

    def warn(self, error: Exception) -> None:
        """Keep the failure, which the answer names."""
        self.problem = str(error)

    async def filter(self, pod: Pod, nodes: Nodes) -> ExtenderFilterResult:
        return self._wait_for(self._inner.filter(pod, nodes))

    async def prioritize(self, pod: Pod, nodes: Nodes) -> Mapping[str, int]:
        return self._wait_for(self._inner.prioritize(pod, nodes))

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        raise ExtenderError(f"extender {self.name} is not asked about preemption here")

    async def bind(self, pod: Pod, node_name: str) -> None:
        raise ExtenderError(f"extender {self.name} is not asked to bind here")

    async def close(self) -> None:
        """Do nothing: `asked_extenders` closes the connections, on the loop that they belong to."""

    def _wait_for(self, call: Coroutine[Any, Any, T]) -> T:
        if self._failures >= MAX_FAILURES:
            call.close()
            raise ExtenderError(self.problem)
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            found = future.result(self._seconds)
        except (ExtenderError, TimeoutError) as error:
            future.cancel()
            self._failures += 1
            self.problem = str(error) or f"extender {self.name} did not answer within {self._seconds:g} s"
            raise ExtenderError(self.problem) from error
        self._failures = 0
        return found


@contextmanager
def asked_extenders(configured: Sequence[Extender], clock: Clock) -> Iterator[list[AskedExtender]]:
    """Run a thread for the extenders of a configuration while the block runs; none without extenders."""
    if not configured:
        yield []
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="extenders", daemon=True)
    thread.start()
    made: list[HttpExtender] = []
    try:
        made = make_extenders(configured, clock)
        pairs = zip(made, configured, strict=True)
        yield [AskedExtender(inner, each.http_timeout, loop) for inner, each in pairs]
    finally:
        for inner in made:
            asyncio.run_coroutine_threadsafe(inner.close(), loop).result(GRACE_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(GRACE_SECONDS)
        if not thread.is_alive():
            loop.close()
