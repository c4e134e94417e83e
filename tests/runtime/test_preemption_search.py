"""Preemption against a plain search: the same victims on every node, the same choice, nothing changed."""

from __future__ import annotations

import asyncio
import copy

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.framework.nodes import Nodes
from moorage.framework.status import Code
from moorage.runtime.calling import maybe_await
from moorage.runtime.dry_run import NodeTrial, Session
from moorage.runtime.preemption.budgets import ClusterBudgets
from moorage.runtime.preemption.search import NOT_HELPFUL, CandidateSearch
from moorage.testing.builders import make_pdb
from tests.runtime.preemption_world import Headroom, HeadroomAsked, Plain, Scene, World

node_specs = st.fixed_dictionaries(
    {"zone": st.sampled_from("xy"), "side": st.sampled_from(["east", "west"]), "cpu": st.integers(2, 8)}
)
labels = {"app": st.sampled_from(["", "a", "b"]), "port": st.sampled_from(["", "", "80", "81"])}


@st.composite
def budgets(draw):
    made = []
    for name in ("one", "two"):
        selector = draw(st.sampled_from([{"app": "a"}, {"app": "b"}, {"port": "80"}, {}]))
        budget = make_pdb(name, selector, allowed=draw(st.integers(0, 2)))
        disrupted = {f"p{i}": "2026-01-01T00:00:00Z" for i in draw(st.sets(st.integers(0, 11), max_size=3))}
        made.append(replace(budget, status=replace(budget.status, disrupted_pods=disrupted)))
    return draw(st.lists(st.sampled_from(made), unique_by=lambda budget: budget.name, max_size=2))


@st.composite
def scenes(draw):
    nodes = draw(st.lists(node_specs, min_size=1, max_size=4))
    where = {"node": st.integers(0, len(nodes) - 1)}
    size = {"cpu": st.integers(0, 4)}
    running = st.fixed_dictionaries(
        {**where, **size, **labels, "priority": st.integers(-1, 3), "at": st.integers(0, 40)}
    )
    incoming = st.fixed_dictionaries(
        {"cpu": st.integers(1, 6), "priority": st.integers(1, 4), "side": st.sampled_from(["", "", "east"]), **labels}
    )
    waiting = st.fixed_dictionaries({**where, **size, **labels, "priority": st.integers(0, 5)})
    return Scene(
        nodes,
        draw(st.lists(running, max_size=12)),
        draw(incoming),
        draw(budgets()),
        draw(st.lists(waiting, max_size=1)),
    )


def found_by(world, budgets):
    rows = world.statuses.rows_with(Code.UNSCHEDULABLE)
    session = Session(world.profile)
    search = CandidateSearch(session.remove_victims, world.pod, world.state, ClusterBudgets(budgets))
    nodes = Nodes(world.nodes.columns, rows)
    return nodes.names, search.run(
        nodes, max(1, len(rows)), lambda block: [node.ranked.below(world.pod.priority) for node in block]
    )


@settings(max_examples=200, deadline=None)
@given(scenes())
def test_victims_on_every_node_are_those_of_a_plain_search(scene):
    plain = Plain(scene)
    expected = {}
    for headroom in (Headroom, HeadroomAsked):
        world = World(scene, headroom)
        names, found = found_by(world, scene.budgets)
        got = {c.node_name: ([pod.name for pod in c.victims], c.pdb_violations) for c in found.candidates}
        expected = {name: plain.victims(name) for name in names}
        assert got == {name: (victims, violations) for name, (why, victims, violations) in expected.items() if not why}


@settings(max_examples=200, deadline=None)
@given(scenes())
def test_the_node_and_the_message_are_those_of_a_plain_search(scene):
    world, plain = World(scene), Plain(scene)
    if len(world.feasible):
        return

    async def preempt():
        answer = await maybe_await(world.profile.post_filter[-1].post_filter(world.state, world.pod, world.statuses))
        await world.engine.tasks.stop()
        return answer

    result, status = asyncio.run(preempt())
    helped = world.statuses.names_with(Code.UNSCHEDULABLE)
    expected = {name: plain.victims(name) for name in helped}
    candidates = {name: (v, n) for name, (why, v, n) in expected.items() if not why}
    if not candidates:
        refusals = {name: expected[name][0] if name in expected else NOT_HELPFUL for name in plain.nodes}
        assert (status.message, result.nominated_node) == (plain.message(refusals), "")
    else:
        assert result.nominated_node in plain.choice(candidates)
        assert [pod.name for pod in result.victims] == candidates[result.nominated_node][0]


@settings(max_examples=200, deadline=None)
@given(scenes(), st.randoms(use_true_random=False))
def test_many_nodes_at_once_are_judged_as_one_by_one(scene, rng):
    world = World(scene)
    session = Session(world.profile)
    victims = {node.name: node.ranked.below(world.pod.priority) for node in world.nodes}
    victims = {name: pods for name, pods in victims.items() if pods}
    if not victims:
        return
    trial = session.remove_victims(world.pod, world.state, victims)
    verdicts = [trial.statuses.get(name) for name in victims]
    turns = np.array([rng.random() < 0.5 for _ in range(trial.victims.size)])
    away = trial.reprieve(turns, ~turns)
    for number, (name, pods) in enumerate(victims.items()):
        single = NodeTrial(session.trial(world.pod, world.state), name, list(pods))
        assert summary(verdicts[number]) == summary(single.status)
        assert (number in trial.fitting.tolist()) == single.status.is_success
        start = int(trial.victims.offsets[number])
        mine = range(len(pods)) if single.status.is_success else ()
        first = [n for n in mine if turns[start + n] and not single.fits_beside(n)]
        second = [n for n in mine if not turns[start + n] and not single.fits_beside(n)]
        assert [n for n in range(len(pods)) if away[start + n]] == sorted(first + second)


def summary(status):
    return status.code, status.reasons, status.plugin


@settings(max_examples=100, deadline=None)
@given(scenes())
def test_a_dry_run_leaves_everything_untouched(scene):
    world = World(scene)
    before = snapshot(world)
    found_by(world, scene.budgets)
    world.engine.cache.validate()
    world.engine.queue.pending.validate()
    assert snapshot(world) == before


def snapshot(world):
    """All that a dry run might have changed."""
    table, nominator = world.engine.cache.table, world.engine.queue.nominator
    return (
        table.version,
        table.versions.tolist(),
        [(node.pods, dict(node.requested)) for node in world.nodes],
        {key: copy.copy(world.state.read(key)) for key in list(world.state.keys())},
        {name: nominator.nominated_on(name) for name in world.nodes.names},
    )
