"""Informers and the event recorder against the embedded store, with faults at random calls."""

import asyncio
from random import Random
from typing import Any

import pytest

from moorage.api.resources import EVENTS, NODES, PODS, Resource
from moorage.client.events import ApiEventRecorder
from moorage.client.informers import InformerSet
from moorage.framework.ports import Change
from moorage.sim import loop
from moorage.sim.loop import VirtualClock
from moorage.store import faults
from moorage.store.faults import Fault, Faults
from moorage.store.local import LocalClient
from moorage.store.store import Store


class Cluster:
    """A store with a faulty connection to it, and a client that changes pods and nodes."""

    def __init__(self, seed: int) -> None:
        self.clock = VirtualClock()
        self.rng = Random(seed)
        self.store = Store(self.clock.wall, Random(seed), history_limit=20)
        self.faults = Faults(Random(seed))
        self.client = LocalClient(self.store, self.clock, self.faults)

    def disturb(self) -> None:
        for effect in (
            faults.not_sent(),
            faults.gone(),
            faults.server_error(),
            faults.too_many_requests(3),
            faults.cut_watch(2),
            faults.cut_watch(1, error=faults.lost_answer().error),
            faults.delay_events(5.0),
        ):
            self.faults.add(Fault(effect, times=None, chance=0.1))

    def change_something(self) -> None:
        resource, namespace = self.rng.choice([(PODS, "default"), (NODES, "")])
        name = self.rng.choice("abcdef")
        if any(known.name == name for known in listed(self.store, resource)):
            if self.rng.random() < 0.5:
                self.store.delete(resource, name, namespace=namespace, grace_period=0)
            else:
                labels = {"metadata": {"labels": {"turn": str(self.rng.random())}}}
                self.store.patch(resource, name, labels, namespace=namespace)
        else:
            self.store.create(resource, {"metadata": {"name": name, "namespace": namespace}})


def listed(store: Store, resource: Resource) -> list[Any]:
    return [stored.typed for stored in store.list(resource).items]


@pytest.mark.parametrize("streaming", [False, True], ids=["paged lists", "streaming lists"])
@pytest.mark.parametrize("seed", range(8))
def test_views_agree_with_the_store_once_the_faults_are_over(seed, streaming):
    async def main() -> None:
        cluster = Cluster(seed)
        views: dict[Resource, dict[str, str]] = {PODS: {}, NODES: {}}

        def deliver(change: Change) -> None:
            if change.new is None:
                del views[change.resource][change.old.key]
            else:
                views[change.resource][change.new.key] = change.new.resource_version

        informers = InformerSet(
            cluster.client, deliver, cluster.clock, Random(seed), [PODS, NODES], use_streaming_list=streaming
        )
        running = asyncio.create_task(informers.run())
        cluster.disturb()
        for _ in range(300):
            cluster.change_something()
            await asyncio.sleep(cluster.rng.expovariate(1.0))
        cluster.faults.clear()
        await asyncio.sleep(700.0)
        for resource, view in views.items():
            assert view == {obj.key: obj.resource_version for obj in listed(cluster.store, resource)}
        assert all(status.synced and not status.last_error for status in informers.status())
        await informers.stop()
        await running

    loop.run(main(), seed=seed)


def test_events_reach_the_store_as_one_series():
    async def main() -> None:
        cluster = Cluster(0)
        cluster.store.create(PODS, {"metadata": {"name": "web", "namespace": "default"}})
        pod = await cluster.client.get(PODS, "web", "default")
        recorder = ApiEventRecorder(cluster.client, cluster.clock, Random(1), instance="host")
        running = asyncio.create_task(recorder.run())
        for _ in range(3):
            recorder.event(
                pod, type="Warning", reason="FailedScheduling", action="Scheduling", note="0/0 nodes are available"
            )
            await asyncio.sleep(1.0)
        assert await recorder.flush()
        [event] = (await cluster.client.list(EVENTS)).items
        assert event.regarding.uid == pod.uid
        assert event.series.count == 3
        running.cancel()

    loop.run(main())
