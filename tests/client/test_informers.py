"""The set of informers."""

import asyncio
from collections import deque
from random import Random
from typing import Any

from moorage.api.errors import NotSent
from moorage.api.resources import NODES, PODS
from moorage.client.informers import InformerSet
from moorage.framework.ports import Change
from moorage.sim import loop
from moorage.sim.loop import VirtualClock
from tests.client.scripted import HOLD, Page, Script, Stream, pod


class Cluster:
    """Passes each resource's calls to its own script."""

    def __init__(self, **scripts: list[Any]) -> None:
        self.scripts = {plural: Script(deque(answers)) for plural, answers in scripts.items()}

    async def list(self, resource: Any, **options: Any) -> Any:
        return await self.scripts[resource.plural].list(resource, **options)

    def watch(self, resource: Any, **options: Any) -> Any:
        return self.scripts[resource.plural].watch(resource, **options)


def make(cluster: Any, *resources: Any) -> tuple[InformerSet, list[Change]]:
    changes: list[Change] = []
    clock, random = VirtualClock(), Random(1)
    informers = InformerSet(cluster, changes.append, clock, random, resources, use_streaming_list=False)
    return informers, changes


def test_synced_only_when_every_resource_is():
    async def main() -> None:
        away = [NotSent("refused")] * 3
        informers, changes = make(Cluster(pods=[Page([pod("a")])], nodes=[*away, Page(version="4")]), PODS, NODES)
        running = asyncio.create_task(informers.run())
        await asyncio.sleep(1.0)
        assert [status.synced for status in informers.status()] == [True, False]
        assert "refused" in informers.status()[1].last_error
        await informers.wait_synced()
        assert asyncio.get_running_loop().time() > 5.0
        assert [(status.version, status.count) for status in informers.status()] == [("10", 1), ("4", 0)]
        await informers.stop()
        await running
        assert len(changes) == 1

    loop.run(main())


def test_pods_that_have_ended_are_not_asked_for():
    async def main() -> None:
        cluster = Cluster(pods=[Page(), Stream(HOLD)], nodes=[])
        informers, _ = make(cluster, PODS, NODES)
        running = asyncio.create_task(informers.run())
        await informers.wait_synced()
        await asyncio.sleep(1.0)
        asked = {call.selector for call in cluster.scripts["pods"].calls}
        assert asked == {"status.phase!=Succeeded,status.phase!=Failed"}
        assert {call.selector for call in cluster.scripts["nodes"].calls} == {""}
        await informers.stop()
        await running

    loop.run(main())


def test_a_resource_named_twice_gets_one_informer():
    async def main() -> None:
        informers, _ = make(Cluster(pods=[]), PODS, PODS)
        assert list(informers.informers) == [PODS]

    loop.run(main())


def test_stop_leaves_no_task_behind():
    async def main() -> None:
        informers, _ = make(Cluster(pods=[], nodes=[NotSent("refused")]), PODS, NODES)
        running = asyncio.create_task(informers.run())
        await asyncio.sleep(0.1)
        await informers.stop()
        await running
        assert asyncio.all_tasks() == {asyncio.current_task()}

    loop.run(main())
