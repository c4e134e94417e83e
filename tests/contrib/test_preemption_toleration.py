"""PreemptionToleration: whom annotations of a PriorityClass protect, from whom, and until when."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.pod import PodCondition
from moorage.api.scheduling import PriorityClass
from moorage.api.times import format_time
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.preemption_toleration import (
    MINIMUM,
    NEVER_ENDS,
    SECONDS,
    Protection,
    protected_until,
    protection_of,
)
from moorage.testing import Cluster, make_node, make_nodes, make_pod
from moorage.testing.builders import make_priority_class
from tests.contrib.configs import enabling

CONFIG = enabling("PreemptionToleration", without=("DefaultPreemption",))


def priority_class(value=10, minimum=None, seconds=None, name="kind") -> PriorityClass:
    given = {MINIMUM: minimum, SECONDS: seconds}
    annotations = {key: str(text) for key, text in given.items() if text is not None}
    made = make_priority_class(name, value)
    meta = msgspec.structs.replace(made.metadata, annotations=annotations)
    return msgspec.structs.replace(made, metadata=meta)


def scheduled(moment: float, status: str = "True") -> tuple[PodCondition, ...]:
    return (PodCondition(type="PodScheduled", status=status, last_transition_time=format_time(moment)),)


@pytest.mark.parametrize(
    ("minimum", "seconds", "expected"),
    [
        (None, None, Protection(11, 0)),
        (100, None, Protection(100, 0)),
        (-5, 60, Protection(-5, 60)),
        (100, -1, Protection(100, NEVER_ENDS)),
        ("high", 60, None),
        (100, "1.5", None),
        (2**31, 60, None),
    ],
)
def test_annotations_are_read_strictly_and_a_bad_one_protects_no_pod(minimum, seconds, expected):
    assert protection_of(priority_class(10, minimum, seconds)) == expected


def test_protection_lasts_from_being_scheduled_and_without_a_time_for_good():
    assert protected_until(make_pod(conditions=scheduled(1000.0)), 60) == 1060
    assert protected_until(make_pod(conditions=scheduled(1000.0, "False")), 60) == NEVER_ENDS
    assert protected_until(make_pod(), 0) == NEVER_ENDS
    assert protected_until(make_pod(conditions=scheduled(1000.0)), NEVER_ENDS) == NEVER_ENDS


@pytest.mark.parametrize(
    ("minimum", "seconds", "priority", "victims"),
    [
        (100, 600, 99, ()),
        (100, 600, 100, ("default/old",)),
        (100, 0, 99, ("default/old",)),
        (100, -1, 99, ()),
        (None, 600, 99, ("default/old",)),
        ("high", 600, 99, ("default/old",)),
    ],
    ids=["protected", "high enough", "no time", "for ever", "no minimum", "unreadable"],
)
def test_a_protected_pod_stays(minimum, seconds, priority, victims):
    with Cluster(config=CONFIG) as cluster:
        cluster.add(make_node("n"), priority_class(10, minimum, seconds))
        conditions = scheduled(cluster.clock.wall())
        cluster.add(make_pod("old", node="n", cpu="4", priority=10, priority_class_name="kind", conditions=conditions))
        cluster.add(make_pod("new", cpu="4", priority=priority))
        cluster.settle()
        assert cluster.record("new").victims == victims


def test_a_preemptor_is_tried_again_when_the_protection_ends():
    with Cluster(config=CONFIG, flush_after=None) as cluster:
        cluster.add(make_node("n"), priority_class(10, 100, 60))
        conditions = scheduled(cluster.clock.wall())
        cluster.add(make_pod("old", node="n", cpu="4", priority=10, priority_class_name="kind", conditions=conditions))
        cluster.add(make_pod("new", cpu="4", priority=50))
        cluster.settle(58)
        assert cluster.record("new").attempt == 1
        cluster.settle(4)
        assert cluster.record("new").victims == ("default/old",)


def test_a_class_that_is_gone_protects_no_pod():
    with Cluster(config=CONFIG) as cluster:
        cluster.add(make_node("n"), priority_class(10, 100, -1, "gone"))
        cluster.add(make_pod("old", node="n", cpu="4", priority=10, priority_class_name="gone"))
        cluster.delete(priority_class(name="gone"))
        cluster.settle()
        cluster.add(make_pod("new", cpu="4", priority=50))
        cluster.settle()
        assert cluster.record("new").victims == ("default/old",)


def test_a_preemptor_waits_for_victims_that_are_ending():
    with Cluster(config=CONFIG) as cluster:
        cluster.add(make_node("n"), make_pod("old", node="n", cpu="4"))
        cluster.add(make_pod("new", cpu="4", priority=50))
        cluster.settle()
        assert cluster.record("new").victims == ("default/old",)
        cluster.settle(600)
        assert cluster.record("new").victims == ()
        old = cluster.pod("old")
        assert old is not None
        assert old.is_terminating
        cluster.delete(old)
        cluster.settle(20)
        assert cluster.node_of("new") == "n"


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (2, "1 No victims found on node n-0 for preemptor pod new, 1 No victims found on node n-1 for"),
        (11, "0/11 nodes are available: 11 No preemption victims found for incoming pod."),
    ],
)
def test_the_message_names_nodes_as_long_as_it_can_be_read(nodes, text):
    with Cluster(config=CONFIG) as cluster:
        cluster.add(make_nodes(nodes, "n"))
        cluster.add(make_pod(f"old-{i}", node=f"n-{i}", cpu="4", priority=99) for i in range(nodes))
        cluster.settle()
        cluster.add(make_pod("new", cpu="4", priority=50))
        cluster.settle()
        assert text in cluster.events("new")[0].note


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage: Invalid value: 101"),
        ({"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute: Invalid value: -1"),
        ({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}, "cannot be zero at the same time"),
    ],
)
def test_arguments_are_those_of_default_preemption(args, message):
    with pytest.raises(ConfigError, match=message):
        configure(enabling("PreemptionToleration", args), discover=False)
