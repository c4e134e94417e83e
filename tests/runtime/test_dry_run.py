"""What-if sessions: they answer as if pods had come or gone, and nothing outside ever changes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.framework import CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult, Status, VectorFilterPlugin
from moorage.framework.status import SUCCESS
from moorage.testing import Cluster, make_node, make_pod
from tests.runtime.kit import cluster_with, handle_of
from tests.scheduler.kit import the_pod

FULL = Status.unschedulable("full").by("room")
CROWDED = Status.unschedulable("too many in the cluster").by("few")


class FreeCpu(VectorFilterPlugin):
    """By columns: at most as many cpus as the node has."""

    name = "room"

    def filter_nodes(self, state, pod, nodes):
        return nodes.refuse(nodes.free("cpu") < 1000, "full")


class Few(PreFilterPlugin, FilterPlugin):
    """At most `limit` pods with the pod's app label in the whole cluster, kept by AddPod and RemovePod."""

    name = "few"
    limit = 3

    def pre_filter(self, state, pod, nodes):
        running = [other.uid for node in nodes for other in node.pods if self.same(pod, other)]
        state.write("few", set(running))

    def same(self, pod: Any, other: Any) -> bool:
        return bool(pod.labels.get("app") == other.labels.get("app"))

    def filter(self, state, pod, node):
        return Status.unschedulable("too many in the cluster") if len(state.read("few")) >= self.limit else None

    def add_pod(self, state, pod, added, node):
        if self.same(pod, added):
            assert added.uid in {other.uid for other in node.pods}, "the node is shown after the change"
            state.own("few").add(added.uid)

    def remove_pod(self, state, pod, removed, node):
        if self.same(pod, removed):
            assert removed.uid not in {other.uid for other in node.pods}
            state.own("few").discard(removed.uid)


NODES = (make_node("a", cpu=2), make_node("b", cpu=1), make_node("c", cpu=3))
NEW = make_pod("new", cpu=1, labels={"app": "x"})


def running(name: str, node: str, app: str = "y", **options: Any) -> Any:
    return make_pod(name, cpu=1, node=node, labels={"app": app}, scheduler="somebody", **options)


@pytest.fixture
def cluster():
    with cluster_with(FreeCpu, Few) as cluster:
        cluster.add(*NODES, running("r1", "b"), running("r2", "c", app="x"))
        cluster.settle()
        yield cluster


def snapshot(cluster: Cluster) -> tuple[Any, ...]:
    """All that a dry run must leave alone."""
    engine = cluster.scheduler.engine
    engine.cache.validate()
    engine.queue.pending.validate()
    table = engine.cache.table
    pods = {name: [pod.uid for pod in table.pods_of(name)] for name in ("a", "b", "c")}
    return (table.version, pods, table.amounts.requested("cpu").tolist(), len(engine.queue), len(cluster.faults.calls))


def session(cluster: Cluster) -> Any:
    return handle_of(cluster, "few").dry_run()


def test_a_trial_answers_as_the_nodes_are(cluster):
    trial = session(cluster).trial(NEW)
    assert trial.status.is_success
    assert [trial.filter(name) for name in "abc"] == [SUCCESS, FULL, SUCCESS]
    assert list(trial.filter_all()) == [("b", FULL)]


def test_pods_of_the_session_are_in_every_later_trial(cluster):
    before = snapshot(cluster)
    world = session(cluster)
    earlier = world.trial(NEW)
    world.add_pod("a", make_pod("x1", cpu=2))
    world.remove_pod("b", the_pod(cluster, "r1"))
    trial = world.trial(NEW)
    assert [trial.filter(name) for name in "abc"] == [FULL, SUCCESS, SUCCESS]
    assert list(trial.filter_all()) == [("a", FULL)]
    assert [earlier.filter(name) for name in "ab"] == [SUCCESS, FULL], "an earlier trial does not see them"
    assert snapshot(cluster) == before


