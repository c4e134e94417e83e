"""One pod through all extension points, in the right order, for success and for each way to fail."""

from __future__ import annotations

import pytest

from moorage.framework import PostFilterResult, PreBindPreFlight, PreFilterResult, Status
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import the_pod
from tests.scheduler.recorder import ONLY_WITNESS, SKIP, witness

TWO = (make_node("a"), make_node("b"))
WHOLE_WAY = [
    "PreEnqueue", "PreFilter", "Filter a", "Filter b", "PreScore", "Score a", "Score b", "NormalizeScore",
    "Reserve a", "Permit a", "PreBindPreFlight a", "PreBind a", "Bind a", "PostBind a",
]  # fmt: skip
UP_TO_PERMIT = WHOLE_WAY[: WHOLE_WAY.index("Permit a") + 1]


def run(answers, nodes=TWO, pod=None, seconds=0.5):
    """One pod on a fresh cluster; returns the cluster (closed) and the calls of its first attempt."""
    plugin = witness(answers)
    with Cluster(config=ONLY_WITNESS, plugins=[plugin]) as cluster:
        cluster.add(*nodes, pod or make_pod("p"))
        cluster.settle(seconds)
        cluster.validate()
        calls = list(plugin.calls)
    again = [i for i, call in enumerate(calls) if i and call == "PreEnqueue"]
    return cluster, calls[: again[0]] if again else calls


def test_a_pod_passes_every_point_in_order():
    cluster, calls = run({})
    assert calls == WHOLE_WAY
    assert cluster.node_of("p") == "a"
    assert [event.note for event in cluster.events("p")] == ["Successfully assigned default/p to a"]


def test_one_feasible_node_is_not_scored():
    _, calls = run({}, nodes=TWO[:1])
    assert calls == [c for c in WHOLE_WAY if not c.endswith(" b") and "Score" not in c]


FAILURES = [
    pytest.param(
        {"PreEnqueue": Status.unresolvable("gated")}, ["PreEnqueue"], "", id="PreEnqueue refuses: never tried"
    ),
    pytest.param(
        {"PreFilter": Status.unresolvable("no way")},
        ["PreEnqueue", "PreFilter", "PostFilter"],
        "0/2 nodes are available: no way. nothing to do",
        id="PreFilter unresolvable: straight to PostFilter",
    ),
    pytest.param(
        {"PreFilter": Status.unschedulable("not now")},
        ["PreEnqueue", "PreFilter", "PostFilter"],
        "0/2 nodes are available: not now. nothing to do",
        id="PreFilter unschedulable",
    ),
    pytest.param(
        {"PreFilter": PreFilterResult(frozenset())},
        ["PreEnqueue", "PreFilter", "PostFilter"],
        "0/2 nodes are available: node(s) didn't satisfy plugin witness. nothing to do",
        id="PreFilter leaves no node",
    ),
    pytest.param(
        {"PreFilter": Status.error("broken")},
        ["PreEnqueue", "PreFilter"],
        'running PreFilter plugin "witness": broken',
        id="PreFilter error",
    ),
    pytest.param(
        {"Filter": lambda node: Status.unschedulable(f"not {node}")},
        ["PreEnqueue", "PreFilter", "Filter a", "Filter b", "PostFilter"],
        "0/2 nodes are available: 1 not a, 1 not b. nothing to do",
        id="Filter refuses all",
    ),
    pytest.param(
        {"Filter": lambda node: Status.error("broken")},
        ["PreEnqueue", "PreFilter", "Filter a"],
        'running "witness" filter plugin: broken',
        id="Filter error aborts",
    ),
    pytest.param(
        {"Filter": lambda node: Status.unschedulable("full"), "PostFilter": Status.success()},
        ["PreEnqueue", "PreFilter", "Filter a", "Filter b", "PostFilter"],
        "0/2 nodes are available: 2 full.",
        id="PostFilter success still ends unschedulable",
    ),
    pytest.param(
        {"Filter": lambda node: Status.unschedulable("full"), "PostFilter": Status.error("broken")},
        ["PreEnqueue", "PreFilter", "Filter a", "Filter b", "PostFilter"],
        "0/2 nodes are available: 2 full. broken",
        id="PostFilter error",
    ),
    pytest.param(
        {"PreScore": Status.unschedulable("odd")},
        ["PreEnqueue", "PreFilter", "Filter a", "Filter b", "PreScore"],
        'running PreScore plugin "witness": odd',
        id="PreScore cannot refuse, only fail",
    ),
    pytest.param(
        {"Score": Status.error("broken")},
        ["PreEnqueue", "PreFilter", "Filter a", "Filter b", "PreScore", "Score a"],
        'running Score plugins: plugin "witness" failed with: broken',
        id="Score error",
    ),
    pytest.param(
        {"NormalizeScore": Status.error("broken")},
        WHOLE_WAY[:8],
        'running Normalize on Score plugins: plugin "witness" failed with: broken',
        id="NormalizeScore error",
    ),
    pytest.param(
        {"NormalizeScore": {"a": 101, "b": 0}},
        WHOLE_WAY[:8],
        'applying score defaultWeights on Score plugins: plugin "witness" returns an invalid score 101, '
        'it should in the range of [0, 100] after normalizing (pod "default/p", node "a")',
        id="score above 100",
    ),
    pytest.param(
        {"Reserve": Status.unschedulable("booked")},
        [*WHOLE_WAY[:9], "Unreserve a"],
        "0/1 nodes are available: 1 booked.",
        id="Reserve refuses",
    ),
    pytest.param(
        {"Reserve": Status.error("broken")},
        [*WHOLE_WAY[:9], "Unreserve a"],
        'running Reserve plugin "witness": broken',
        id="Reserve error",
    ),
    pytest.param(
        {"Permit": Status.unschedulable("denied")},
        [*UP_TO_PERMIT, "Unreserve a"],
        "0/1 nodes are available: 1 denied.",
        id="Permit denies",
    ),
    pytest.param(
        {"PreBindPreFlight": Status.error("broken")},
        [*UP_TO_PERMIT, "PreBindPreFlight a", "Unreserve a"],
        'running PreBindPreFlight plugin "witness": broken',
        id="pre-flight error",
    ),
    pytest.param(
        {"PreBind": Status.unschedulable("no volume")},
        [*WHOLE_WAY[:12], "Unreserve a"],
        "no volume",
        id="PreBind refusal is an error by then",
    ),
    pytest.param(
        {"PreBind": Status.error("broken")},
        [*WHOLE_WAY[:12], "Unreserve a"],
        'running PreBind plugin "witness": broken',
        id="PreBind error",
    ),
    pytest.param(
        {"Bind": Status.error("broken")},
        [*WHOLE_WAY[:13], "Unreserve a"],
        'running Bind plugin "witness": broken',
        id="Bind error",
    ),
]


