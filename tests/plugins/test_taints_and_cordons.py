"""TaintToleration, NodeUnschedulable and NodeName: all forms against plain models, and their hints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.taints import Toleration
from moorage.framework.events import QueueingHint
from moorage.framework.status import Code, Normalization
from moorage.plugins import name_and_cordon, taint_toleration
from moorage.testing import make_node, make_pod
from tests.plugins.one_plugin import ask

UU = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
TAINTED = (UU, ("node(s) had untolerated taint(s)",))
CORDONED = (UU, ("node(s) were unschedulable",))
ELSEWHERE = (UU, ("node(s) didn't match the requested node name",))
CORDON = "node.kubernetes.io/unschedulable:NoSchedule"


@pytest.mark.parametrize(
    ("tolerations", "refused"),
    [
        pytest.param([], {"hard", "evicting"}, id="none"),
        pytest.param(["a=1"], {"evicting"}, id="by value, any effect"),
        pytest.param(["a=2"], {"hard", "evicting"}, id="another value"),
        pytest.param(["a:NoExecute"], {"hard"}, id="by effect"),
        pytest.param([Toleration(operator="Exists")], set(), id="everything"),
    ],
)
def test_untolerated_taints_refuse(tolerations, refused):
    nodes = [
        make_node("plain"),
        make_node("hard", taints=["a=1:NoSchedule"]),
        make_node("evicting", taints=["a=3:NoExecute"]),
        make_node("soft", taints=["a=1:PreferNoSchedule"]),
    ]
    asked = ask("TaintToleration", make_pod("p", tolerations=tolerations), nodes)
    assert asked.refused() == dict.fromkeys(refused, TAINTED)


def test_soft_taints_count_against_a_node():
    nodes = [make_node("none"), make_node("two", taints=["a:PreferNoSchedule", "b:PreferNoSchedule"])]
    asked = ask("TaintToleration", make_pod("p", tolerations=["a:NoSchedule"]), nodes)
    assert asked.raw_scores() == asked.scores() == {"none": 0, "two": 2}
    assert ask("TaintToleration", make_pod("p", tolerations=["a"]), nodes).scores() == {"none": 0, "two": 1}
    assert asked.plugin.normalization is Normalization.REVERSED


def test_a_cluster_without_soft_taints_scores_alike():
    assert ask("TaintToleration", make_pod("p"), [make_node("n", taints=["a"])]).scores() == {"n": 0}


effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
taints = st.lists(st.builds("{}={}:{}".format, st.sampled_from("ab"), st.sampled_from("12"), effects), max_size=3)
tolerations = st.lists(
    st.builds(
        lambda key, operator, value, effect: Toleration(key=key, operator=operator, value=value, effect=effect),
        st.sampled_from(["a", "b", ""]),
        st.sampled_from(["Exists", "Equal", ""]),
        st.sampled_from(["", "1", "2"]),
        effects | st.just(""),
    ),
    max_size=3,
)


def plain_tolerates(toleration: Toleration, key: str, value: str, effect: str) -> bool:
    fits = toleration.effect in ("", effect) and toleration.key in ("", key)
    return fits and (toleration.operator == "Exists" or toleration.value == value)


def plain_untolerated(tolerations, written: str, effects: tuple[str, ...]) -> bool:
    pair, effect = written.split(":")
    key, value = pair.split("=")
    return effect in effects and not any(plain_tolerates(t, key, value, effect) for t in tolerations)


@given(st.lists(taints, min_size=1, max_size=4), tolerations)
def test_taint_toleration_agrees_with_the_plain_model(nodes, tolerations):
    made = [make_node(f"n{i}", taints=own) for i, own in enumerate(nodes)]
    asked = ask("TaintToleration", make_pod("p", tolerations=tolerations), made)
    hard, soft = ("NoSchedule", "NoExecute"), ("PreferNoSchedule",)
    assert set(asked.refused()) == {
        f"n{i}" for i, own in enumerate(nodes) if any(plain_untolerated(tolerations, t, hard) for t in own)
    }
    assert asked.scores() == {
        f"n{i}": sum(plain_untolerated(tolerations, t, soft) for t in own) for i, own in enumerate(nodes)
    }


@given(st.lists(st.booleans(), min_size=1, max_size=5), st.booleans())
def test_cordoned_nodes_take_only_pods_that_tolerate_it(cordoned, tolerated):
    nodes = [make_node(f"n{i}", unschedulable=yes) for i, yes in enumerate(cordoned)]
    asked = ask("NodeUnschedulable", make_pod("p", tolerations=[CORDON] if tolerated else []), nodes)
    refused = [] if tolerated else [f"n{i}" for i, yes in enumerate(cordoned) if yes]
    assert asked.refused() == dict.fromkeys(refused, CORDONED)


@pytest.mark.parametrize(("wanted", "refused"), [("", ""), ("a", "bc"), ("gone", "abc")])
def test_a_named_node_is_the_only_one(wanted, refused):
    asked = ask("NodeName", make_pod("p"), [make_node(name) for name in "abc"])
    asked.pod = make_pod("p", node=wanted)
    assert asked.refused() == dict.fromkeys(refused, ELSEWHERE)


def test_hints():
    queue, skip = QueueingHint.QUEUE, QueueingHint.SKIP
    pod, plain, tainted = make_pod("p"), make_node("n"), make_node("n", taints=["a"])
    assert taint_toleration.node_is_tolerated(pod, None, plain) is queue
    assert taint_toleration.node_is_tolerated(pod, None, tainted) is skip
    assert taint_toleration.node_is_tolerated(pod, tainted, plain) is queue
    assert taint_toleration.node_is_tolerated(pod, plain, plain) is skip
    assert taint_toleration.own_toleration(pod, pod, pod) is queue
    assert taint_toleration.own_toleration(pod, pod, make_pod("other")) is skip
    assert name_and_cordon.node_is_schedulable(pod, None, plain) is queue
    assert name_and_cordon.node_is_schedulable(pod, None, make_node("n", unschedulable=True)) is skip
    assert name_and_cordon.own_toleration(pod, pod, make_pod("p", tolerations=[CORDON])) is queue
    assert name_and_cordon.own_toleration(pod, pod, pod) is skip
