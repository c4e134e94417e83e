"""Pods whose attempts hold up the scheduler: they are stopped, reported, and tried behind all others."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import pytest

from moorage.framework import Status
from moorage.queue.slowness import MAX_WAIT_SECONDS, NAMESPACE_SECONDS
from moorage.scheduler.slowness import SLOW_SECONDS
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import config, the_pod, where
from tests.scheduler.recorder import witness

NODES = tuple(make_node(name) for name in ("a", "b", "c"))


class Blocks(witness({})):  # type: ignore[misc]
    """Blocks the loop at one point for pods whose name starts with "slow"."""

    name = "blocks"
    cluster: ClassVar[Cluster]
    point: ClassVar[str] = "Filter"
    seconds: ClassVar[float] = 5.0
    tried: ClassVar[list[str]] = []

    def _block(self, point: str, pod: Any) -> None:
        if point == "PreFilter":
            type(self).tried.append(pod.name)
        if point == self.point and pod.name.startswith("slow"):
            self.cluster.loop.block(self.seconds)

    def pre_filter(self, state, pod, nodes):
        self._block("PreFilter", pod)

    def filter(self, state, pod, node):
        self._block("Filter", pod)
        return Status.unschedulable("no") if pod.name == "slow-refused" else None

    def post_filter(self, state, pod, statuses):
        self._block("PostFilter", pod)
        return Status.unschedulable("nothing to do")

    def pre_score(self, state, pod, nodes):
        self._block("PreScore", pod)

    def score(self, state, pod, node):
        self._block("Score", pod)
        return 1

    def normalize_scores(self, state, pod, scores):
        self._block("NormalizeScore", pod)
        return scores

    def reserve(self, state, pod, node_name):
        self._block("Reserve", pod)

    def permit(self, state, pod, node_name):
        self._block("Permit", pod)


@pytest.fixture
def plugin():
    return type("Mine", (Blocks,), {"tried": []})


@pytest.fixture
def cluster(plugin):
    with Cluster(config=config("blocks"), plugins=[plugin], flush_after=None) as cluster:
        plugin.cluster = cluster
        cluster.add(*NODES)
        cluster.settle()
        yield cluster


def notes(cluster: Cluster, pod: str, reason: str) -> list[str]:
    return [event.note for event in cluster.events(pod) if event.reason == reason]


@pytest.mark.parametrize("point", ["PreFilter", "Filter", "PreScore", "Score", "NormalizeScore"])
def test_an_attempt_ends_at_the_first_look_at_the_clock_after_its_time(cluster, plugin, point):
    plugin.point = point
    before = cluster.clock.now()
    cluster.add(make_pod("slow"), make_pod("canary"))
    cluster.settle(0.2)
    assert cluster.node_of("canary") == "a"
    assert cluster.clock.now() - before < 5.5, "one call of five seconds, and not one for each node"
    said = f'of which {point} of plugin "blocks" took 5.0s'
    assert notes(cluster, "slow", "FailedScheduling") == [f"the attempt was stopped after 5.0s, {said}"]
    (note,) = notes(cluster, "slow", "SlowScheduling")
    assert note == f"Attempt 1 to schedule the pod took 5.0s, {said}. The pod is tried again in 50s at the earliest."
    assert cluster.record("slow").plugin == "blocks"
    cluster.validate()


@pytest.mark.parametrize("point", ["Reserve", "Permit"])
def test_a_slow_attempt_that_has_placed_the_pod_is_reported_and_kept(cluster, plugin, point):
    plugin.point = point
    cluster.add(make_pod("slow"))
    cluster.settle()
    assert cluster.node_of("slow") == "a"
    assert notes(cluster, "slow", "SlowScheduling") == [
        f'Attempt 1 to schedule the pod took 5.0s, of which {point} of plugin "blocks" took 5.0s.'
    ]


def test_a_slow_post_filter_is_named(cluster, plugin):
    plugin.point = "PostFilter"
    cluster.add(make_pod("slow-refused"))
    cluster.settle()
    assert 'of which PostFilter of plugin "blocks" took 5.0s' in notes(cluster, "slow-refused", "SlowScheduling")[0]
    assert notes(cluster, "slow-refused", "FailedScheduling")[0].startswith("0/3 nodes are available: 3 no.")


def test_after_the_second_slow_attempt_the_pod_waits_behind_all_others_with_growing_backoff(cluster, plugin):
    cluster.add(make_pod("slow"))
    cluster.settle(300)
    times = [record.started for record in cluster.scheduler.records.of("default/slow")]
    gaps = [round(later - earlier) for earlier, later in itertools.pairwise(times)]
    assert gaps[:2] == [pytest.approx(56, abs=2), pytest.approx(106, abs=2)]
    assert "behind all other pods" in notes(cluster, "slow", "SlowScheduling")[1]
    assert "held up other pods" in where(cluster, "slow").why
    cluster.until(lambda: where(cluster, "slow").place == "active" or len(plugin.tried) > 3, MAX_WAIT_SECONDS + 60)


def test_new_pods_of_a_namespace_with_slow_pods_wait_behind_those_of_others_for_a_while(cluster, plugin):
    cluster.add(make_pod("slow", namespace="hostile"))
    cluster.until(lambda: plugin.tried.count("slow") == 2, 120)
    cluster.settle(0.2)
    plugin.tried.clear()
    cluster.add(make_pod("new", namespace="hostile", priority=100), make_pod("canary"))
    cluster.settle(0.1)
    assert plugin.tried == ["canary", "new"]
    cluster.delete(cluster.pod("slow", "hostile"))
    cluster.settle(NAMESPACE_SECONDS)
    plugin.tried.clear()
    cluster.add(make_pod("later", namespace="hostile", priority=100), make_pod("canary-2"))
    cluster.settle(0.1)
    assert plugin.tried == ["later", "canary-2"]


def test_an_activation_does_not_end_the_wait_of_a_slow_pod(cluster, plugin):
    cluster.add(make_pod("slow"))
    cluster.settle(1)
    assert cluster.scheduler.engine.queue.activate([the_pod(cluster, "slow")]) == 0
    cluster.settle(10)
    assert plugin.tried == ["slow"]


def test_a_fast_attempt_makes_a_slow_pod_usual_again(cluster, plugin):
    plugin.seconds = SLOW_SECONDS + 0.1
    cluster.add(make_pod("slow-refused"))
    cluster.settle(0.2)
    info = cluster.scheduler.engine.queue.pending.get(the_pod(cluster, "slow-refused").uid)
    assert info is not None
    assert info.slow_attempts == 1
    plugin.seconds = 0.0
    cluster.add(make_node("d"))
    cluster.settle(60)
    assert plugin.tried.count("slow-refused") == 2
    assert info.slow_attempts == 0
