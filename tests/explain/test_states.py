"""Pods and clusters in unusual states: each gets an answer, or an error that names what is missing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.app.configuration import configure
from moorage.explain.judging import Judge, find_pod, unassigned
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.optional import Detail, ExplainingPlugin
from moorage.framework.points import FilterPlugin, PreFilterPlugin, ScorePlugin
from moorage.framework.status import Status
from moorage.testing import make_node, make_nodes, make_pod
from tests.explain.world import ask, budget, load

GATE = "waiting for scheduling gates: [quota]"
TWO = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: strict
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
"""


def terminating(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


def test_a_gated_pod_is_explained_as_if_its_gates_were_open():
    pod = make_pod("p", gates=["quota"])
    answer = ask(load(make_nodes(2), [pod]), pod)
    assert answer.held_back == (GATE,)
    assert (answer.feasible, answer.message) == (2, "")
    [remedy] = answer.remedies
    assert remedy.text == "Remove the scheduling gate quota, if what set it does not"
    assert remedy.command.startswith("kubectl -n default patch pod/p --type=json -p '[")
    assert answer.to_dict()["heldBack"] == [GATE]


def test_a_gated_pod_that_does_not_fit_has_both_reasons():
    pod = make_pod("p", gates=["quota"], cpu="9")
    answer = ask(load([make_node("n")], [pod]), pod)
    assert answer.held_back == (GATE,)
    assert answer.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_terminating_pod_is_explained_like_any_other():
    pod = make_pod("p", cpu="9")
    nodes = [make_node("n")]
    alive, dying = (ask(load(nodes, [each]), each) for each in (pod, terminating(pod)))
    assert dying.pod.is_terminating
    assert (dying.message, dying.groups) == (alive.message, alive.groups)


def test_a_pod_of_another_scheduler_is_judged_by_the_first_profile():
    pod = make_pod("p", scheduler="volcano", cpu="9")
    answer = ask(load([make_node("n")], [pod]), pod)
    assert (answer.pod.scheduler_name, answer.profile) == ("volcano", "default-scheduler")
    assert answer.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize(
    ("scheduler", "profile", "used", "feasible"),
    [
        pytest.param("default-scheduler", "", "default-scheduler", 0, id="the profile of the pod"),
        pytest.param("strict", "", "strict", 1, id="another profile of the pod"),
        pytest.param("default-scheduler", "strict", "strict", 1, id="a named profile"),
        pytest.param("volcano", "", "default-scheduler", 0, id="the first one"),
    ],
)
def test_the_profile_is_the_named_one_or_that_of_the_pod(scheduler, profile, used, feasible):
    pod = make_pod("p", scheduler=scheduler)
    engine = load([make_node("n", taints=["gpu:NoSchedule"])], [pod], by=configure(TWO, discover=False))
    answer = ask(engine, pod, profile)
    assert (answer.profile, answer.feasible) == (used, feasible)


def test_a_missing_profile_is_an_error_that_names_the_profiles():
    pod = make_pod("p")
    engine = load([make_node("n")], [pod], by=configure(TWO, discover=False))
    expected = "profile 'lax' does not exist; the profiles are default-scheduler, strict"
    with pytest.raises(MoorageError, match=expected):
        Judge.of(engine, pod, "lax")


@pytest.mark.parametrize(
    ("pods", "hint"),
    [
        pytest.param([], "", id="no pods"),
        pytest.param([make_pod("other")], "", id="another name"),
        pytest.param(
            [make_pod("web", namespace="team")], "; found team/web: select the namespace with -n", id="elsewhere"
        ),
        pytest.param(
            [make_pod("web", namespace=f"t{i}") for i in range(5)],
            "; found t0/web and t1/web and t2/web: select the namespace with -n",
            id="in many namespaces",
        ),
    ],
)
def test_a_missing_pod_is_an_error_that_names_pods_of_that_name(pods, hint):
    with pytest.raises(MoorageError) as raised:
        find_pod(load([make_node("n")], pods), "web", "default")
    assert str(raised.value) == f"pod 'web' does not exist in namespace 'default'{hint}"


def test_a_pod_is_found_by_name_and_namespace():
    pods = [make_pod("web"), make_pod("web", namespace="team")]
    assert find_pod(load([make_node("n")], pods), "web", "team").key == "team/web"


def test_an_empty_cluster_has_the_schedulers_message_and_nothing_else():
    pod = make_pod("p")
    answer = ask(load([], [pod]), pod)
    assert (answer.total, answer.feasible) == (0, 0)
    assert answer.message == "no nodes available to schedule pods"
    assert (answer.groups, answer.remedies, answer.placement) == ([], [], None)


def test_one_feasible_node_is_scored_all_the_same():
    pod = make_pod("p", cpu="2")
    answer = ask(load([make_node("a"), make_node("b", cpu="1")], [pod]), pod)
    assert answer.placement is not None
    assert (answer.placement.node, answer.placement.margin) == ("a", None)
    assert answer.placement.best[0].total > 0


def test_nodes_with_equal_scores_have_no_deciding_plugin():
    pod = make_pod("p")
    answer = ask(load(make_nodes(3), [pod]), pod)
    assert answer.placement is not None
    assert (answer.placement.node, answer.placement.margin) == ("node-0", 0)
    assert answer.placement.decided_by == ()


# Pods that have a node


def test_a_bound_pod_is_explained_as_if_it_were_created_now():
    pod = make_pod("p", cpu="3", node="a")
    answer = ask(load([make_node("a"), make_node("b", cpu="2")], [pod]), pod)
    assert (answer.feasible, answer.message) == (1, "")
    assert answer.placement is not None
    assert (answer.placement.node, answer.placement.own) == ("a", None)
    assert answer.to_dict()["assignedTo"] == "a"


def test_a_bound_pod_says_why_its_node_would_be_refused_now():
    pod = make_pod("p", node="a")
    answer = ask(load([make_node("a", unschedulable=True), make_node("b")], [pod]), pod)
    assert answer.placement is not None
    assert answer.placement.own_refused == ("node(s) were unschedulable",)
    assert answer.placement.node == "b"


def test_a_bound_pod_that_fits_nowhere_any_more_has_remedies():
    pod = make_pod("p", node="a")
    answer = ask(load([make_node("a", taints=["gone:NoExecute"])], [pod]), pod)
    assert answer.feasible == 0
    assert answer.placement is not None
    assert answer.placement.own_refused == ("node(s) had untolerated taint(s)",)
    assert answer.remedies[0].text == "Tolerate taint gone:NoExecute"


def test_a_bound_pod_counts_itself_out_of_its_node_and_back_in():
    pod = make_pod("p", cpu="4", node="a")
    engine = load([make_node("a")], [pod])
    assert ask(engine, pod).feasible == 1
    other = make_pod("q", cpu="1")
    assert ask(engine, other).feasible == 0


def test_a_pod_without_its_node_is_as_it_was_before():
    pod = make_pod("p", node="a", nominated="a", start_time="2026-01-01T00:00:00Z", phase="Running")
    before = unassigned(pod)
    assert (before.spec.node_name, before.nominated_node_name) == ("", "")
    assert (before.status.phase, before.status.start_time) == ("Pending", None)
    assert before.metadata == pod.metadata


# Nominations


def test_a_pending_pod_that_is_nominated_holds_its_space_against_lower_priorities():
    rival = make_pod("rival", cpu="3", priority=10, nominated="n")
    low, high = make_pod("low", cpu="2", priority=1), make_pod("high", cpu="2", priority=20)
    engine = load([make_node("n")], [rival, low, high])
    assert ask(engine, low).message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert ask(engine, high).feasible == 1


@pytest.mark.parametrize(("version", "feasible"), [("1.36", 1), ("1.37", 0)])
def test_a_gated_pod_holds_its_space_since_1_37(version, feasible):
    rival = make_pod("rival", cpu="3", priority=10, nominated="n", gates=["quota"])
    pod = make_pod("low", cpu="2", priority=1)
    engine = load([make_node("n")], [rival, pod], by=configure(discover=False, emulated_version=version))
    assert ask(engine, pod).feasible == feasible


def test_a_nominated_pod_goes_to_its_node_without_a_look_at_others():
    pod = make_pod("p", cpu="1", nominated="small")
    nodes = [make_node("small", cpu="2"), make_node("large", cpu="64")]
    answer = ask(load(nodes, [pod]), pod)
    assert answer.placement is not None
    assert answer.placement.node == "small"


def test_preemption_names_the_nominated_node_and_its_victims():
    low = make_pod("low", cpu="3", node="n", priority=1)
    pod = make_pod("p", cpu="3", priority=10)
    answer = ask(load([make_node("n")], [low, pod]), pod)
    assert answer.nominated == "n"
    assert [each.victims for each in answer.candidates] == [("default/low",)]
    assert not any("priority" in remedy.text for remedy in answer.remedies), "it is high enough"


def test_preemption_counts_violated_budgets():
    low = make_pod("low", cpu="3", node="n", labels={"app": "db"})
    pod = make_pod("p", cpu="3", priority=10)
    answer = ask(load([make_node("n")], [low, pod], budget("db", {"app": "db"})), pod)
    assert [each.pdb_violations for each in answer.candidates] == [1]


def test_a_pod_that_never_preempts_has_no_candidates():
    low = make_pod("low", cpu="3", node="n", priority=1)
    pod = make_pod("p", cpu="3", priority=10, preemption_policy="Never")
    answer = ask(load([make_node("n")], [low, pod]), pod)
    assert (answer.nominated, answer.candidates) == ("", [])


# Plugins that fail


class BrokenPreFilter(PreFilterPlugin):
    name = "BrokenPreFilter"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        raise KeyError("quota")


class BrokenFilter(FilterPlugin):
    name = "BrokenFilter"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        raise ValueError(f"no such node: {node.name}")


class BrokenScore(ScorePlugin):
    name = "BrokenScore"

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        raise ZeroDivisionError("division by zero")


class BrokenExplain(FilterPlugin, ExplainingPlugin):
    name = "BrokenExplain"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        return Status.unschedulable("never")

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> list[Detail]:
        raise RuntimeError("no idea")


def engine_with(plugin: type[Any], pod: Pod) -> Any:
    enabled = f"{{multiPoint: {{enabled: [{{name: {plugin.name}}}]}}}}"
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles:\n- plugins: {enabled}\n"
    )
    return load(make_nodes(2), [pod], by=configure(text, plugins=[plugin], discover=False))


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(BrokenPreFilter, "quota", id="PreFilter"),
        pytest.param(BrokenFilter, "no such node: node-0", id="Filter"),
        pytest.param(BrokenScore, "division by zero", id="Score"),
    ],
)
def test_a_broken_plugin_is_named_with_what_it_raised(plugin, problem):
    pod = make_pod("p")
    answer = ask(engine_with(plugin, pod), pod)
    assert answer.feasible == 0
    assert plugin.name in answer.message
    assert problem in answer.message
    assert answer.remedies == []


