"""SchedulingGates, PrioritySort, NodeUnschedulable, NodeName, TaintToleration, DefaultBinder: refusals as
kube-scheduler words them, hints as tables, scores against a plain model."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.resources import PODS
from moorage.api.taints import Taint, Toleration
from moorage.framework import CycleState, QueuedPod, QueueingHint, Status
from moorage.framework.status import Normalization, default_normalize
from moorage.plugins.lifecycle import PrioritySort, SchedulingGates
from moorage.plugins.name_and_cordon import NodeName, NodeUnschedulable
from moorage.plugins.taint_toleration import TaintToleration
from moorage.state.node_table import NodeTable
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import config, notes

HANDLE: Any = None
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
CORDON = "node.kubernetes.io/unschedulable"
UNTOLERATED = "node(s) had untolerated taint(s)"


def table_of(*nodes: Any) -> NodeTable:
    table = NodeTable()
    for node in nodes:
        table.set_node(node)
    return table


REFUSALS = [
    pytest.param(NodeUnschedulable, {}, {"unschedulable": True}, "node(s) were unschedulable", id="cordoned"),
    pytest.param(NodeUnschedulable, {}, {}, None, id="not cordoned"),
    pytest.param(
        NodeUnschedulable,
        {"tolerations": [f"{CORDON}:NoSchedule"]},
        {"unschedulable": True},
        None,
        id="cordoned, tolerated",
    ),
    pytest.param(
        NodeUnschedulable,
        {"tolerations": [Toleration(operator="Exists")]},
        {"unschedulable": True},
        None,
        id="cordoned, everything tolerated",
    ),
    pytest.param(
        NodeUnschedulable,
        {"tolerations": [f"{CORDON}:NoExecute"]},
        {"unschedulable": True},
        "node(s) were unschedulable",
        id="cordoned, another effect tolerated",
    ),
    pytest.param(NodeName, {}, {}, None, id="no node named"),
    pytest.param(NodeName, {"node": "n"}, {}, None, id="this node named"),
    pytest.param(NodeName, {"node": "m"}, {}, "node(s) didn't match the requested node name", id="another node named"),
    pytest.param(TaintToleration, {}, {"taints": ["k=v:NoSchedule"]}, UNTOLERATED, id="NoSchedule"),
    pytest.param(TaintToleration, {}, {"taints": ["k=v:NoExecute"]}, UNTOLERATED, id="NoExecute"),
    pytest.param(TaintToleration, {}, {"taints": ["k=v:PreferNoSchedule"]}, None, id="PreferNoSchedule"),
    pytest.param(
        TaintToleration, {"tolerations": ["k=v"]}, {"taints": ["k=v:NoSchedule"]}, None, id="tolerated by value"
    ),
    pytest.param(TaintToleration, {"tolerations": ["k"]}, {"taints": ["k=v:NoSchedule"]}, None, id="tolerated by key"),
    pytest.param(
        TaintToleration, {"tolerations": ["k=w"]}, {"taints": ["k=v:NoSchedule"]}, UNTOLERATED, id="another value"
    ),
    pytest.param(
        TaintToleration,
        {"tolerations": ["k=v:NoExecute"]},
        {"taints": ["k=v:NoSchedule"]},
        UNTOLERATED,
        id="another effect",
    ),
    pytest.param(
        TaintToleration,
        {"tolerations": ["k=v"]},
        {"taints": ["k=v:NoSchedule", "l:NoExecute"]},
        UNTOLERATED,
        id="one of two tolerated",
    ),
]


@pytest.mark.parametrize(("plugin", "pod", "node", "reason"), REFUSALS)
def test_refusals_are_worded_as_upstream_and_beyond_preemption(plugin, pod, node, reason):
    table = table_of(make_node("n", **node), make_node("plain"))
    made = plugin({}, HANDLE)
    answer = made.filter(CycleState(), make_pod("p", **pod), table.nodes()[0])
    assert answer == (None if reason is None else Status.unresolvable(reason))


GATES = [
    pytest.param([], None, id="no gates"),
    pytest.param(["a"], "waiting for scheduling gates: [a]", id="one"),
    pytest.param(["a", "b"], "waiting for scheduling gates: [a b]", id="two"),
]


@pytest.mark.parametrize(("gates", "reason"), GATES)
def test_scheduling_gates(gates, reason):
    answer = SchedulingGates({}, HANDLE).pre_enqueue(make_pod("p", gates=gates))
    assert answer == (None if reason is None else Status.unresolvable(reason))


def test_events_of_a_cluster_tell_all_refusals():
    text = config("NodeUnschedulable", "NodeName", "TaintToleration")
    with Cluster(config=text, flush_after=None) as cluster:
        cluster.add(
            make_node("a", unschedulable=True),
            make_node("b", taints=["k:NoSchedule"]),
            make_node("c", unschedulable=True, taints=["k:NoSchedule"]),
            make_pod("p"),
        )
        cluster.settle()
        assert notes(cluster, "p") == [
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) were unschedulable."
        ]


# Hints

OWN, OTHER = make_pod("p", uid="own"), make_pod("q", uid="other")


def hints(plugin: Any) -> list[Any]:
    return [registration.hint for registration in plugin({}, HANDLE).events_to_register()]


def pod(**options: Any) -> Any:
    return make_pod("p", uid="own", **options)


def node(**options: Any) -> Any:
    return make_node("n", **options)


TAINTED = {"taints": ["k=v:NoSchedule"]}
CORDONED = {"unschedulable": True}
NODE_HINTS = [
    pytest.param(NodeUnschedulable, {}, None, node(), QUEUE, id="a schedulable node comes"),
    pytest.param(NodeUnschedulable, {}, None, node(**CORDONED), SKIP, id="a cordoned node comes"),
    pytest.param(NodeUnschedulable, {}, node(**CORDONED), node(), QUEUE, id="uncordoned"),
    pytest.param(NodeUnschedulable, {}, node(), node(**CORDONED), SKIP, id="cordoned"),
    pytest.param(TaintToleration, {}, None, node(), QUEUE, id="an untainted node comes"),
    pytest.param(TaintToleration, {}, None, node(**TAINTED), SKIP, id="a tainted node comes"),
    pytest.param(TaintToleration, {"tolerations": ["k"]}, None, node(**TAINTED), QUEUE, id="a tolerated node comes"),
    pytest.param(TaintToleration, {}, node(**TAINTED), node(), QUEUE, id="the taint goes"),
    pytest.param(TaintToleration, {}, node(), node(labels={"a": "b"}), SKIP, id="it was tolerated before"),
    pytest.param(TaintToleration, {}, node(**TAINTED), node(taints=["k=w:NoSchedule"]), SKIP, id="another taint"),
    pytest.param(
        TaintToleration, {}, node(**TAINTED), node(taints=["k=v:PreferNoSchedule"]), QUEUE, id="it turns soft"
    ),
]


@pytest.mark.parametrize(("plugin", "options", "old", "new", "expected"), NODE_HINTS)
def test_hints_about_nodes(plugin, options, old, new, expected):
    assert hints(plugin)[0](pod(**options), old, new) is expected


POD_HINTS = [
    pytest.param(NodeUnschedulable, pod(tolerations=[f"{CORDON}:NoSchedule"]), QUEUE, id="tolerates it now"),
    pytest.param(NodeUnschedulable, pod(tolerations=["k"]), SKIP, id="tolerates something else"),
    pytest.param(
        NodeUnschedulable,
        make_pod("q", uid="other", tolerations=[Toleration(operator="Exists")]),
        SKIP,
        id="another pod's cordon",
    ),
    pytest.param(TaintToleration, pod(tolerations=["k"]), QUEUE, id="its own tolerations"),
    pytest.param(TaintToleration, OTHER, SKIP, id="another pod's tolerations"),
    pytest.param(SchedulingGates, pod(), QUEUE, id="its own gates are gone"),
    pytest.param(SchedulingGates, pod(gates=["a"]), SKIP, id="a gate is left"),
    pytest.param(SchedulingGates, OTHER, SKIP, id="another pod's gates"),
]


@pytest.mark.parametrize(("plugin", "new", "expected"), POD_HINTS)
def test_hints_about_the_pod_itself(plugin, new, expected):
    assert hints(plugin)[-1](OWN, OWN, new) is expected


def test_node_name_has_no_hint():
    assert hints(NodeName) == [None]


# Order


@given(st.lists(st.tuples(st.integers(-5, 5) | st.none(), st.integers(0, 5)), max_size=12))
def test_priority_sort_is_higher_priority_then_earlier_timestamp(rows):
    sort = PrioritySort({}, HANDLE)
    queued = [QueuedPod(make_pod(f"p{i}", priority=p), float(t)) for i, (p, t) in enumerate(rows)]
    expected = sorted(queued, key=lambda q: (-(q.pod.spec.priority or 0), q.timestamp))
    assert sorted(queued, key=sort.key) == expected
    for a in queued:
        for b in queued:
            assert sort.less(a, b) == (sort.key(a) < sort.key(b))


# Scores

KEYS, VALUES = ("a", "b"), ("1", "2")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
taints = st.builds(Taint, key=st.sampled_from(KEYS), value=st.sampled_from(VALUES), effect=st.sampled_from(EFFECTS))
tolerations = st.builds(
    Toleration,
    key=st.sampled_from(("", *KEYS)),
    operator=st.sampled_from(("", "Equal", "Exists")),
    value=st.sampled_from(("", *VALUES)),
    effect=st.sampled_from(("", *EFFECTS)),
)


def plainly_tolerated(taint: Taint, given: list[Toleration]) -> bool:
    for one in given:
        if one.effect not in ("", taint.effect) or one.key not in ("", taint.key):
            continue
        if one.operator == "Exists" or one.value == taint.value:
            return True
    return False


def plain_scores(rows: list[list[Taint]], given: list[Toleration]) -> list[int]:
    """countIntolerableTaintsPreferNoSchedule, then DefaultNormalizeScore reversed."""
    soft = [one for one in given if one.effect in ("", "PreferNoSchedule")]
    counts = [sum(t.effect == "PreferNoSchedule" and not plainly_tolerated(t, soft) for t in row) for row in rows]
    highest = max(counts, default=0)
    return [100 if highest == 0 else 100 - 100 * count // highest for count in counts]


@given(st.lists(st.lists(taints, max_size=4), min_size=1, max_size=8), st.lists(tolerations, max_size=4))
def test_taint_toleration_filters_and_scores_as_its_plain_model(rows, given_):
    plugin, state = TaintToleration({}, HANDLE), CycleState()
    table = table_of(*(make_node(f"n{i}", taints=row) for i, row in enumerate(rows)))
    nodes, incoming = table.nodes(), make_pod("p", tolerations=given_)
    hard = ("NoSchedule", "NoExecute")
    expected = [any(t.effect in hard and not plainly_tolerated(t, given_) for t in row) for row in rows]
    assert [plugin.filter(state, incoming, view) is not None for view in nodes] == expected
    refusals = plugin.filter_nodes(state, incoming, nodes)
    hit = [entry.mask for entry in refusals.entries] if refusals is not None else []
    assert np.logical_or.reduce([np.zeros(len(nodes), dtype=np.bool_), *hit]).tolist() == expected
    assert plugin.pre_score(state, incoming, nodes) is None
    out = np.zeros(len(nodes), dtype=np.int64)
    same = plugin.score_into(state, incoming, nodes, out)
    raw = out if same is None else np.full_like(out, same)
    assert [plugin.score(state, incoming, view) for view in nodes] == raw.tolist()
    assert plugin.normalization is Normalization.REVERSED
    assert default_normalize(raw, reverse=True).tolist() == plain_scores(rows, given_)


@pytest.mark.parametrize("seed", range(5))
def test_in_a_cluster_the_least_disliked_node_wins(seed):
    print(f"seed {seed}")
    rng = random.Random(seed)
    rows = [[Taint(key=f"k{j}", effect="PreferNoSchedule") for j in range(rng.randrange(4))] for _ in range(6)]
    given_ = [Toleration(key="k0", operator="Exists")]
    with Cluster(config=config("TaintToleration")) as cluster:
        cluster.add(*(make_node(f"n{i}", taints=row) for i, row in enumerate(rows)))
        cluster.add(make_pod("p", tolerations=given_))
        cluster.settle()
        scores = plain_scores(rows, given_)
        assert cluster.node_of("p") == f"n{scores.index(max(scores))}"


# Binding


def test_the_default_binder_names_the_pod_by_its_uid():
    with Cluster(config=config()) as cluster:
        cluster.faults.add(Fault(faults.delay(2), verb="bind"))
        cluster.add(make_node("a"), make_pod("p", uid="one"))
        cluster.settle(0.5)
        cluster.store.delete(PODS, "p", namespace="default", grace_period=0)
        cluster.add(make_pod("p", uid="two", scheduler="nobody"))
        cluster.settle(10)
        assert cluster.node_of("p") == "", "another pod of that name is not bound"


@pytest.mark.parametrize(
    "effect", [faults.server_error(500), faults.not_sent(), faults.too_many_requests()], ids=["500", "refused", "429"]
)
def test_a_refused_binding_is_an_error_with_its_text(effect):
    with Cluster(config=config()) as cluster:
        cluster.faults.add(Fault(effect, verb="bind", times=None))
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(0.5)
        (note,) = notes(cluster, "p")
        assert note.startswith('running Bind plugin "DefaultBinder": ')
