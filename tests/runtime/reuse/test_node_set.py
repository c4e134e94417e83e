"""What is known about nodes is shared by pods, and no pod notices: order, reasons and failures stay."""

from __future__ import annotations

import pytest

from moorage.framework import FilterPlugin, PreFilterPlugin, Reads, ReusablePlugin, ScorePlugin, Status
from moorage.testing import make_node, make_nodes, make_pod
from tests.scheduler.kit import config


class Quiet(FilterPlugin, ReusablePlugin):
    """Refuses nodes with a label, and counts how often it is asked."""

    name = "quiet"
    few_signs = True
    asked = 0

    def filter(self, state, pod, node):
        type(self).asked += 1
        return Status.unschedulable("too loud") if node.labels.get("loud") else None

    def sign(self, pod):
        return ()

    def reads(self, pod):
        return (Reads.NODE,)


class Picky(FilterPlugin):
    """Refuses the same nodes for another reason; nothing of it is remembered."""

    name = "picky"

    def filter(self, state, pod, node):
        return Status.unschedulable("not this one") if node.labels.get("loud") else None


def pods(number: int):
    """All with other requests, so that no two have one signature."""
    return [make_pod(f"p{i}", cpu=f"{i + 1}m", labels={"only": f"{i}"}) for i in range(number)]


def test_plugins_that_look_at_nodes_alone_are_asked_until_the_answer_is_kept_or_a_node_changes(moorage_cluster):
    Quiet.asked = 0
    cluster = moorage_cluster(config=config("quiet", "NodeResourcesFit"), plugins=[Quiet])
    cluster.add(make_nodes(3))
    cluster.settle()
    cluster.add(*pods(5))
    cluster.settle()
    assert Quiet.asked == 6  # the answers are kept for the second pod: most that tenants ask for occur once
    cluster.label_node("node-1", loud="yes")
    cluster.add(make_pod("late", cpu="100m"))
    cluster.settle()
    assert Quiet.asked == 9
    assert [(r.reasons, r.nodes) for r in cluster.record("late").refusals] == [(("too loud",), 1)]


@pytest.mark.parametrize(("order", "reason"), [("quiet picky", "too loud"), ("picky quiet", "not this one")])
def test_the_first_filter_in_the_configured_order_is_the_rejector(moorage_cluster, order, reason):
    cluster = moorage_cluster(config=config(*order.split(), "NodeResourcesFit"), plugins=[Quiet, Picky])
    cluster.add(make_node("a", labels={"loud": "yes"}), *pods(2))
    cluster.settle(0.1)
    for name in ("p0", "p1"):
        assert cluster.events(name)[0].note == f"0/1 nodes are available: 1 {reason}."


class Gate(PreFilterPlugin):
    """Refuses pods as a whole; asked about each of them."""

    name = "gate"

    def pre_filter(self, state, pod, nodes):
        return Status.unresolvable("closed") if pod.labels.get("only") == "1" else None


def test_a_refusal_of_the_pod_goes_before_what_is_known_about_nodes(moorage_cluster):
    cluster = moorage_cluster(config=config("quiet", "gate", "NodeResourcesFit"), plugins=[Quiet, Gate])
    cluster.add(make_node("a", labels={"loud": "yes"}), make_node("b"))
    cluster.settle()
    cluster.add(*pods(3))
    cluster.settle(0.1)
    assert [cluster.node_of(f"p{i}") for i in (0, 2)] == ["b", "b"]
    assert cluster.events("p1")[0].note == "0/2 nodes are available: closed."


class Steady(ScorePlugin, ReusablePlugin):
    """Points for a label; scaled by whoever is feasible."""

    name = "steady"
    few_signs = True

    def score(self, state, pod, node):
        return int(node.labels.get("points", 0))

    def normalize_scores(self, state, pod, scores):
        top = max(scores.values()) or 1
        return {name: 100 * score // top for name, score in scores.items()}

    def sign(self, pod):
        return ()

    def reads(self, pod):
        return (Reads.NODE,)


def test_scores_that_are_known_are_normalised_over_the_remaining_nodes(moorage_cluster):
    cluster = moorage_cluster(config=config("steady", "NodeResourcesFit"), plugins=[Steady])
    cluster.add(
        make_node("big", cpu="8", labels={"points": "200"}),
        make_node("small", cpu="1", labels={"points": "400"}),
        make_node("none", cpu="8"),
    )
    cluster.settle()
    scored = {}
    for name, cpu in (("any", "100m"), ("large", "4")):
        cluster.add(make_pod(name, cpu=cpu, labels={"only": name}))
        cluster.settle()
        scored[name] = {
            entry.node: next(p.normalized for p in entry.plugins if p.plugin == "steady")
            for entry in cluster.record(name).scores
        }
    assert scored["any"] == {"small": 100, "big": 50, "none": 0}
    assert scored["large"] == {"big": 100, "none": 0}


class Fails(Quiet):
    name = "quiet"

    def filter(self, state, pod, node):
        raise RuntimeError("broken")


def test_a_failure_while_asking_about_nodes_names_plugin_pod_and_node(moorage_cluster):
    cluster = moorage_cluster(config=config("quiet"), plugins=[Fails])
    cluster.add(make_nodes(1), make_pod("p"))
    cluster.settle(0.1)
    assert cluster.events("p")[0].note.startswith(
        'running "quiet" filter plugin: pod "default/p", node "node-0": RuntimeError: broken'
    )
