"""What the cluster of the kit takes, deletes and refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from moorage.api.pod import Pod
from moorage.api.resources import PODS, Unstructured, custom
from moorage.config import ConfigError
from moorage.framework import Access, CycleState, FilterPlugin, Nodes, Plugin, PreFilterPlugin, Status
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import config

QUOTAS = custom("example.com", "v1", "quotas", "Quota")
POOLS = custom("example.com", "v1", "pools", "Pool", namespaced=False)


class Quotas(PreFilterPlugin):
    """A pod waits for a quota in its namespace, and for the pool that the quota names."""

    name = "Quotas"
    needs = (Access(QUOTAS), Access(POOLS, ("list", "watch")))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        for quota in self.handle.lister(QUOTAS).list(pod.namespace):
            if self.handle.lister(POOLS).get(quota.get("spec", "pool", default="")) is not None:
                return None
        return Status.unschedulable("no quota")


def quota(**metadata: str) -> dict[str, Any]:
    spec = {"pool": "red"}
    return {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "q"} | metadata, "spec": spec}


POOL = {"apiVersion": "example.com/v1", "kind": "Pool", "metadata": {"name": "red"}}


def cluster_with(*plugins: type[Plugin]) -> Cluster:
    names = [plugin.name for plugin in plugins]
    return Cluster(config=config("NodeResourcesFit", *names), plugins=plugins)


@pytest.mark.parametrize("form", [dict, Unstructured])
def test_objects_of_custom_kinds_are_added_and_deleted(form: Callable[[dict[str, Any]], Any]) -> None:
    with cluster_with(Quotas) as cluster:
        cluster.add(make_node("a"), make_pod("p"), make_pod("late"), form(POOL))
        cluster.settle()
        assert cluster.pending() == ["default/late", "default/p"]
        cluster.add([form(quota())], form(quota(namespace="other")))
        cluster.settle(20)
        assert cluster.pending() == []
        cluster.delete(form(quota()))
        cluster.add(make_pod("q"))
        cluster.settle()
        assert cluster.pending() == ["default/q"]


def test_the_cluster_keeps_nothing_of_the_dictionary_that_it_was_given() -> None:
    given = quota()
    with cluster_with(Quotas) as cluster:
        cluster.add(given, POOL, make_node("a"))
        given["spec"]["pool"] = "none"
        cluster.settle()
        cluster.add(make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a"
    assert given == quota() | {"spec": {"pool": "none"}}


def test_a_kind_that_no_plugin_declares_is_refused_with_what_to_declare() -> None:
    with cluster_with() as cluster, pytest.raises(AssertionError) as caught:
        cluster.add(quota())
    assert str(caught.value) == (
        "no plugin of this cluster declares kind 'Quota' of apiVersion 'example.com/v1': add "
        'Access(custom("example.com", "v1", "<plural>", "Quota")) to the `needs` of the plugin that uses it, '
        "and enable that plugin"
    )


def test_an_object_without_a_name_is_refused() -> None:
    with cluster_with() as cluster, pytest.raises(AssertionError, match=r"kind 'Pod' has no metadata.name"):
        cluster.add({"apiVersion": "v1", "kind": "Pod", "spec": {}})


def test_deleting_a_bound_pod_ends_it_and_frees_its_node() -> None:
    with cluster_with() as cluster:
        cluster.add(make_node("a", cpu="1"), make_pod("old", cpu="1"))
        cluster.settle()
        cluster.add(make_pod("next", cpu="1"))
        cluster.settle()
        assert cluster.pending() == ["default/next"]
        cluster.delete(make_pod("old"))
        cluster.settle(2)
        assert cluster.pod("old") is None
        assert cluster.node_of("next") == "a"


def test_a_pod_that_is_deleted_with_a_grace_period_holds_its_node_until_it_is_deleted_again() -> None:
    with cluster_with() as cluster:
        pod = make_pod("p", node="a", termination_grace_period_seconds=30)
        cluster.add(make_node("a"), pod)
        cluster.delete(pod, grace_period=None)
        cluster.settle()
        assert cluster.store.get(PODS, "p", "default").raw["metadata"]["deletionGracePeriodSeconds"] == 30
        cluster.delete(pod)
        assert cluster.pod("p") is None


async def by_aiohttp(host: str) -> None:
    async with aiohttp.ClientSession() as session:
        await session.get(f"http://{host}/load")


REQUESTS: dict[str, Callable[[], Awaitable[Any]]] = {
    "aiohttp, by address": lambda: by_aiohttp("127.0.0.1:1"),
    "aiohttp, by name": lambda: by_aiohttp("metrics.example"),
    "a stream": lambda: asyncio.open_connection("127.0.0.1", 1),
    "a thread": lambda: asyncio.to_thread(print),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_request_in_virtual_time_fails_with_what_to_do_instead(request_: Callable[[], Awaitable[Any]]) -> None:
    class Polls(FilterPlugin):
        name = "Polls"

        def filter(self, state: CycleState, pod: Pod, node: object) -> None:
            pass

        async def run(self) -> None:
            await request_()
            await self.handle.clock.sleep(3600)

    cluster = cluster_with(Polls)
    with pytest.raises(
        AssertionError, match=r"background work of 'Polls' failed: .* override it to return the response"
    ):
        cluster.settle(0.5)
    cluster.close()


@pytest.mark.parametrize(
    ("plugin", "pod", "node", "problem"),
    [
        ("PrioritySort", "p", "n", "profile default-scheduler has no plugin PrioritySort with `explain`"),
        ("Absent", "p", "n", "profile default-scheduler has no plugin Absent with `explain`"),
        ("NodePorts", "q", "n", "pod default/q does not exist"),
        ("NodePorts", "p", "m", "node m does not exist"),
    ],
)
def test_details_say_what_there_is_none_of(plugin, pod, node, problem):
    with Cluster() as cluster:
        cluster.add(make_node("n"), make_pod("p", cpu="9"))
        cluster.settle()
        with pytest.raises(AssertionError, match=problem):
            cluster.details(plugin, pod, node)
        assert [found.missing for found in cluster.details("NodeResourcesFit", "p", "n")] == [5000]


def test_remedies_are_those_of_the_running_configuration() -> None:
    with Cluster() as cluster:
        cluster.add(make_node("a", taints=["gpu=true:NoSchedule"]))
        cluster.settle()
        cluster.add(make_pod("p"))
        cluster.settle()
        assert cluster.remedies("p")[0] == "Tolerate taint gpu=true:NoSchedule"


HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
AS_MAPPING = {**HEADER, "profiles": [{"schedulerName": "mine"}]}


def test_a_configuration_may_be_a_mapping_with_the_structure_of_the_file():
    with Cluster(config=AS_MAPPING) as cluster:
        assert list(cluster.scheduler.engine.profiles) == ["mine"]
        cluster.reload({**HEADER, "profiles": [{"schedulerName": "other"}]})
        assert list(cluster.scheduler.engine.profiles) == ["other"]
        cluster.restart()
        assert list(cluster.scheduler.engine.profiles) == ["mine"]


def test_the_mistakes_of_a_mapping_are_named_as_those_of_a_file():
    with pytest.raises(ConfigError, match=r"profiles\[0\]\.nonsense"):
        Cluster(config={**HEADER, "profiles": [{"nonsense": 1}]})


@pytest.mark.parametrize(("given", "named"), [([], "list"), (b"{}", "bytes"), (5, "int"), ({"a": object()}, "dict")])
def test_a_configuration_of_another_type_is_refused_with_what_is_accepted(given, named):
    with pytest.raises(TypeError) as caught:
        Cluster(config=given)
    message = str(caught.value)
    assert named in message
    assert "a Path, a text in YAML or JSON, a mapping with the structure of the file" in message