def test_counts_over_the_cluster_follow_through_add_pod_and_remove_pod(cluster):
    trial = session(cluster).trial(NEW)
    trial.add_pod("a", make_pod("x1", labels={"app": "x"}))
    trial.add_pod("c", make_pod("x2", labels={"app": "x"}))
    assert [trial.filter(name) for name in "ac"] == [CROWDED, CROWDED]
    assert dict(trial.filter_all()) == {"a": CROWDED, "b": FULL, "c": CROWDED}
    trial.remove_pod("c", the_pod(cluster, "r2"))
    assert trial.filter("a").is_success


def test_a_fork_and_its_origin_go_their_own_ways(cluster):
    trial = session(cluster).trial(NEW)
    trial.add_pod("a", make_pod("x1", labels={"app": "x"}))
    fork = trial.fork()
    fork.add_pod("a", make_pod("x2", labels={"app": "x"}))
    trial.add_pod("c", make_pod("x3", cpu=2))
    assert (fork.filter("c"), trial.filter("c")) == (CROWDED, FULL)
    assert (fork.filter("a"), trial.filter("a")) == (CROWDED, SUCCESS)
    assert [pod.name for pod in trial.node("a").pods] == ["x1"]
    assert sorted(pod.name for pod in fork.node("a").pods) == ["x1", "x2"]


def test_what_the_origin_does_after_the_fork_is_not_seen_by_the_fork(cluster):
    trial = session(cluster).trial(NEW)
    trial.add_pod("a", make_pod("x1", labels={"app": "x"}))
    fork = trial.fork()
    trial.add_pod("a", make_pod("x2", labels={"app": "x"}))
    assert (fork.filter("c"), trial.filter("c")) == (SUCCESS, CROWDED)


def test_the_state_of_a_cycle_is_used_on_a_clone(cluster):
    state = CycleState()
    state.write("few", {"one", "two"})
    trial = session(cluster).trial(NEW, state)
    trial.add_pod("a", make_pod("x1", labels={"app": "x"}))
    assert trial.filter("a") == CROWDED
    assert state.read("few") == {"one", "two"}


def test_a_skipped_pre_filter_is_not_asked_by_add_pod_and_filter():
    class Skips(Few):
        name = "few"

        def pre_filter(self, state, pod, nodes):
            return Status.skip()

        def add_pod(self, state, pod, added, node):
            raise AssertionError("asked although it skipped")

    with cluster_with(Skips) as cluster:
        cluster.add(make_node("a"))
        cluster.settle()
        trial = session(cluster).trial(NEW)
        trial.add_pod("a", make_pod("x"))
        assert trial.filter("a").is_success


NOMINATED = [
    pytest.param(5, 0, FULL, id="of higher priority: it counts"),
    pytest.param(0, 0, FULL, id="of equal priority: it counts"),
    pytest.param(-1, 0, SUCCESS, id="of lower priority: it does not"),
]


def test_a_nominated_pod_that_the_session_has_placed_counts_once(cluster):
    nominator = handle_of(cluster, "few").nominator
    rival = make_pod("rival", cpu=1, uid="rival")
    nominator.nominate(rival, "c")
    try:
        assert session(cluster).trial(NEW).filter("c").is_success
        found = session(cluster)
        found.add_pod("c", rival)
        assert found.trial(NEW).filter("c").is_success
        assert found.trial(NEW).filter_all().get("c").is_success
    finally:
        nominator.forget("rival")


@pytest.mark.parametrize(("theirs", "mine", "expected"), NOMINATED)
def test_nominated_pods_of_at_least_equal_priority_count(cluster, theirs, mine, expected):
    nominator = handle_of(cluster, "few").nominator
    nominator.nominate(make_pod("rival", cpu=2, priority=theirs, uid="rival"), "a")
    try:
        before = snapshot(cluster)
        pod = make_pod("new", cpu=1, priority=mine, labels={"app": "x"})
        trial = session(cluster).trial(pod)
        assert trial.filter("a") == expected
        assert trial.filter_all().get("a") == expected
        assert trial.filter("c").is_success
        assert snapshot(cluster) == before
        itself = make_pod("rival", cpu=2, priority=theirs, uid="rival")
        assert session(cluster).trial(itself).filter("a").is_success, "nobody is in his own way"
    finally:
        nominator.forget("rival")