def test_a_plugin_that_cannot_explain_itself_still_refuses():
    pod = make_pod("p")
    answer = ask(engine_with(BrokenExplain, pod), pod, nodes=["node-1"])
    [group] = answer.groups
    assert (group.plugin, group.nodes, group.reasons) == ("BrokenExplain", 2, ("never",))
    assert group.details == ("no details: RuntimeError: no idea (2 nodes)",)
    [refusal] = answer.nodes["node-1"]
    assert refusal["details"][0]["subject"] == "no details: RuntimeError: no idea"


# Answers as data


def test_the_table_has_every_node_with_verdicts_and_scores():
    nodes = [make_node("a"), make_node("b", cpu="1"), make_node("c", taints=["x:NoSchedule"]), make_node("d")]
    pod = make_pod("p", cpu="2")
    table = ask(load(nodes, [pod]), pod, table=True).table
    assert table is not None
    assert table["nodes"] == ["a", "b", "c", "d"]
    by_plugin = {each["plugin"]: each for each in table["plugins"]}
    assert by_plugin["NodeResourcesFit"]["reasons"] == ["Insufficient cpu"]
    assert by_plugin["NodeResourcesFit"]["verdicts"] == [0, 1, 0, 0]
    assert by_plugin["TaintToleration"]["verdicts"] == [0, 0, 1, 0]
    assert [score is None for score in table["scores"]] == [False, True, True, False]


