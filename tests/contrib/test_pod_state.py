"""PodState: terminating pods count for a node, nominated ones against it."""

from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.configs import enabling
from tests.plugins.one_plugin import ask

LEAVING = "2026-01-01T00:00:00Z"


def test_terminating_pods_count_for_a_node_and_nominated_ones_against_it():
    pods = [
        make_pod("leaving", node="a", deletion_timestamp=LEAVING),
        make_pod("staying", node="a"),
        make_pod("nominated-1", nominated="b", priority=10),
        make_pod("nominated-2", nominated="b", priority=10),
        make_pod("nominated-3", nominated="a", priority=10),
        make_pod("nowhere", nominated="gone", priority=10),
    ]
    nodes = [make_node(name) for name in ("a", "b", "c")]
    assert ask("PodState", make_pod("p"), nodes, pods).raw_scores() == {"a": 0, "b": -2, "c": 0}


def test_a_pod_goes_where_others_are_leaving():
    with Cluster(config=enabling("PodState", weight=1000)) as cluster:
        cluster.add(make_node("a"), make_node("b"))
        leaving = make_pod("one", node="b", cpu="1")
        cluster.add(leaving, make_pod("two", node="b", cpu="1"))
        cluster.settle()
        cluster.delete(leaving, grace_period=30)
        cluster.add(make_pod("p", cpu="1"))
        cluster.settle()
        assert cluster.node_of("p") == "b"
