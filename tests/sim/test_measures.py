"""What is measured of nodes in columns, and the series that samples make."""

from itertools import pairwise
from math import isnan

import numpy as np
import pytest

from moorage.api.node import ZONE
from moorage.api.resources import NODES, PODS
from moorage.app.configuration import configure
from moorage.app.offline import offline_engine
from moorage.framework.ports import Change
from moorage.runtime.top_scores import KeptScores, TopScores, pack
from moorage.sim.measures import MAX_SAMPLES, SampleSeries, largest_pod, utilisation, waiting, zone_skew
from moorage.sim.tally import decisive
from moorage.testing import make_node, make_pod


def cluster(nodes, pods=()):
    engine = offline_engine(configure(discover=False))
    for node in nodes:
        engine.inbox.post(Change(NODES, None, node))
    for pod in pods:
        engine.inbox.post(Change(PODS, None, pod))
    engine.drain()
    return engine.services.nodes()


def test_utilisation_is_of_all_and_over_nodes():
    nodes = cluster(
        [make_node("a", cpu=4), make_node("b", cpu=4), make_node("empty", cpu=0)],
        [make_pod("p", cpu=3, node="a"), make_pod("q", cpu=1, node="b")],
    )
    assert utilisation(nodes, "cpu") == {
        "utilisation.cpu": 0.5,
        "utilisation.cpu.min": 0.25,
        "utilisation.cpu.max": 0.75,
        "utilisation.cpu.stddev": 0.25,
    }
    assert utilisation(nodes, "example.com/none") == {}


@pytest.mark.parametrize(
    ("pods", "cordoned", "expected"),
    [
        ([], False, 1.0),
        ([make_pod("p", cpu=2, memory="1Gi", node="a"), make_pod("q", cpu=3, memory="1Gi", node="b")], False, 0.5),
        ([make_pod("p", cpu=1, memory="8Gi", node="a"), make_pod("q", cpu=4, node="b")], False, 0.0),
        ([make_pod("q", cpu=3, memory="1Gi", node="b")], True, 0.25),
    ],
    ids=["empty", "cpu", "memory full here, cpu there", "cordoned"],
)
def test_the_largest_pod_fits_in_one_place_in_all_resources(pods, cordoned, expected):
    nodes = [make_node("a", cpu=4, memory="8Gi", unschedulable=cordoned), make_node("b", cpu=4, memory="8Gi")]
    assert largest_pod(cluster(nodes, pods)) == expected


def test_zone_skew_counts_pods_of_the_fullest_and_the_emptiest_zone():
    nodes = [make_node(f"n{i}", labels={ZONE: f"z{i % 3}"}) for i in range(4)] + [make_node("none")]
    pods = [make_pod(f"p{i}", node=name) for i, name in enumerate(["n0", "n3", "n3", "n1", "none", "none"])]
    assert zone_skew(cluster(nodes, pods)) == 3.0
    assert zone_skew(cluster([make_node("none")])) == 0.0


def test_waiting_is_nothing_without_pods():
    assert waiting(np.array([])) == {}
    assert waiting(np.array([0.0, 10.0])) == {"wait.p50": 5.0, "wait.p99": pytest.approx(9.9)}


def test_a_series_without_an_interval_stays_small_and_keeps_even_distances():
    series = SampleSeries()
    time = 0.0
    for _ in range(5 * MAX_SAMPLES):
        series.add(time, {"a": time})
        time += series.interval
    assert MAX_SAMPLES / 2 <= len(series) <= MAX_SAMPLES
    times = series.columns["time"]
    assert list(times) == list(series.columns["a"])
    assert {b - a for a, b in pairwise(times)} == {series.interval}


def test_a_series_with_an_interval_keeps_all_and_fills_in_what_comes_later():
    series = SampleSeries(2.0)
    for number in range(MAX_SAMPLES + 10):
        series.add(2.0 * number, {"late": 1.0} if number > 5 else {})
    assert len(series) == MAX_SAMPLES + 10
    assert series.interval == 2.0
    assert [isnan(value) for value in series.columns["late"]].count(True) == 6


def packed(scores: list[int] | int) -> KeptScores:
    return scores if isinstance(scores, int) else pack(scores)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([("A", 1, [50, 40]), ("B", 2, [10, 10])], "A"),
        ([("A", 1, [50, 40]), ("B", 2, [30, 20])], "B"),
        ([("A", 1, [50, 50]), ("B", 1, 7)], ""),
    ],
    ids=["one", "by weight", "equal"],
)
def test_the_deciding_plugin_put_the_best_node_before_the_second(columns, expected):
    kept = [(name, weight, packed(scores), packed(scores)) for name, weight, scores in columns]
    top = TopScores(pack([3, 4]), pack([0, 0]), kept)
    assert decisive(top) == expected
