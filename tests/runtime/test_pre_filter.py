"""Several PreFilter plugins: which are asked, which answer is reported, and which nodes remain."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework import PreFilterPlugin, PreFilterResult, Status
from moorage.testing import make_node, make_pod
from tests.runtime.kit import cluster_with


def answering(mine: str, answer: Any, asked: list[str]) -> type[PreFilterPlugin]:
    class Answers(PreFilterPlugin):
        name = mine

        def pre_filter(self, state, pod, nodes):
            asked.append(mine)
            return answer

    return Answers


def only(*names: str) -> PreFilterResult:
    return PreFilterResult(frozenset(names))


NO, NEVER = Status.unschedulable, Status.unresolvable
CASES = [
    pytest.param([NO("x"), NO("y"), None], "pqr", "0/3 nodes are available: y.", id="the last refusal is told"),
    pytest.param([NO("x"), NEVER("y"), NO("z")], "pq", "0/3 nodes are available: y.", id="hopeless ends it at once"),
    pytest.param([NO("x"), Status.skip(), None], "pqr", "0/3 nodes are available: x.", id="the others still run"),
    pytest.param(
        [only("a"), only("b")],
        "pq",
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [p q] simultaneously.",
        id="nothing in common",
    ),
    pytest.param(
        [only("zz")],
        "p",
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [p].",
        id="only names that are no nodes",
    ),
    pytest.param([NO("x"), only("a")], "pq", "0/3 nodes are available: x.", id="refused and narrowed"),
]


@pytest.mark.parametrize(("answers", "order", "note"), CASES)
def test_refusals(answers, order, note):
    asked: list[str] = []
    plugins = [answering(name, answer, asked) for name, answer in zip("pqr", answers, strict=False)]
    with cluster_with(*plugins) as cluster:
        cluster.add(*(make_node(name) for name in "abc"), make_pod("x"))
        cluster.settle(0.1)
        assert [event.note for event in cluster.events("x")] == [note]
    assert "".join(asked) == order


def test_results_are_intersected():
    plugins = [answering("p", only("a", "b"), []), answering("q", only("b", "c"), [])]
    with cluster_with(*plugins) as cluster:
        cluster.add(*(make_node(name) for name in "abc"), make_pod("x"))
        cluster.settle(0.1)
        assert cluster.node_of("x") == "b"
        assert cluster.record("x").evaluated_nodes == 1


def test_who_narrowed_is_a_rejector_when_nothing_fits():
    class Opens(PreFilterPlugin):
        name = "opens"

        def pre_filter(self, state, pod, nodes):
            return only("d")

    with cluster_with(Opens) as cluster:
        cluster.add(make_node("a"), make_pod("x"))
        cluster.settle(5)
        assert cluster.node_of("x") == ""
        cluster.add(make_node("d"))
        cluster.settle(2)
        assert cluster.node_of("x") == "d"
        assert cluster.record("x").woken_hint == "opens"
