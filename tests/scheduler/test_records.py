"""Decision records: one per attempt, with scores and margin, and the ring never outgrows its bytes."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from moorage.framework import FilterPlugin, ScorePlugin, Status
from moorage.framework.access import Reads
from moorage.framework.optional import ReusablePlugin
from moorage.runtime.record import SMALL_RECORD, DecisionRecord, Diagnosis
from moorage.scheduler.records import RecordRing
from moorage.state.node_listing import NodeEpoch
from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.scheduler.kit import config
from tests.scheduler.recorder import ONLY_WITNESS, witness


class Graded(ScorePlugin):
    """Node n<i> is worth i."""

    name = "graded"

    def score(self, state, pod, node):
        return int(node.name.removeprefix("n"))


class Twice(Graded):
    name = "twice"

    def normalize_scores(self, state, pod, scores):
        return {name: 2 * score for name, score in scores.items()}


WEIGHTED = config("graded", "twice").replace("{name: twice}", "{name: twice, weight: 3}")


SHARED = config("NodeResourcesFit", "share").replace("{name: share}", "{name: share, weight: 3}")


def test_the_best_ten_are_kept_with_every_plugins_opinion():
    with Cluster(config=WEIGHTED, plugins=[Graded, Twice]) as cluster:
        cluster.add(*(make_node(f"n{i}") for i in range(15)), make_pod("p"))
        cluster.settle()
        record = cluster.record("p")
        assert (record.node, record.result, record.attempt) == ("n14", "scheduled", 1)
        assert [entry.node for entry in record.scores] == [f"n{i}" for i in range(14, 4, -1)]
        assert [entry.total for entry in record.scores] == [7 * i for i in range(14, 4, -1)]
        assert record.margin == 7
        best = {p.plugin: (p.raw, p.normalized, p.weighted) for p in record.scores[0].plugins}
        assert best == {"graded": (14, 14, 14), "twice": (14, 28, 84)}
        assert (record.total_nodes, record.evaluated_nodes, record.feasible_nodes) == (15, 15, 15)


def test_a_single_feasible_node_has_neither_scores_nor_margin():
    with Cluster(config=WEIGHTED, plugins=[Graded, Twice]) as cluster:
        cluster.add(make_node("n3"), make_pod("p"))
        cluster.settle()
        record = cluster.record("p")
        assert (record.node, list(record.scores), record.margin) == ("n3", [], None)


def test_a_tie_has_margin_zero_and_the_first_node_wins():
    with Cluster(config=config()) as cluster:
        cluster.add(make_nodes(3), make_pod("p"))
        cluster.settle()
        assert (cluster.record("p").node, cluster.record("p").margin) == ("node-0", 0)


def test_attempts_that_a_kept_answer_decides_record_the_ten_best_too():
    with Cluster() as cluster:
        cluster.add(make_nodes(15, cpu="4"), *(make_pod(f"p{i:02}", cpu="100m") for i in range(40)))
        cluster.settle()
        records = list(cluster.scheduler.records)
        assert len(records) == 40
        for record in records:
            assert len(record.scores) == 10
            assert record.scores[0].node == record.node
            totals = [entry.total for entry in record.scores]
            assert totals == sorted(totals, reverse=True)
            assert totals == [sum(plugin.weighted for plugin in entry.plugins) for entry in record.scores]
            assert record.margin == totals[0] - totals[1]


class Share(ScorePlugin, ReusablePlugin):
    """All nodes are worth the same, and share 100 points."""

    name = "share"

    def score(self, state, pod, node):
        return 1

    def normalize_scores(self, state, pod, scores):
        return {name: 100 // len(scores) for name in scores}

    def sign(self, pod):
        return ()

    def reads(self, pod):
        return (Reads.ROW,)


def test_what_plugins_normalise_is_recorded_as_it_is_for_the_nodes_that_are_feasible():
    with Cluster(plugins=[Share], config=SHARED) as cluster:
        cluster.add(make_nodes(4, pods=5), *(make_pod(f"p{i:02}", cpu="100m") for i in range(20)))
        cluster.settle()
        for record in cluster.scheduler.records:
            shares = {part.normalized for entry in record.scores for part in entry.plugins if part.plugin == "share"}
            assert shares == ({100 // record.feasible_nodes} if record.feasible_nodes > 1 else set())


class Favourite(Share):
    """Prefers the last node by name although all have the same score."""

    name = "favourite"

    def normalize_scores(self, state, pod, scores):
        return {name: 100 if name == max(scores) else 0 for name in scores}


def test_a_plugin_that_tells_nodes_with_equal_scores_apart_is_asked_for_every_pod():
    with Cluster(plugins=[Favourite], config=SHARED.replace("share", "favourite")) as cluster:
        cluster.add(make_nodes(4, pods=5), *(make_pod(f"p{i:02}", cpu="100m") for i in range(20)))
        cluster.settle()
        expected = [f"node-{i}" for i in (3, 2, 1, 0) for _ in range(5)]
        assert [record.node for record in cluster.scheduler.records] == expected
        for record in cluster.scheduler.records:
            assert len(record.scores) == (record.feasible_nodes if record.feasible_nodes > 1 else 0)


def test_records_keep_no_arrays_of_the_baselines_that_decided():
    """A ring of 32 MB would else keep far more alive."""
    with Cluster() as cluster:
        cluster.add(make_nodes(300), *(make_pod(f"p{i:02}", cpu="100m") for i in range(60)))
        cluster.settle()
        for record in cluster.scheduler.records:
            assert not reachable_arrays(record.top)
            assert record.kept_bytes >= 600 + (record.top.nbytes if record.top is not None else 0)


def reachable_arrays(start: Any) -> list[Any]:
    found, seen, rest = [], set(), [start]
    while rest:
        each = rest.pop()
        if id(each) in seen or isinstance(each, type):
            continue
        seen.add(id(each))
        found += [each] if isinstance(each, np.ndarray) else []
        fields = getattr(each, "__struct_fields__", ())
        rest += [getattr(each, name) for name in fields] + gc.get_referents(each)
    return found


class Gate(FilterPlugin):
    name = "gate"

    def filter(self, state, pod, node):
        return None if node.labels.get("open") == pod.name else Status.unschedulable("closed")


def test_every_attempt_leaves_one_and_tells_what_woke_it():
    with Cluster(config=config("gate"), plugins=[Gate], flush_after=None) as cluster:
        cluster.add(make_nodes(2), make_pod("p"))
        cluster.settle(20)
        cluster.label_node("node-1", open="other")
        cluster.settle(20)
        cluster.label_node("node-1", open="p")
        cluster.settle(20)
        records = cluster.scheduler.records.of("default/p")
        assert [r.attempt for r in records] == [1, 2, 3]
        assert [r.result for r in records] == ["unschedulable", "unschedulable", "scheduled"]
        assert [r.woken_by for r in records] == ["UnscheduledPodAdd", *["NodeUpdateNodeLabel"] * 2]
        assert [r.woken_hint for r in records] == ["", "gate", "gate"]
        assert [r.sequence for r in records] == sorted(r.sequence for r in records)
        assert records[0].message == "0/2 nodes are available: 2 closed."
        assert [(r.plugin, r.nodes) for r in records[0].refusals] == [("gate", 2)]


def test_errors_and_retries_are_on_record_too():
    plugin = witness({"Score": Status.error("broken")})
    with Cluster(config=ONLY_WITNESS, plugins=[plugin]) as cluster:
        cluster.add(make_nodes(2), make_pod("p"))
        cluster.settle(5)
        records = cluster.scheduler.records.of("default/p")
        assert len(records) == plugin.calls.count("PreFilter") > 1
        assert {(r.result, r.plugin) for r in records} == {("error", "witness")}
        assert len(cluster.scheduler.records) == len(records)


def record(number: int, message: str = "", epoch: NodeEpoch | None = None) -> DecisionRecord:
    made = DecisionRecord(f"default/p{number}", f"u{number}", "s", 1, 0.0)
    made.message, made.diagnosis = message, Diagnosis(epoch=epoch)
    return made


def test_the_ring_is_bounded_in_bytes_and_keeps_the_newest():
    ring = RecordRing(max_bytes=100_000)
    for number in range(1000):
        ring.add(record(number, "x" * (number % 3000)))
        assert ring.bytes <= 100_000
    kept = [r.sequence for r in ring]
    assert kept == list(range(kept[0], 1001))
    assert ring.bytes == sum(r.size for r in ring)
    assert ring.last("default/p999") is not None
    assert ring.last("default/p0") is None


def test_one_record_larger_than_the_ring_is_kept_alone():
    ring = RecordRing(max_bytes=1000)
    ring.add(record(1))
    ring.add(record(2, "x" * 5000))
    assert [r.pod for r in ring] == ["default/p2"]


def test_names_of_nodes_count_once_per_epoch():
    """Nodes that come and go make a table of names for each attempt: that is memory too."""
    ring = RecordRing(max_bytes=1_000_000)
    same = NodeEpoch(0, ("",) * 5000)
    for number in range(200):
        ring.add(record(number, epoch=same))
    assert len(ring) == 200, "one table for all"
    for number in range(200):
        ring.add(record(number, epoch=NodeEpoch(number, ("",) * 5000)))
    assert len(ring) < 40, "a table each"


@pytest.mark.parametrize("missing", ["default/none", "p0", ""])
def test_an_unknown_pod_has_no_record(missing):
    ring = RecordRing()
    ring.add(record(0))
    assert ring.last(missing) is None
    assert ring.of(missing) == []


def test_pods_of_one_template_share_what_they_saw_until_a_node_is_full():
    with Cluster() as cluster:
        cluster.add(make_nodes(8, pods=3), *(make_pod(f"p{i:02}", cpu="100m") for i in range(24)))
        cluster.settle()
        records = [cluster.record(f"p{i:02}") for i in range(24)]
        full = 0
        for number, record in enumerate(sorted(records, key=lambda r: r.sequence)):
            assert record.feasible_nodes == record.total_nodes - full == 8 - full
            assert sum(refusal.nodes for refusal in record.refusals) == full
            taken = [r.node for r in records if r.sequence <= record.sequence]
            full = sum(taken.count(node) == 3 for node in set(taken))
            assert number + 1 == len(taken)
        assert len({id(record.diagnosis) for record in records}) < 24


@pytest.mark.parametrize(("after", "expected"), [(0, [3, 4, 5]), (2, [3, 4, 5]), (3, [4, 5]), (5, []), (9, [])])
def test_a_copy_has_the_records_behind_a_sequence(after, expected):
    ring = RecordRing(max_bytes=3 * SMALL_RECORD)
    for number in range(5):
        ring.add(record(number))
    assert ring.first_sequence == 3
    assert [record.sequence for record in ring.copy(after)] == expected
    assert ring.copy(after).last_sequence == 5
