"""The Scheduler facade: what it takes as configuration, how it starts and stops, and what it refuses."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

import moorage
from moorage.api.errors import MoorageError
from moorage.api.resources import NODES, PODS
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration, configure
from moorage.app.scheduler import Scheduler
from moorage.config import ConfigError
from moorage.framework import FilterPlugin
from moorage.sim.loop import run
from moorage.store import faults
from moorage.store.faults import Fault, Faults
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.testing import Cluster, VirtualClock, VirtualLoop, make_node, make_pod

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NAMED = HEAD + "profiles: [{schedulerName: mine}]"


class Mine(FilterPlugin):
    name = "mine"

    def filter(self, state, pod, node):
        return None


def client_of(loop: VirtualLoop) -> LocalClient:
    clock = VirtualClock(loop)
    return LocalClient(Store(clock.wall, random.Random(0)), clock, Faults())


def build(**options: Any) -> Scheduler:
    loop = VirtualLoop(0)
    try:
        return Scheduler(client_of(loop), clock=VirtualClock(loop), discover=False, instance="t", **options)
    finally:
        loop.close()


def test_the_package_exports_the_facade():
    assert moorage.Scheduler is Scheduler


def test_configurations_of_every_kind(tmp_path):
    path = tmp_path / "scheduler.yaml"
    path.write_text(NAMED)
    given: list[tuple[Any, str]] = [
        (None, "default-scheduler"),
        (NAMED, "mine"),
        (path, "mine"),
        (configure(NAMED, discover=False), "mine"),
    ]
    for config, name in given:
        assert list(build(config=config).engine.profiles) == [name]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param(Path("/no/such/file.yaml"), "cannot be read", id="no file"),
        pytest.param("a: [", "<config>", id="no YAML"),
        pytest.param(HEAD + "profils: []", "profils", id="an unknown field"),
        pytest.param(
            HEAD + "profiles: [{plugins: {filter: {enabled: [{name: Mine}]}}}]", "mine", id="a name almost right"
        ),
        pytest.param(
            HEAD + "profiles: [{plugins: {filter: {enabled: [{name: 'nowhere:X'}]}}}]", "nowhere:X", id="no module"
        ),
    ],
)
def test_mistakes_are_config_errors_that_say_where(config, message):
    with pytest.raises(ConfigError, match=message):
        build(config=config, plugins=[Mine])


def test_an_extender_that_cannot_be_reached_by_its_address_is_refused():
    with pytest.raises(MoorageError, match=r"extenders\[0\]: '/x' is not the address of a server"):
        build(config=HEAD + "extenders: [{urlPrefix: '/x', filterVerb: f}]")


def test_a_plugin_handed_in_is_known_by_its_name():
    made = build(config=HEAD + "profiles: [{plugins: {filter: {enabled: [{name: mine}]}}}]", plugins=[Mine])
    assert isinstance(made.configuration, Configuration)
    assert "mine" in made.engine.profiles["default-scheduler"].plugins


def test_nothing_is_scheduled_before_everything_is_known():
    """Pods first, nodes late: the first attempt must not see an empty cluster."""
    with Cluster(start=False) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.faults.add(Fault(faults.delay(30), verb="list", resource=NODES))
        cluster.faults.add(Fault(faults.delay(30), verb="watch", resource=NODES))
        cluster.start()
        cluster.settle()
        assert cluster.node_of("p") == "a"
        assert cluster.record("p").attempt == 1
        assert cluster.events("p", "FailedScheduling") == []


def test_it_waits_for_an_api_server_that_is_away():
    with Cluster(start=False) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        fault = cluster.faults.add(Fault(faults.not_sent(), times=None))
        starting = cluster.loop.create_task(cluster.scheduler.start())
        cluster.settle(120)
        assert not starting.done()
        assert fault.hits > 3
        cluster.faults.clear()
        cluster.settle(60)
        assert starting.done()
        assert cluster.node_of("p") == "a"


def test_a_new_process_takes_over_what_the_old_one_left():
    with Cluster() as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()
        cluster.restart()
        cluster.add(make_pod("q"))
        cluster.settle()
        assert cluster.bound() == {"default/p": "a", "default/q": "a"}
        assert {pod.name for pod in cluster.scheduler.engine.cache.pods_on("a")} == {"p", "q"}
        assert len(cluster.faults.calls_of("bind")) == 2
        cluster.validate()


def test_stopping_twice_and_stopping_before_start_are_harmless():
    with Cluster(start=False) as cluster:
        cluster.run(cluster.scheduler.stop())
    with Cluster() as cluster:
        cluster.run(cluster.scheduler.stop())
        cluster.run(cluster.scheduler.stop())
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(5)
        assert cluster.node_of("p") == ""


def test_it_is_a_context_manager_on_an_ordinary_event_loop():
    async def story() -> str:
        clock = SystemClock()
        client = LocalClient(Store(clock.wall, random.Random(0)), clock)
        await client.create(NODES, make_node("a"))
        async with Scheduler(client, discover=False, instance="t"):
            await client.create(PODS, make_pod("p"))
            for _ in range(500):
                pod = await client.get(PODS, "p", "default")
                if pod.spec.node_name:
                    return str(pod.spec.node_name)
                await asyncio.sleep(0.01)
        return ""

    assert asyncio.run(story()) == "a"


def test_it_starts_in_a_cluster_with_more_objects_than_may_wait_for_it(monkeypatch):
    monkeypatch.setattr("moorage.client.reflector.BACKLOG", 5)
    monkeypatch.setattr("moorage.client.reflector.SLICE", 2)

    async def main() -> int:
        clock = VirtualClock()
        store = Store(clock.wall, random.Random(0))
        for number in range(20):
            node = {"metadata": {"name": f"n{number}"}, "status": {"allocatable": {"pods": "9"}}}
            store.load(NODES, node)
        for number in range(40):
            meta = {"name": f"p{number}", "namespace": "default"}
            store.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "c"}]}})
        client = LocalClient(store, clock, Faults())
        options: dict[str, Any] = {"clock": clock, "random": random.Random(0), "discover": False}
        async with Scheduler(client, streaming_lists=True, instance="t", **options):
            await clock.sleep(5.0)
        return sum("nodeName" in stored.raw["spec"] for stored in store.list(PODS).items)

    assert run(main(), timeout_virtual=60.0) == 40