@pytest.mark.parametrize(("answers", "expected", "message"), FAILURES)
def test_each_way_to_fail(answers, expected, message):
    cluster, calls = run(answers)
    assert calls == expected
    assert cluster.node_of("p") == ""
    notes = [event.note for event in cluster.events("p")]
    assert notes[:1] == ([message] if message else [])
    assert not list(cluster.scheduler.engine.cache.pods()), "nothing stays assumed"


def test_permit_times_out():
    cluster, calls = run({"Permit": Status.wait(timeout=0.2)})
    assert calls == [*UP_TO_PERMIT, "PreBindPreFlight a", "Unreserve a"]
    note = "0/1 nodes are available: 1 rejected due to timeout after waiting 200ms at plugin witness."
    assert cluster.events("p")[0].note == note


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"Filter": lambda node: Status.unschedulable("full")}, "Unschedulable"),
        ({"Permit": Status.unschedulable("denied")}, "Unschedulable"),
        ({"Score": Status.error("broken")}, "SchedulerError"),
        ({"Bind": Status.error("broken")}, "SchedulerError"),
    ],
)
def test_the_condition_tells_refusal_from_error(answers, reason):
    cluster, _ = run(answers)
    (condition,) = [c for c in cluster.pod("p").status.conditions if c.type == "PodScheduled"]
    assert (condition.status, condition.reason) == ("False", reason)
    assert condition.message == cluster.events("p")[0].note


def test_bind_skip_passes_on_to_the_next_binder():
    cluster, calls = run({"Bind": SKIP})
    assert calls == WHOLE_WAY
    assert cluster.node_of("p") == "a"
    assert [call.verb for call in cluster.faults.calls if call.verb == "bind"] == ["bind"]


def test_skips_leave_the_plugin_out():
    _, calls = run({"PreFilter": SKIP, "PreScore": SKIP, "PreBindPreFlight": SKIP})
    left_out = ("Filter a", "Filter b", "Score a", "Score b", "NormalizeScore", "PreBind a")
    assert calls == [call for call in WHOLE_WAY if call not in left_out]


def test_post_filter_nominates_and_the_nominated_node_is_tried_alone_first():
    answers = {
        "Filter": lambda node: Status.unschedulable("full"),
        "PostFilter": (PostFilterResult("b"), Status.success()),
    }
    plugin = witness(answers)
    with Cluster(config=ONLY_WITNESS, plugins=[plugin]) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle()
        assert the_pod(cluster, "p").nominated_node_name == "b"
        plugin.calls.clear()
        del plugin.answers["Filter"]
        cluster.label_node("a", changed="yes")
        cluster.settle(2)
        assert plugin.calls[:3] == ["PreEnqueue", "PreFilter", "Filter b"]
        assert cluster.node_of("p") == "b"
        assert the_pod(cluster, "p").nominated_node_name == ""


def test_pre_filter_narrows_the_nodes():
    cluster, calls = run({"PreFilter": PreFilterResult(frozenset({"b", "unknown"}))})
    assert [call for call in calls if call.startswith("Filter")] == ["Filter b"]
    assert cluster.node_of("p") == "b"
    cluster, _ = run({"PreFilter": PreFilterResult(frozenset({"b"})), "Filter": lambda node: Status.unresolvable("no")})
    note = cluster.events("p")[0].note
    refused = "1 no, 1 node(s) didn't satisfy plugin(s) [witness]"
    assert note == f"0/2 nodes are available: {refused}. nothing to do"


def test_pre_flight_announces_the_node_before_work_begins():
    plugin = witness({"PreBindPreFlight": PreBindPreFlight(allow_parallel=True)})
    seen = []
    with Cluster(config=ONLY_WITNESS, plugins=[plugin]) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle()
        seen = [call for call in cluster.faults.calls if call.verb in ("patch", "bind")]
        assert [call.verb for call in seen] == ["patch", "bind"]
        assert cluster.node_of("p") == "a"


def test_empty_cluster():
    cluster, calls = run({}, nodes=())
    assert calls == ["PreEnqueue"]
    assert cluster.events("p")[0].note == "no nodes available to schedule pods"
