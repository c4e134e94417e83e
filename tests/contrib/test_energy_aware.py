"""EnergyAware: hot nodes are refused, and pods go where they add least power."""

from __future__ import annotations

import numpy as np
import pytest

from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.energy_aware import UNKNOWN, EnergyAware
from moorage.contrib.metrics import Sample
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.configs import enabling
from tests.plugins.one_plugin import ask

PREFIX = "moorage.dev/"
NAN = float("nan")


def node(name, idle="100", top="300", **more):
    return make_node(name, labels={f"{PREFIX}idle-watts": idle, f"{PREFIX}max-watts": top}, **more)


def sample(now, **nodes):
    """Temperature and power by node."""
    values = {
        key: np.array([pair[index] for pair in nodes.values()], dtype=float)
        for index, key in enumerate(("temperature", "power"))
    }
    return Sample(list(nodes), values, np.full(len(nodes), now))


def measure(plugin, **nodes):
    plugin.usage.accept(sample(plugin.handle.clock.wall(), **nodes), plugin.handle)


class Answers:
    """A source that says what the test wants, in place of Prometheus."""

    def __init__(self, **nodes):
        self.nodes = nodes

    async def fetch(self, handle, measures):
        assert measures == ["power", "temperature"]
        return sample(handle.clock.wall(), **self.nodes)


def test_nodes_that_are_too_hot_by_measurement_or_by_annotation_are_refused():
    nodes = [make_node("cool"), make_node("hot"), make_node("unknown")]
    nodes.append(make_node("written", annotations={f"{PREFIX}temperature-celsius": "80.5"}))
    nodes.append(make_node("both", annotations={f"{PREFIX}temperature-celsius": "80.5"}))
    found = ask("EnergyAware", make_pod("p"), nodes)
    measure(found.plugin, cool=(75, NAN), hot=(75.5, NAN), both=(20, NAN))
    assert {name: reasons for name, (_, reasons) in found.refused().items()} == {
        "hot": ("temperature too high: above 75 °C",),
        "written": ("temperature too high: above 75 °C",),
    }


def test_a_pod_adds_its_share_of_power_and_the_idle_power_of_a_node_that_it_wakes():
    nodes = [node("busy"), node("empty"), node("large", cpu="16"), make_node("no-model"), node("bad", idle="low")]
    running = [make_pod(f"on-{name}", node=name) for name in ("busy", "large")]
    found = ask("EnergyAware", make_pod("p", cpu="2"), nodes, running)
    assert found.raw_scores() == {
        "busy": 100_000, "empty": 200_000, "large": 25_000, "no-model": UNKNOWN, "bad": UNKNOWN,
    }  # fmt: skip


def test_a_node_whose_power_is_measured_is_asleep_if_it_draws_less_than_when_idle():
    found = ask("EnergyAware", make_pod("p"), [node("asleep"), node("awake")])
    measure(found.plugin, asleep=(NAN, 30), awake=(NAN, 120))
    assert found.raw_scores() == {"asleep": 70_000, "awake": 0}


def test_pods_are_packed_where_they_cost_least_and_wait_while_all_nodes_are_hot():
    queries = {"temperature": "t", "power": "p"}
    provider = {"type": "Prometheus", "address": "http://127.0.0.1:1", "queries": queries}
    config = enabling("EnergyAware", {"metricProvider": provider}, weight=1000)
    with Cluster(config=config, verify_reuse=True, start=False) as cluster:
        [profile] = cluster.scheduler.engine.profiles.values()
        plugin = profile.plugins["EnergyAware"]
        assert isinstance(plugin, EnergyAware)
        plugin.usage.source = answers = Answers(thrifty=(60, NAN), hungry=(60, NAN))
        cluster.add(node("thrifty", top="200"), node("hungry"), make_node("no-model"))
        cluster.start()
        cluster.add(make_pod(f"p{number}", cpu="500m") for number in range(4))
        cluster.settle()
        assert set(cluster.bound().values()) == {"thrifty"}
        answers.nodes = dict.fromkeys(("thrifty", "hungry", "no-model"), (90, NAN))
        cluster.settle(20)
        cluster.add(make_pod("waits", cpu="500m"))
        cluster.settle(40)
        assert cluster.events("waits")[0].note.startswith("0/3 nodes are available: 3 temperature too high")
        assert cluster.record("waits").attempt == 1
        answers.nodes = {"thrifty": (90, NAN), "hungry": (60, NAN), "no-model": (90, NAN)}
        cluster.settle(30)
        assert cluster.node_of("waits") == "hungry"
        assert cluster.record("waits").woken_by == "NodeTemperatureUpdate"


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"maxTemperatureCelsius": 500}, "maxTemperatureCelsius"),
        ({"maxWattsKey": ""}, "maxWattsKey"),
        ({"metricsMaxAgeSeconds": -1}, "metricsMaxAgeSeconds"),
        ({"metricProvider": {"type": "Prometheus"}}, "metricProvider.address"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_their_place(args, path):
    with pytest.raises(ConfigError) as caught:
        configure(enabling("EnergyAware", args))
    assert [problem.path for problem in caught.value.problems] == [f"profiles[0].pluginConfig[0].args.{path}"]
