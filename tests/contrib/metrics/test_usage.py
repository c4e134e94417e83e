"""NodeUsage: what plugins read, how it grows old, and that one of several plugins fetches."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from prometheus_client import REGISTRY

from moorage.api.times import format_time
from moorage.contrib.metrics import MetricProvider, NodeUsage, Sample, Window
from moorage.contrib.metrics.metrics_server import NEEDS
from moorage.framework import FilterPlugin, ReusablePlugin
from moorage.store.faults import Fault, not_found
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.configs import enabling


class Reader(FilterPlugin, ReusablePlugin):
    """Reads usage and refuses nothing."""

    name = "Reader"
    needs = NEEDS

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.usage = NodeUsage.of(handle, MetricProvider(), ["cpu", "memory"])
        self.ticks = 0

    async def run(self):
        await self.usage.run(self.handle, self.tick)

    @contextmanager
    def tick(self):
        yield
        self.ticks += 1

    def filter(self, state, pod, node):
        return None


def metrics(name, cpu="1", memory="4Gi", timestamp="2026-01-01T00:00:00Z"):
    return {
        "apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": name},
        "timestamp": timestamp, "window": "15s", "usage": {"cpu": cpu, "memory": memory},
    }  # fmt: skip


@pytest.fixture
def cluster():
    with Cluster(config=enabling("Reader"), plugins=[Reader], start=False) as made:
        yield made


def reader(cluster) -> Reader:
    plugin = next(iter(cluster.scheduler.engine.profiles.values())).plugins["Reader"]
    assert isinstance(plugin, Reader)
    return plugin


def test_usage_of_the_metrics_server_is_a_share_of_capacity(cluster):
    allocatable = {"cpu": "3", "memory": "15Gi", "pods": "110"}
    cluster.add(make_node("a", cpu="4", memory="16Gi", allocatable=allocatable), make_node("b"))
    cluster.start()
    cluster.add(metrics("a"), metrics("gone"))
    cluster.settle(20)
    plugin = reader(cluster)
    assert plugin.usage.percent("cpu").at("a") == 25
    assert plugin.usage.used("memory").at("a") == 4 << 30
    np.testing.assert_array_equal(plugin.usage.percent("cpu").of(plugin.handle.nodes), [25, np.nan])
    assert np.isnan(plugin.usage.percent("cpu").at("gone"))
    assert REGISTRY.get_sample_value("moorage_usage_missing_nodes", {"provider": "KubernetesMetricsServer"}) == 1


def test_values_stay_and_grow_old_while_the_source_fails(cluster, caplog):
    cluster.add(make_node("a"))
    cluster.start()
    cluster.add(metrics("a", timestamp=format_time(cluster.clock.wall())))
    cluster.settle(20)
    usage, version = reader(cluster).usage, reader(cluster).usage.version.value
    young = usage.ages().at("a")
    cluster.faults.add(Fault(not_found(), verb="list", resource=NEEDS[0].resource, times=None))
    cluster.settle(60)
    assert usage.percent("cpu").at("a") == 25
    assert usage.ages().at("a") == young + 60
    assert usage.version.value == version + 4  # every tick, so that what is too old is seen
    assert [r.message for r in caplog.records if "Cannot measure node usage" in r.message] != []
    assert len([r for r in caplog.records if "Cannot measure node usage" in r.message]) == 1
    cluster.faults.clear()
    cluster.settle(20)
    assert "Measuring node usage with" in caplog.text


def test_a_node_that_comes_after_the_tick_is_not_known(cluster):
    cluster.add(make_node("a"))
    cluster.start()
    cluster.add(metrics("a"), metrics("b"))
    cluster.settle(20)
    cluster.add(make_node("b"))
    cluster.settle(1)
    plugin = reader(cluster)
    np.testing.assert_array_equal(plugin.usage.percent("cpu").of(plugin.handle.nodes), [25, np.nan])
    cluster.settle(20)
    np.testing.assert_array_equal(plugin.usage.percent("cpu").of(plugin.handle.nodes), [25, 25])


def test_plugins_of_all_profiles_share_one():
    profile = '{"schedulerName": "%s", "plugins": {"multiPoint": {"enabled": [{"name": "Reader"}]}}}'
    start = enabling("Reader").partition("[")[0]
    config = f"{start}[{profile % 'one'}, {profile % 'two'}]}}"
    with Cluster(config=config, plugins=[Reader]) as cluster:
        cluster.add(make_node("a"), metrics("a"))
        cluster.settle(20)
        first, second = (profile.plugins["Reader"] for profile in cluster.scheduler.engine.profiles.values())
        assert isinstance(first, Reader)
        assert isinstance(second, Reader)
        assert first.usage is second.usage
        assert (first.ticks, second.ticks) == (2, 2)


def test_when_the_plugin_that_fetches_ends_another_one_goes_on(cluster):
    cluster.add(make_node("a"))
    cluster.start()
    usage, ticks = NodeUsage(MetricProvider(interval_seconds=10)), {"first": 0, "second": 0}

    def start(name):
        @contextmanager
        def tick():
            yield
            ticks[name] += 1

        return cluster.loop.create_task(usage.run(reader(cluster).handle, tick))

    first, second = start("first"), start("second")
    cluster.settle(15)
    assert ticks == {"first": 2, "second": 2}
    first.cancel()
    cluster.settle(30)
    second.cancel()
    assert ticks["first"] == 2
    assert ticks["second"] > 3


def test_what_pods_requested_when_a_node_was_measured_is_remembered(cluster):
    cluster.add(make_node("a"), make_pod("old", node="a", cpu="1"))
    cluster.start()
    cluster.settle(20)
    usage, handle = reader(cluster).usage, reader(cluster).handle
    moment = cluster.clock.wall()
    cluster.add(make_pod("new", node="a", cpu="2"))
    cluster.settle(20)
    names = ["a"]
    usage.accept(Sample(names, {"cpu": np.array([10.0])}, np.array([moment]), 5.0), handle)
    assert usage.measured_requests("cpu").at("a") == 1000
    usage.accept(Sample(names, {"cpu": np.array([10.0])}, np.array([cluster.clock.wall()])), handle)
    assert usage.measured_requests("cpu").at("a") == 3000


def test_the_longest_window_that_a_plugin_wants_is_kept(cluster):
    cluster.add(make_node("a"))
    cluster.start()
    handle = reader(cluster).handle
    usage = NodeUsage.of(handle, MetricProvider(), ["cpu"], keep=3600)
    assert usage is reader(cluster).usage
    for minute in range(30):
        usage.accept(Sample(["a"], {"cpu": np.array([float(minute)])}, np.array([0.0])), handle)
        cluster.settle(60)
    assert usage.percent("cpu", Window(function="Average", seconds=3600)).at("a") == 14.5