def test_the_table_is_omitted_unless_asked_for():
    pod = make_pod("p")
    answer = ask(load([make_node("a")], [pod]), pod)
    assert answer.table is None
    assert "table" not in answer.to_dict()


def test_only_existing_nodes_are_explained_one_by_one():
    pod = make_pod("p")
    answer = ask(load(make_nodes(2), [pod]), pod, nodes=["node-1", "absent"])
    assert answer.nodes == {"node-1": []}


def test_the_scores_of_the_answer_add_up():
    pod = make_pod("p", cpu="1")
    answer = ask(load([make_node("a"), make_node("b", cpu="8"), make_node("c", cpu="16")], [pod]), pod)
    scores = answer.to_dict()["placement"]["scores"]
    assert [each["node"] for each in scores][:1] == ["c"]
    for each in scores:
        assert each["total"] == sum(plugin["weighted"] for plugin in each["plugins"])


def test_questions_leave_no_tasks_behind():
    low = make_pod("low", cpu="3", node="n", priority=1)
    pod = make_pod("p", cpu="3", priority=10)
    engine = load([make_node("n")], [low, pod])

    async def twice() -> int:
        for _ in range(2):
            await Judge.of(engine, pod).ask(pod)
        return len(asyncio.all_tasks())

    assert asyncio.run(twice()) == 1
    assert len(engine.tasks) == 0


def test_preemption_in_a_question_leaves_pod_and_nominations_as_they_were():
    low = make_pod("low", cpu="3", node="n", priority=1)
    rival = make_pod("rival", cpu="1", priority=2, nominated="n")
    pod = make_pod("p", cpu="3", priority=10)
    engine = load([make_node("n")], [low, rival, pod])
    first, second = (ask(engine, pod) for _ in range(2))
    assert first.nominated == "n"
    assert second.to_dict() == first.to_dict()
    assert second.held_back == ()
    assert [each.key for each in engine.nominator.nominated_on("n")] == ["default/rival"]
