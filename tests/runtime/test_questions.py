"""The question engine gives the answers of the scheduling cycle, plugin by plugin and as a whole."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from moorage.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.pod import Affinity, NodeAffinity, Pod
from moorage.app.configuration import configure
from moorage.app.offline import QuestionEngine, question_engine
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod
from moorage.runtime import questions
from moorage.runtime.attempt import Attempt
from moorage.runtime.profile import Profile
from moorage.scheduler.choosing import NodeChooser
from moorage.testing import make_node, make_pod
from tests.explain.test_messages import Draw
from tests.explain.world import cluster

DEFAULT = configure(discover=False)


def engine_of(nodes, pods=()) -> tuple[QuestionEngine, Profile]:
    engine = question_engine(DEFAULT, cluster(nodes, pods).changes())
    return engine, next(iter(engine.profiles.values()))


def chosen(engine: QuestionEngine, profile: Profile, pod: Pod) -> Attempt:
    attempt = Attempt(QueuedPod(pod, 0.0), profile, engine.services.nodes())
    asyncio.run(NodeChooser().choose(attempt))
    return attempt


@pytest.mark.parametrize("seed", range(60))
def test_the_whole_profile_answers_as_the_cycle_does(seed):
    drawn = Draw(seed)
    engine, profile = engine_of(drawn.nodes, drawn.running)
    cycle = chosen(engine, profile, drawn.pod)
    attempt, pre = questions.begin(profile, drawn.pod, engine.services.nodes())
    questions.narrow(attempt, pre)
    if pre.status.is_success:
        assert questions.filter_attempt(attempt).is_success
    assert np.array_equal(attempt.ok, cycle.ok)
    assert dict(attempt.statuses) == dict(cycle.statuses)
    attempt.feasible = int(np.count_nonzero(attempt.ok))
    board, status = questions.score_feasible(attempt)
    assert status.is_success
    if cycle.board is not None:
        assert board is not None
        rows = np.flatnonzero(attempt.ok)
        assert np.array_equal(board.totals[rows], cycle.board.totals[rows])


@pytest.mark.parametrize("seed", range(60))
def test_a_node_is_feasible_if_no_plugin_refuses_it(seed):
    drawn = Draw(seed)
    engine, profile = engine_of(drawn.nodes, drawn.running)
    cycle = chosen(engine, profile, drawn.pod)
    verdicts = questions.ask_each(profile, CycleState(), drawn.pod, engine.services.nodes())
    refused = np.logical_or.reduce([verdict.rows for verdict in verdicts])
    rows = engine.services.nodes().rows
    assert np.array_equal(~refused[rows], cycle.ok[rows])


@pytest.mark.parametrize("seed", range(30))
def test_the_first_refusal_of_a_node_is_the_one_of_the_cycle(seed):
    drawn = Draw(seed)
    engine, profile = engine_of(drawn.nodes, drawn.running)
    cycle = chosen(engine, profile, drawn.pod)
    if cycle.pre_filter_message:
        return
    verdicts = questions.ask_each(profile, CycleState(), drawn.pod, engine.services.nodes())
    for name, status in cycle.statuses:
        first = next(v.statuses.get(name) for v in verdicts if not v.statuses.get(name).is_success)
        assert (first.plugin, first.reasons) == (status.plugin, status.reasons)


@pytest.mark.parametrize("seed", range(30))
def test_the_scores_of_single_plugins_add_up_to_those_of_the_profile(seed):
    """Where every node is feasible, normalising sees the same nodes."""
    drawn = Draw(seed)
    nodes = [make_node(node.name, cpu="64", memory="256Gi") for node in drawn.nodes]
    engine, profile = engine_of(nodes, [make_pod("r", node=nodes[0].name, cpu="1")])
    pod = make_pod("p", cpu="500m")
    cycle = chosen(engine, profile, pod)
    state, listed = CycleState(), engine.services.nodes()
    questions.ask_each(profile, state, pod, listed)
    total = np.zeros(listed.columns.width, dtype=np.int64)
    for plugin in profile.score:
        board, before, status = questions.score_alone(profile, plugin.name, state, pod, listed)
        assert before.is_success
        assert status.is_success
        if board is not None:
            total[: len(board.totals)] += board.totals
    board, _ = questions.score_feasible(cycle)
    assert board is not None
    assert np.array_equal(total[listed.rows], board.totals[listed.rows])


def test_only_the_named_plugins_are_asked():
    engine, profile = engine_of([make_node("n", cpu="1", unschedulable=True)])
    pod = make_pod("p", cpu="2")
    verdicts = questions.ask_each(profile, CycleState(), pod, engine.services.nodes(), ["NodeResourcesFit"])
    assert [verdict.plugin.name for verdict in verdicts] == ["NodeResourcesFit"]
    assert dict(verdicts[0].statuses)["n"].reasons == ("Insufficient cpu",)


def test_a_refusal_by_pre_filter_is_one_of_every_node():
    engine, profile = engine_of([make_node("a"), make_node("b")])
    pod = make_pod("p", claims=["gone"])
    verdicts = questions.ask_each(profile, CycleState(), pod, engine.services.nodes())
    binding = next(verdict for verdict in verdicts if verdict.plugin.name == "VolumeBinding")
    assert not binding.for_all.is_success
    assert [name for name, _ in binding.statuses] == ["a", "b"]
    attempt, pre = questions.begin(profile, pod, engine.services.nodes())
    questions.narrow(attempt, pre)
    assert not attempt.ok.any()


def test_nodes_outside_those_of_pre_filter_are_refused():
    engine, profile = engine_of([make_node("a"), make_node("b")])
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=("a",))
    terms = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    required = NodeAffinity(required_during_scheduling_ignored_during_execution=terms)
    pod = make_pod("p", affinity=Affinity(node_affinity=required))
    verdicts = questions.ask_each(profile, CycleState(), pod, engine.services.nodes())
    [refusing] = [verdict for verdict in verdicts if verdict.refuses]
    assert refusing.plugin.name == "NodeAffinity"
    assert refusing.pre.node_names == frozenset({"a"})
    assert refusing.for_all.is_success
    assert [name for name, _ in refusing.statuses] == ["b"]


def test_a_plugin_that_does_not_score_has_no_board():
    engine, profile = engine_of([make_node("a")])
    state, nodes = CycleState(), engine.services.nodes()
    assert questions.score_alone(profile, "NodePorts", state, make_pod("p"), nodes)[0] is None


def test_an_empty_cluster_has_no_scores():
    engine, profile = engine_of([])
    state, nodes = CycleState(), engine.services.nodes()
    assert questions.score_alone(profile, "NodeResourcesFit", state, make_pod("p"), nodes)[0] is None
    assert questions.score_feasible(chosen(engine, profile, make_pod("p")))[0] is None


def test_scores_of_given_rows_are_normalised_over_these_rows_only():
    soft = ["x:PreferNoSchedule"]
    engine, profile = engine_of([make_node("a", taints=soft), make_node("b", taints=soft), make_node("c")])
    row_of = engine.services.nodes().columns.row_of

    def points(*names: str) -> list[int]:
        attempt, _ = questions.begin(profile, make_pod("p"), engine.services.nodes())
        rows = np.zeros(len(attempt.ok), dtype=np.bool_)
        rows[[row_of(name) for name in names]] = True
        board, status = questions.score_rows(attempt, rows)
        assert status.is_success
        assert board is not None
        [column] = [column for column in board.columns if column.step.name == "TaintToleration"]
        return [column.weighted(row_of(name)) for name in names]

    assert points("a", "c") == [0, 300]
    assert points("c") == [300]
    assert points("a", "b", "c") == [0, 0, 300]