def test_failing_add_pod_is_reported_by_the_trial(cluster):
    class Breaks(Few):
        name = "few"

        def add_pod(self, state, pod, added, node):
            raise LookupError("lost count")

    with cluster_with(Breaks) as broken:
        broken.add(make_node("a"))
        broken.settle()
        trial = session(broken).trial(NEW)
        trial.add_pod("a", make_pod("x"))
        assert trial.status.code.label == "Error"
        assert 'AddPod plugin "few"' in trial.status.message
        assert "lost count" in trial.status.message


def test_a_node_that_does_not_exist_is_an_error(cluster):
    trial = session(cluster).trial(NEW)
    with pytest.raises(Exception, match="Node 'zz' does not exist"):
        trial.filter("zz")


def test_nodes_that_pre_filter_leaves_out_do_not_fit():
    class OnlyB(PreFilterPlugin):
        name = "only-b"

        def pre_filter(self, state, pod, nodes):
            return PreFilterResult(frozenset({"b"}))

    with cluster_with(OnlyB, FreeCpu) as cluster:
        cluster.add(*NODES)
        cluster.settle()
        trial = handle_of(cluster, "only-b").dry_run().trial(NEW)
        assert trial.filter("b").is_success
        outside = Status.unresolvable("node(s) didn't satisfy plugin(s) [only-b]")
        assert trial.filter("a") == outside
        assert dict(trial.filter_all()) == {"a": outside, "c": outside}
        assert trial.fork().filter("a") == outside


actions = st.lists(
    st.tuples(st.sampled_from(("add", "remove", "fork", "filter", "all")), st.integers(0, 5), st.integers(0, 2)),
    max_size=15,
)


@given(actions, st.integers(0, 2**32))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_tried_nothing_outside_changes_and_answers_equal_a_real_cluster(steps, seed):
    """Against a plain model: the pods of each node as sets, judged by arithmetic."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    pods = [make_pod(f"x{i}", cpu=1, labels={"app": rng.choice("xy")}, uid=f"x{i}") for i in range(6)]
    cpus = {"a": 2, "b": 1, "c": 3}
    with cluster_with(FreeCpu, Few) as cluster:
        cluster.add(*NODES, running("r1", "b", uid="r1"), running("r2", "c", app="x", uid="r2"))
        cluster.settle()
        before = snapshot(cluster)
        apps = {"r1": "y", "r2": "x", **{pod.uid: pod.labels["app"] for pod in pods}}
        worlds = [(session(cluster).trial(NEW), {"a": set(), "b": {"r1"}, "c": {"r2"}})]
        for action, number, where in steps:
            trial, model = worlds[number % len(worlds)]
            pod, node = pods[number], "abc"[where]
            if action == "add" and not any(pod.uid in there for there in model.values()):
                trial.add_pod(node, pod)
                model[node].add(pod.uid)
            elif action == "remove" and pod.uid in model[node]:
                trial.remove_pod(node, pod)
                model[node].discard(pod.uid)
            elif action == "fork":
                worlds.append((trial.fork(), {name: set(there) for name, there in model.items()}))
            for checked, expected in worlds:
                same = sum(apps[uid] == "x" for there in expected.values() for uid in there)
                verdicts = {
                    name: FULL if len(there) >= cpus[name] else CROWDED if same >= 3 else SUCCESS
                    for name, there in expected.items()
                }
                if action == "all":
                    assert {name: checked.filter_all().get(name) for name in "abc"} == verdicts
                assert {name: checked.filter(name) for name in "abc"} == verdicts
        assert snapshot(cluster) == before


def test_views_of_a_dry_run_are_read_only(cluster):
    trial = session(cluster).trial(NEW)
    trial.add_pod("a", make_pod("x", cpu=1))
    alone = trial.node("a").alone()
    assert alone.free("cpu").tolist() == [1000]
    with pytest.raises(ValueError, match="read-only"):
        alone.requested("cpu")[0] = 5
    assert np.count_nonzero(cluster.scheduler.engine.cache.table.amounts.requested("cpu")) == 2
