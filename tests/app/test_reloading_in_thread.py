"""Plugins of a new configuration are constructed in another thread, while the scheduler goes on."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest

from moorage.api.errors import MoorageError
from moorage.api.resources import NODES, PODS
from moorage.app.clock import SystemClock
from moorage.app.scheduler import Scheduler
from moorage.framework import Access, ScorePlugin
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.testing import make_node, make_pod
from tests.scheduler.kit import config

PATIENCE = 30.0


class Loads(ScorePlugin):
    """Its constructor registers what a Handle offers, and then loads a model until `go` is set."""

    name = "loads"
    needs = (Access(PODS), Access(NODES))
    started: ClassVar[threading.Event]
    go: ClassVar[threading.Event]
    fails: ClassVar[bool] = False
    seen: ClassVar[list[str]]

    def __init__(self, args, handle):
        self.thread = threading.current_thread()
        self.by_all = handle.node_index("all", lambda node: [("all", 1)])
        self.nodes_then = len(handle.nodes)
        self.model = handle.shared("model", self.load)
        handle.on_change(PODS, self.changed)
        handle.spawn(self.work())
        self.started.set()
        assert self.go.wait(PATIENCE)
        if self.fails:
            raise RuntimeError("no model")
        self.ready = True

    def load(self):
        return threading.current_thread().name

    def changed(self, old, new):
        assert self.ready, "the plugin is not complete yet"
        assert threading.current_thread() is threading.main_thread()
        self.seen.append(new.name)

    async def work(self):
        assert self.ready
        self.seen.append("work")

    def score(self, state, pod, node):
        return 1


def loads(**options: Any) -> type[Loads]:
    events = {"started": threading.Event(), "go": threading.Event(), "seen": []}
    return type("Loads", (Loads,), events | options)


class World:
    """A scheduler in real time, with one node."""

    def __init__(self, scheduler: Scheduler, client: LocalClient) -> None:
        self.scheduler, self.client = scheduler, client

    async def schedule(self, name: str) -> None:
        await self.client.create(PODS, make_pod(name))
        async with asyncio.timeout(PATIENCE):
            while not (await self.client.get(PODS, name, "default")).spec.node_name:
                await asyncio.sleep(0.01)

    async def reload_until_blocked(self, plugin: type[Loads]) -> asyncio.Task[None]:
        task = asyncio.create_task(self.scheduler.reload(config("loads"), [plugin]))
        assert await asyncio.to_thread(plugin.started.wait, PATIENCE)
        return task


@asynccontextmanager
async def running() -> AsyncIterator[World]:
    clock = SystemClock()
    client = LocalClient(Store(clock.wall, random.Random(0)), clock)
    await client.create(NODES, make_node("a"))
    made = Scheduler(client, config=config(), clock=clock, discover=False, instance="test", probe_server=False)
    async with made:
        yield World(made, client)


def names(scheduler: Scheduler) -> set[str]:
    return set(scheduler.engine.profiles["default-scheduler"].plugins)


def test_pods_are_scheduled_by_the_old_configuration_while_a_constructor_blocks():
    async def main() -> None:
        plugin = loads()
        async with running() as world:
            task = await world.reload_until_blocked(plugin)
            await world.schedule("meanwhile")
            assert not task.done()
            assert "loads" not in names(world.scheduler)
            assert plugin.seen == [], "callbacks and tasks begin when the plugin is complete"
            plugin.go.set()
            await task
            made: Any = world.scheduler.engine.profiles["default-scheduler"].plugins["loads"]
            assert made.thread is not threading.current_thread()
            assert (made.nodes_then, dict(made.by_all.rows("all"))) == (1, {0: 1})
            assert made.model == made.thread.name, "what takes long does not run on the loop"
            await world.schedule("after")
            assert {"meanwhile", "after", "work"} <= set(plugin.seen)

    asyncio.run(main())


def test_a_constructor_that_fails_in_the_thread_leaves_nothing_behind():
    async def main() -> None:
        plugin = loads(fails=True)
        async with running() as world:
            observers = world.scheduler.engine.cache.table.observers
            before = len(observers.of_nodes)
            task = await world.reload_until_blocked(plugin)
            assert len(observers.of_nodes) == before + 1
            plugin.go.set()
            with pytest.raises(MoorageError, match="no model"):
                await task
            assert len(observers.of_nodes) == before
            await world.schedule("p")
            assert plugin.seen == []

    asyncio.run(main())


def test_a_reload_that_is_cancelled_lets_its_constructor_register_nothing_more():
    async def main() -> None:
        plugin, other = loads(), loads()
        async with running() as world:
            task = await world.reload_until_blocked(plugin)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            other.go.set()
            await world.scheduler.reload(config("loads"), [other])
            plugin.go.set()
            await world.schedule("p")
            assert isinstance(world.scheduler.engine.profiles["default-scheduler"].plugins["loads"], other)
            assert plugin.seen == []

    asyncio.run(main())


def test_the_scheduler_stops_although_a_constructor_never_returns():
    async def main() -> type[Loads]:
        plugin = loads()
        async with running() as world:
            task = await world.reload_until_blocked(plugin)
        task.cancel()
        return plugin

    plugin = asyncio.run(main())
    plugin.go.set()


def test_two_reloads_at_a_time_follow_each_other():
    async def main() -> None:
        plugin, other = loads(), loads()
        other.go.set()
        async with running() as world:
            task = await world.reload_until_blocked(plugin)
            second = asyncio.create_task(world.scheduler.reload(config("loads"), [other]))
            await world.schedule("p")
            assert not other.started.is_set()
            plugin.go.set()
            await asyncio.gather(task, second)
            assert isinstance(world.scheduler.engine.profiles["default-scheduler"].plugins["loads"], other)

    asyncio.run(main())
