"""A running scheduler as a source: what the browsers share, and what is not kept."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from moorage.api.errors import MoorageError
from moorage.client.credentials import Credentials
from moorage.endpoints.answers import NodesAnswer, RecordsAnswer
from moorage.web.sources.server_source import ServerSource
from tests.web.test_attempt_diff import attempt

NODE = {
    "labels": {},
    "taints": [],
    "unschedulable": False,
    "allocatable": {"cpu": 4000},
    "requested": {},
    "podCount": 0,
}


class Scheduler:
    """Endpoints that know two nodes on two pages, and one attempt."""

    def __init__(self, fails: int = 0) -> None:
        self.asked: list[str] = []
        self.fails = fails

    async def ask(self, path: str, kind: type, query: Any) -> Any:
        self.asked.append(path.rpartition("/")[2])
        if len(self.asked) <= self.fails:
            raise MoorageError("the scheduling loop did not answer in time; try again")
        await asyncio.sleep(0)
        if path.endswith("/records"):
            return RecordsAnswer(pod="default/p", waiting=None, records=[attempt(sequence=7)], before=None)
        nodes = [{**NODE, "name": "b" if query.after else "a"}]
        after = None if query.after else "a"
        return msgspec.convert({"total": 2, "nodes": nodes, "after": after}, NodesAnswer)


def source(scheduler: Scheduler) -> ServerSource:
    made = ServerSource(Credentials("https://scheduler", "test"))
    made._client = scheduler  # type: ignore[assignment]
    return made


def test_three_browsers_on_the_cluster_page_ask_the_scheduler_once() -> None:
    scheduler = Scheduler()
    asked = source(scheduler)

    async def browse() -> list[Any]:
        return await asyncio.gather(*(asked.nodes() for _ in range(3)))

    found = asyncio.run(browse())
    assert [each["names"] for each in found] == [["a", "b"]] * 3
    assert scheduler.asked == ["nodes", "nodes"], "its two pages"


def test_a_failure_is_not_kept() -> None:
    asked = source(Scheduler(fails=1))

    async def browse() -> Any:
        with pytest.raises(MoorageError, match="did not answer in time"):
            await asked.nodes()
        return await asked.nodes()

    assert asyncio.run(browse())["names"] == ["a", "b"]


def test_an_attempt_that_is_not_kept_any_more_is_said() -> None:
    asked = source(Scheduler())
    assert asyncio.run(asked.attempt("default/p", 7)).sequence == 7
    with pytest.raises(MoorageError, match="Attempt 9 of the pod default/p is no longer kept"):
        asyncio.run(asked.attempt("default/p", 9))
