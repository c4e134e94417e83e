"""Dry runs with all default plugins: many nodes at once say the same as one node at a time."""

from __future__ import annotations

import functools
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api import resources as kinds
from moorage.api.node import HOSTNAME, ZONE
from moorage.app.clock import SystemClock
from moorage.app.configuration import EMPTY, configure
from moorage.app.offline import NoApi, NoEvents
from moorage.framework.cycle_state import CycleState
from moorage.framework.ports import Change
from moorage.runtime.dry_run import NodeTrial
from moorage.runtime.pre_filtering import run_pre_filter
from moorage.scheduler.assembly import assemble
from moorage.scheduler.generation import Ports
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_affinity

configuration = functools.cache(lambda: configure(EMPTY, discover=False))

APPS = ("a", "b")
APP = st.sampled_from(APPS)
AFFINE = st.sampled_from([None, None, None, *({"app": app} for app in APPS)])
TOPOLOGY = st.sampled_from([ZONE, HOSTNAME])


def affinity(near, away, topology):
    return make_affinity(near=near, away=away, topology=topology) if near or away else None


SHAPE = {
    "cpu": st.integers(0, 3),
    "labels": st.builds(lambda app: {"app": app}, APP),
    "affinity": st.builds(affinity, st.none(), AFFINE, TOPOLOGY),
    "ports": st.sampled_from([(), (), (80,), (81,)]),
}
running = st.fixed_dictionaries({**SHAPE, "node": st.integers(0, 3), "priority": st.integers(0, 2)})
incoming = st.fixed_dictionaries(
    {
        **SHAPE,
        "cpu": st.integers(1, 5),
        "affinity": st.builds(affinity, AFFINE, AFFINE, TOPOLOGY),
        "spread": st.sampled_from(["", ZONE, HOSTNAME]),
        "priority": st.integers(1, 3),
        "tolerations": st.sampled_from([(), ("dedicated",)]),
    }
)
nodes = st.lists(
    st.fixed_dictionaries(
        {
            "cpu": st.integers(3, 8),
            "zone": st.sampled_from("xy"),
            "taints": st.sampled_from([(), (), ("dedicated=gpu:NoSchedule",)]),
        }
    ),
    min_size=1,
    max_size=4,
)


def engine_with(node_specs, pod_specs):
    made = configuration()
    engine = assemble(
        made.config, made.profiles, made.registry, Ports(NoApi(), SystemClock(), random.Random(0), NoEvents())
    )
    for i, spec in enumerate(node_specs):
        node = make_node(f"n{i}", labels={HOSTNAME: f"n{i}"}, **spec)
        engine.inbox.post(Change(kinds.NODES, None, node))
    for i, spec in enumerate(pod_specs):
        name = f"n{spec['node'] % len(node_specs)}"
        pod = make_pod(f"p{i}", **{**spec, "node": name}, start_time=f"2026-01-01T00:00:{i:02d}Z")
        engine.inbox.post(Change(kinds.PODS, None, pod))
    engine.drain()
    return engine


@settings(max_examples=200, deadline=None)
@given(nodes, st.lists(running, min_size=4, max_size=14), incoming, st.randoms(use_true_random=False))
def test_many_nodes_at_once_are_judged_as_one_by_one(node_specs, pod_specs, pod_spec, rng):
    engine = engine_with(node_specs, pod_specs)
    profile, table = engine.profiles["default-scheduler"], engine.services.nodes()
    pod, state = (make_pod("incoming", **{k: v for k, v in pod_spec.items() if v or k != "spread"}), CycleState())
    run_pre_filter(profile, state, pod, table)
    session = profile.plugins["DefaultPreemption"].handle.dry_run()
    victims = {node.name: pods for node in table if (pods := node.ranked.below(pod.priority))}
    if not victims:
        return
    if rng.random() < 0.5:  # what happens elsewhere in the session counts on every node
        session.add_pod(rng.choice(table.names), make_pod("guest", cpu="1", labels=dict(pod.labels)))
    trial = session.remove_victims(pod, state, victims)
    verdicts = [trial.statuses.get(name) for name in victims]
    turns = np.array([rng.random() < 0.5 for _ in range(trial.victims.size)])
    away = trial.reprieve(turns, ~turns)
    for number, (name, pods) in enumerate(victims.items()):
        single = NodeTrial(session.trial(pod, state), name, list(pods))
        assert (verdicts[number].code, verdicts[number].reasons, verdicts[number].plugin) == (
            single.status.code,
            single.status.reasons,
            single.status.plugin,
        )
        start = int(trial.victims.offsets[number])
        order = [n for n in range(len(pods)) if turns[start + n]]
        order += [n for n in range(len(pods)) if not turns[start + n]]
        gone = [n for n in order if not single.fits_beside(n)] if single.status.is_success else []
        assert [n for n in range(len(pods)) if away[start + n]] == sorted(gone)
    engine.cache.validate()
