"""Group C, time: odd timestamps in objects, and thousands of backoffs that end in one second."""

from __future__ import annotations

import itertools

import pytest

from moorage.api.resources import PODS
from moorage.api.times import parse_time
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import make_node, make_pod
from moorage.testing.cluster import Cluster

ODD = {
    "leap second": "2016-12-31T23:59:60Z",
    "after 2038": "2040-01-01T00:00:00Z",
    "before the epoch": "1901-01-01T00:00:00Z",
    "hour that a clock change repeats": "2026-10-25T02:30:00+02:00",
    "year 9999": "9999-12-31T23:59:59Z",
    "no time at all": "yesterday",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_c16_odd_times_stop_no_pod(text):
    with Cluster(flush_after=None) as cluster:
        cluster.add(make_node("a", cpu="2"))
        cluster.add(
            make_pod("odd", creation_timestamp=text, start_time=text, cpu="100m"), make_pod("plain", cpu="100m")
        )
        cluster.settle(5)
        assert cluster.node_of("plain") == "a"
        assert cluster.node_of("odd") == "a" or parse_time(text) is None
        cluster.validate()


def test_c16_preemption_orders_victims_with_odd_start_times():
    with Cluster(flush_after=None) as cluster:
        cluster.add(make_node("a", cpu="2"))
        for number, text in enumerate(ODD.values()):
            cluster.add(make_pod(f"v-{number}", cpu="300m", node="a", phase="Running", start_time=text))
        cluster.add(make_pod("important", cpu="1500m", priority=1000))
        cluster.settle(5)
        assert cluster.record("important").victims
        cluster.validate()


def test_c17_thousands_of_backoffs_that_end_in_one_second_are_ordered_by_priority():
    with Cluster(flush_after=None, seed=5) as cluster:
        cluster.faults.add(Fault(verb="bind", effect=faults.server_error(500), times=2000))
        cluster.add(make_node("a", cpu="1000", pods=5000, memory="4000Gi"))
        cluster.add([make_pod(f"p-{i:04}", cpu="1m", priority=i % 10) for i in range(2000)])
        cluster.until(lambda: len(cluster.faults.calls_of("bind")) >= 2000, 60)
        first = len(cluster.faults.calls_of("bind"))
        cluster.until(lambda: len(cluster.bound()) == 2000, 60)
        again = [call.name for call in cluster.faults.calls_of("bind", PODS)][first:]
        priorities = [int(name.removeprefix("p-")) % 10 for name in again[:1000]]
        inversions = sum(1 for a, b in itertools.pairwise(priorities) if a < b)
        assert inversions <= 20, "within one second's window the important come first"
