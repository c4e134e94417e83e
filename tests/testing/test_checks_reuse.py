"""`Cluster(verify_reuse=True)` finds signs and reads that leave something out, and names the plugin."""

from __future__ import annotations

import pytest

from moorage.framework import FilterPlugin, Reads, ReusablePlugin, ScorePlugin, Status
from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.scheduler.kit import config


class Pinned(FilterPlugin, ReusablePlugin):
    """Reads an annotation of the pod; whether its sign says so is up to the subclass."""

    name = "pinned"

    def filter(self, state, pod, node):
        return None if pod.annotations.get("on", node.name) == node.name else Status.unschedulable("elsewhere")

    def sign(self, pod):
        return pod.annotations.get("on", "")

    def reads(self, pod):
        return (Reads.NODE,)


class Forgetful(Pinned):
    def sign(self, pod):
        return ()


class Favourite(ScorePlugin, ReusablePlugin):
    """Scores by data of its own, which `reads` does not name."""

    name = "favourite"
    node = "node-0"

    def score(self, state, pod, node):
        return 100 if node.name == type(self).node else 0

    def sign(self, pod):
        return ()

    def reads(self, pod):
        return (Reads.NODE,)


def place(cluster, name, **options):
    cluster.add(make_pod(name, **options))
    cluster.settle()


def test_an_honest_plugin_passes():
    with Cluster(config=config("pinned"), plugins=[Pinned], verify_reuse=True) as cluster:
        cluster.add(make_nodes(2))
        for number in range(8):
            place(cluster, f"p{number}", annotations={"on": f"node-{number % 2}"})
            assert cluster.node_of(f"p{number}") == f"node-{number % 2}"


def test_a_sign_that_leaves_something_out_is_found():
    with Cluster(config=config("pinned"), plugins=[Forgetful], verify_reuse=True) as cluster:
        cluster.add(make_node("node-0"), make_node("node-1"))
        for number in range(3):
            place(cluster, f"p{number}", annotations={"on": "node-0"})
        with pytest.raises(AssertionError, match=r"pod default/late: .* check sign\(\) and reads\(\) of pinned"):
            place(cluster, "late", annotations={"on": "node-1"})


def test_reads_that_leave_something_out_are_found(monkeypatch):
    with Cluster(config=config("favourite"), plugins=[Favourite], verify_reuse=True) as cluster:
        cluster.add(make_nodes(2))
        for number in range(3):
            place(cluster, f"p{number}")
        monkeypatch.setattr(Favourite, "node", "node-1")
        with pytest.raises(AssertionError, match=r"reused answers choose node node-0, fresh ones node-1; .*favourite"):
            place(cluster, "late")


def test_without_the_check_the_wrong_answer_goes_unnoticed():
    with Cluster(config=config("pinned"), plugins=[Forgetful]) as cluster:
        cluster.add(make_node("node-0"), make_node("node-1"))
        for number in range(3):
            place(cluster, f"p{number}", annotations={"on": "node-0"})
        place(cluster, "late", annotations={"on": "node-1"})
        assert cluster.node_of("late") == "node-0"
