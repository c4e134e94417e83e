"""What pods request, and which of them are too new to be measured."""

from moorage.api.pod import PodCondition
from moorage.contrib.trimaran.amounts import KnownAmounts, PodAmounts
from moorage.contrib.trimaran.recent_pods import RecentPods, scheduled_at
from moorage.testing import make_pod
from moorage.testing.builders import make_container

GIB = 1 << 30


def test_the_larger_of_containers_and_init_containers_counts_and_overhead_comes_on_top():
    pod = make_pod(
        "p",
        containers=[make_container("a", cpu="1"), make_container("b", cpu="500m", limits={"cpu": "2"})],
        init_containers=[make_container("i", cpu="1", memory="1Gi", limits={"memory": "2Gi"})],
        overhead={"cpu": "100m"},
    )
    assert PodAmounts.of(pod) == PodAmounts(1600, 2100, GIB, 2 * GIB)


def test_a_limit_below_the_request_counts_as_the_request():
    pod = make_pod("p", containers=[make_container("a", cpu="2", limits={"cpu": "1"})])
    assert PodAmounts.of(pod) == PodAmounts(2000, 2000, 0, 0)


def test_known_amounts_are_those_of_the_newest_version():
    known, pod = KnownAmounts(), make_pod("p", cpu="1")
    known.pod_changed(None, pod)
    assert known.of(pod).cpu_request == 1000
    known.pod_changed(pod, make_pod("p", cpu="2"))
    assert known.of(pod).cpu_request == 2000
    known.pod_changed(pod, None)
    assert known.of(pod).cpu_request == 1000  # computed: it is known no longer


def placed(name, moment=None, node="a"):
    condition = PodCondition(type="PodScheduled", status="True", last_transition_time=moment)
    return make_pod(name, node=node, conditions=[condition])


def recent():
    """At the time 1000."""
    return RecentPods(lambda pod: 100, lambda: 1000.0)


def test_a_pod_counts_from_when_it_was_scheduled_until_it_is_measured():
    pods = recent()
    pods.pod_changed(None, placed("old", "1970-01-01T00:05:00Z"))
    pods.pod_changed(make_pod("new"), make_pod("new", node="a"))
    assert [pods.expected("a", moment) for moment in (299, 300, 999, 1000)] == [200, 100, 100, 0]
    pods.forget(300)
    assert pods.expected("a", 0) == 100
    pods.pod_changed(None, placed("older", "1970-01-01T00:04:00Z"))
    assert pods.expected("a", 0) == 100


def test_a_pod_without_a_time_was_placed_long_ago():
    assert scheduled_at(make_pod("p", node="a")) == 0
    pods = recent()
    pods.pod_changed(None, make_pod("p", node="a"))
    assert "a" not in pods


def test_a_pod_counts_once_however_often_it_is_seen_and_not_when_it_is_gone():
    pods, pod = recent(), make_pod("p")
    pods.add(pod, "a", 900.0)
    pods.pod_changed(pod, make_pod("p", node="a"))
    assert pods.expected("a", 0) == 100
    pods.pod_changed(make_pod("p", node="a"), make_pod("p", node="a", phase="Succeeded"))
    assert pods.expected("a", 0) == 0
    pods.add(pod, "b", 900.0)
    pods.remove(pod, "b")
    assert pods._by_node == {}
