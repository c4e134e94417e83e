"""An API server that answers list and watch calls from a script, and an informer run against it."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from moorage.api.errors import from_status
from moorage.api.meta import ApiStatus, ObjectMeta
from moorage.api.pod import Pod
from moorage.api.resources import PODS, Resource
from moorage.client.informers import Informer
from moorage.framework.ports import ADDED, BOOKMARK, DELETED, MODIFIED, Change, Malformed, ObjectList, WatchEvent
from moorage.sim import loop
from moorage.sim.loop import VirtualClock

HOLD = math.inf
"""A step of a stream: stays open and says nothing more."""


@dataclass(frozen=True)
class Page:
    """An answer to a list call."""

    items: Sequence[Any] = ()
    version: str = "10"
    next_page: str = ""
    malformed: Sequence[Malformed] = ()
    seconds: float = 0.0
    """How long the answer takes."""


class Stream:
    """An answer to a watch call: events, seconds to wait, or an error; then the server ends it."""

    def __init__(self, *steps: Any) -> None:
        self.steps = steps


@dataclass(frozen=True)
class Call:
    at: float
    verb: str
    version: str
    limit: int = 0
    page: str = ""
    initial: bool = False
    selector: str = ""


Answer = Page | Stream | Exception


@dataclass
class Script:
    """Hands out the answers in order; once they are used up, lists are empty and watches stay open."""

    answers: deque[Answer]
    calls: list[Call] = field(default_factory=list)
    out_of_step: str = ""
    """A call of another verb than the script foresaw; informers survive it, tests should not."""

    async def list(
        self, resource: Resource, *, resource_version: str, limit: int, page: str, field_selector: str, **_: Any
    ) -> ObjectList:
        self._note("list", resource_version, limit, page, selector=field_selector)
        answer = self._next(Page())
        assert isinstance(answer, Page)
        await asyncio.sleep(answer.seconds)
        return ObjectList(answer.items, answer.version, answer.next_page, answer.malformed)

    async def watch(
        self, resource: Resource, *, resource_version: str, send_initial_events: bool, field_selector: str, **_: Any
    ) -> AsyncIterator[WatchEvent]:
        self._note("watch", resource_version, initial=send_initial_events, selector=field_selector)
        answer = self._next(Stream(HOLD))
        assert isinstance(answer, Stream)
        for step in answer.steps:
            if isinstance(step, Exception):
                raise step
            if step == HOLD:
                await asyncio.get_running_loop().create_future()
            elif isinstance(step, int | float):
                await asyncio.sleep(step)
            else:
                yield step

    def _next(self, otherwise: Page | Stream) -> Page | Stream:
        answer = self.answers.popleft() if self.answers else otherwise
        if isinstance(answer, Exception):
            raise answer
        if type(answer) is not type(otherwise):
            self.out_of_step = f"{self.calls[-1]} met {type(answer).__name__}"
        return answer

    def _note(self, *args: Any, **kwargs: Any) -> None:
        self.calls.append(Call(asyncio.get_running_loop().time(), *args, **kwargs))


@dataclass
class Followed:
    """What came of a run."""

    informer: Informer
    changes: list[Change]
    script: Script

    @property
    def deliveries(self) -> list[str]:
        """+key added, ~key updated, -key deleted."""
        return [tell(change) for change in self.changes]

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Verb and version of every call."""
        return [(call.verb, call.version) for call in self.script.calls]

    def pauses(self) -> list[float]:
        times = [call.at for call in self.script.calls]
        return [later - earlier for earlier, later in pairwise(times)]


def tell(change: Change) -> str:
    if change.old is None:
        return f"+{change.new.name}"
    return f"-{change.old.name}" if change.new is None else f"~{change.new.name}"


def follow(
    *answers: Answer,
    seconds: float = 60.0,
    resource: Resource = PODS,
    receive: Callable[[Change], None] = lambda change: None,
    meanwhile: tuple[float, Callable[[Informer], object]] | None = None,
    **options: Any,
) -> Followed:
    """Runs an informer against the script for so many virtual seconds. `receive` may refuse a change. `meanwhile` is
    called after its number of seconds."""
    script = Script(deque(answers))

    async def main() -> Followed:
        changes: list[Change] = []
        client: Any = script

        def deliver(change: Change) -> None:
            receive(change)
            changes.append(change)

        informer = Informer(client, resource, deliver, clock=VirtualClock(), random=Random(7), **options)
        task = asyncio.create_task(informer.run())
        if meanwhile is not None:
            asyncio.get_running_loop().call_later(meanwhile[0], meanwhile[1], informer)
        await asyncio.sleep(seconds)
        assert not task.done(), "the informer gave up"
        assert not script.out_of_step
        return Followed(informer, changes, script)

    return loop.run(main())


def pod(name: str, version: str = "1", uid: str = "") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=uid or f"uid-{name}", resource_version=version))


def added(name: str, version: str, uid: str = "") -> WatchEvent:
    return WatchEvent(ADDED, pod(name, version, uid), version)


def modified(name: str, version: str, uid: str = "") -> WatchEvent:
    return WatchEvent(MODIFIED, pod(name, version, uid), version)


def deleted(name: str, version: str, uid: str = "") -> WatchEvent:
    return WatchEvent(DELETED, pod(name, version, uid), version)


def bookmark(version: str, end: bool = False) -> WatchEvent:
    return WatchEvent(BOOKMARK, None, version, initial_events_end=end)


def error(code: int, reason: str = "", message: str = "", retry_after: float | None = None) -> Exception:
    return from_status(ApiStatus(code=code, reason=reason, message=message), retry_after)


GONE = error(410, "Expired", "too old resource version")
TOO_LARGE = error(504, "Timeout", "Too large resource version: 99, current: 7")
