"""Remedies of outside plugins: what works is shown, and a broken plugin is named and does no harm."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.resources import NODES, PODS
from moorage.app.configuration import configure
from moorage.app.offline import question_engine
from moorage.explain.explanation import Explanation, explain
from moorage.explain.judging import Judge
from moorage.framework import Detail, ExplainingPlugin, FilterPlugin, Proposal, Status
from moorage.snapshots.cluster import ClusterObjects
from moorage.telemetry.logs import VALUES
from moorage.testing import make_node, make_pod

TEAM = "team"
WRONG: Any = "?"


class Teams(FilterPlugin, ExplainingPlugin):
    """A pod runs only on nodes of its team."""

    name = "Teams"

    def filter(self, state, pod, node):
        mine = pod.labels.get(TEAM) == node.labels.get(TEAM)
        return None if mine else Status.unresolvable("node(s) belong to another team")

    def explain(self, state, pod, node):
        yield Detail("team", asked=pod.labels.get(TEAM), there=node.labels.get(TEAM))

    def remedies(self, state, pod, node):
        team = node.labels[TEAM]

        def move(given):
            labels = {**given.labels, TEAM: team}
            return replace(given, metadata=replace(given.metadata, labels=labels))

        yield Proposal(f"move to {team}", f"move the pod to team {team}", 5, move)
        meta = replace(node.node.metadata, labels={**node.labels, TEAM: pod.labels[TEAM]})
        change = (NODES, node.node, replace(node.node, metadata=meta))
        yield Proposal("lend a node", f"lend node {node.name} to team {pod.labels[TEAM]}", 3, changes=(change,))


def ask(plugin: type[Any], pods: Iterable[Any] = (), **options: Any) -> Explanation:
    """Explain a pod of team a, in a cluster whose only node belongs to team b."""
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": plugin.name}]}}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configured = configure(json.dumps({**head, "profiles": [profile]}), plugins=[plugin], discover=False)
    pod = make_pod("p", cpu="1", labels={TEAM: "a"}, **options)
    node = make_node("n", cpu="4", labels={TEAM: "b"})
    engine = question_engine(configured, ClusterObjects({NODES: [node], PODS: [*pods, pod]}).changes())
    return asyncio.run(explain(Judge.of(engine, pod), pod))


def test_what_an_outside_plugin_proposes_is_tried_and_shown():
    found = ask(Teams)
    assert [(each.text, each.nodes, each.node) for each in found.remedies] == [
        ("Lend node n to team a", 1, "n"),
        ("Move the pod to team b", 1, "n"),
    ]


def test_it_is_combined_with_what_other_plugins_propose():
    busy = make_pod("busy", cpu="3500m", node="n", priority=100)
    texts = [each.text for each in ask(Teams, [busy]).remedies]
    assert texts[0] == "Request at most 500m cpu, and lend node n to team a"


class Useless(Teams):
    name = "Useless"

    def remedies(self, state, pod, node):
        yield Proposal("annotate", "annotate the pod", 1, lambda given: replace(given, metadata=given.metadata))


def test_a_proposal_that_does_not_help_is_not_shown():
    assert [each.text for each in ask(Useless).remedies] == []


class Endless(Teams):
    name = "Endless"
    asked = 0

    def remedies(self, state, pod, node):
        while True:
            Endless.asked += 1
            yield Proposal(f"{Endless.asked}", "nothing", 1, lambda given: given)


def test_only_a_few_proposals_of_one_plugin_are_considered():
    assert ask(Endless).remedies == []
    assert Endless.asked == 8


def broken(answer: Any) -> type[Teams]:
    class Broken(Teams):
        name = "Broken"

        def remedies(self, state, pod, node):
            return answer()

    return Broken


def _no_pod(given: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda: 1 // 0, "ZeroDivisionError"),
        (lambda: 5, "'int' object is not iterable"),
        (lambda: ["tolerate it"], "remedies() must yield Proposal, got 'tolerate it'"),
        (lambda: [Proposal("k", "nothing", 1)], "the Proposal 'nothing' changes nothing"),
        (lambda: [Proposal("k", "t", WRONG, _no_pod)], "the cost of a Proposal is wrong: '?'"),
        (lambda: [Proposal("k", "t", 1, _no_pod)], "relax must return a Pod, got None"),
        (lambda: [Proposal("k", "t", 1, changes=(WRONG,))], "a change is a tuple of a Resource"),
        (lambda: [Proposal("k", "t", 1, changes=((NODES, None, {}),))], "a change needs objects"),
    ],
    ids=["raises", "no list", "a text", "no change", "cost", "no pod", "no tuple", "no object"],
)
def test_a_broken_plugin_is_named_and_skipped(answer, problem, caplog):
    found = ask(broken(answer))
    assert found.remedies == []
    assert found.message.startswith("0/1 nodes are available: 1 node(s) belong to another team.")
    [record] = caplog.records
    values = getattr(record, VALUES)
    assert (values["plugin"], values["point"]) == ("Broken", "Remedies")
    assert problem in caplog.text


class Talking(Teams):
    name = "Talking"

    def facts(self, state, pod, nodes):
        return [f"Team {pod.labels[TEAM]} has no node; {len(nodes)} node belongs to others."]


def test_facts_of_an_outside_plugin_are_shown():
    assert ask(Talking).facts == ("Team a has no node; 1 node belongs to others.",)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda: 1 // 0, "ZeroDivisionError"),
        (lambda: [7], "facts() must yield str, got 7"),
        (lambda: 5, "not iterable"),
    ],
    ids=["raises", "a number in it", "no list"],
)
def test_a_plugin_that_fails_to_state_facts_is_named(answer, problem):
    class Failing(Teams):
        name = "Failing"

        def facts(self, state, pod, nodes):
            return answer()

    [fact] = ask(Failing).facts
    assert fact.startswith("Failing has no facts because it failed: ")
    assert problem in fact


def test_many_or_long_facts_are_cut():
    class Endless2(Teams):
        name = "Endless2"

        def facts(self, state, pod, nodes):
            while True:
                yield "x" * 10_000 + str(id(object()))

    assert sum(map(len, ask(Endless2).facts)) < 10_000
