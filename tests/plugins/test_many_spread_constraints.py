"""A pod with very many spread constraints: work and memory of an attempt grow with them, not with their square."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.api.node_selectors import required_node_affinity
from moorage.api.pod import Pod
from moorage.api.taints import find_untolerated
from moorage.framework.cycle_state import CycleState
from moorage.plugins.pod_topology_spread import constraints as spread_constraints
from moorage.plugins.pod_topology_spread import filtering
from moorage.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, compile_constraints
from moorage.plugins.pod_topology_spread.counted import Counted, count
from moorage.plugins.pod_topology_spread.plugin import FILTER, SCORE
from moorage.testing.builders import make_node, make_pod, spread_over, taint
from tests.plugins.one_plugin import Asked, ask

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MANY = 40


def nodes() -> list[Any]:
    """Return nodes of which each lacks one of the keys key-0, key-1 and so on."""
    return [
        make_node(
            f"n{i}",
            zone=f"z{i % 2}",
            labels={f"key-{k}": f"v{i % 3}" for k in range(4) if k != i},
            taints=[taint("t:NoSchedule")] if i == 5 else [],
        )
        for i in range(6)
    ]


def many(action: str, keys: list[str], **options: Any) -> Pod:
    listed = [spread_over(key, {"app": key}, soft=action == SCHEDULE_ANYWAY, **options) for key in keys]
    return make_pod("many", labels={"app": "web"}, spread=tuple(listed))


def counted(asked: Asked, action: str) -> list[Counted]:
    pod = asked.pod
    found = compile_constraints(pod.spec.topology_spread_constraints, pod.labels, action)
    return count(found, pod, required_node_affinity(pod), asked.plugin.handle, require_all=True)


@pytest.mark.parametrize("action", [DO_NOT_SCHEDULE, SCHEDULE_ANYWAY])
def test_constraints_with_keys_that_some_nodes_lack_share_one_mask(action: str) -> None:
    keys = [f"key-{k}" for k in range(4)] + [f"unknown-{k}" for k in range(MANY)]
    found = counted(ask("PodTopologySpread", many(action, keys), nodes()), action)

    assert len(found) == len(keys)
    assert len({id(each.where) for each in found}) == 1


def test_a_shared_mask_gives_each_constraint_the_pods_that_count_for_it() -> None:
    keys = ["key-0", "key-1", "key-2"]
    pods = [make_pod(f"p{i}", labels={"app": f"key-{i % 3}"}, node=f"n{i % 6}") for i in range(24)]
    for found in counted(ask("PodTopologySpread", many(DO_NOT_SCHEDULE, keys), nodes(), pods), DO_NOT_SCHEDULE):
        key, values = found.constraint.topology_key, found.topology.values
        per_value = dict.fromkeys(values, 0)
        for node in nodes():
            if all(wanted in node.labels for wanted in keys):
                here = [p for p in pods if p.spec.node_name == node.name and p.labels["app"] == key]
                per_value[node.labels[key]] += len(here)
        assert dict(zip(values, found.pods().tolist(), strict=True)) == per_value


def test_a_constraint_whose_own_key_alone_is_rare_needs_no_mask() -> None:
    (found,) = counted(ask("PodTopologySpread", many(DO_NOT_SCHEDULE, ["key-0"]), nodes()), DO_NOT_SCHEDULE)
    assert found.where is None


def test_no_pods_are_counted_for_a_key_that_no_node_has() -> None:
    pods = [make_pod("p", labels={"app": "unknown-1"}, node="n1")]
    keys = ["unknown-0", "unknown-1"]
    asked = ask("PodTopologySpread", many(SCHEDULE_ANYWAY, keys), nodes(), pods)
    assert [found.counter for found in counted(asked, SCHEDULE_ANYWAY)] == [None, None]


def test_constraints_without_matching_pods_share_their_counts() -> None:
    listed = tuple(spread_over(HOSTNAME, {"app": f"other-{i}"}) for i in range(MANY))
    pod = make_pod("many", labels={"app": "web"}, spread=listed)
    asked = ask("PodTopologySpread", pod, nodes())
    spreads = asked.state.read(FILTER).spreads

    assert len(spreads) == MANY
    assert len({id(spread.counts.cluster) for spread in spreads}) == 1
    assert len({id(spread.floor) for spread in spreads}) == 1
    assert not asked.refused()


def test_soft_constraints_without_matching_pods_share_their_table() -> None:
    listed = tuple(spread_over(ZONE, {"app": f"other-{i}"}, soft=True) for i in range(MANY))
    asked = ask("PodTopologySpread", make_pod("many", labels={"app": "web"}, spread=listed), nodes())
    asked.plugin.pre_score(asked.state, asked.pod, asked.world.nodes)

    assert len({id(table) for table in asked.state.read(SCORE).tables}) == 1


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record how often the tolerations of the pod are read."""
    calls: list[Any] = []

    def counting(taints: Any, tolerations: Any) -> Any:
        calls.append(taints)
        return find_untolerated(taints, tolerations)

    monkeypatch.setattr(spread_constraints, "find_untolerated", counting)
    return calls


def test_tolerations_are_read_once_for_all_constraints(judged: list[Any]) -> None:
    keys = [f"key-{k}" for k in range(4)]
    pod = many(DO_NOT_SCHEDULE, keys, node_taints_policy="Honor")
    asked = ask("PodTopologySpread", pod, nodes())
    classes = len(asked.world.nodes.columns.taints.classes)
    assert len(judged) == classes

    judged.clear()
    state: CycleState = asked.state
    view = asked.world.nodes[4]
    assert all(key in view.labels for key in keys)
    labels = {"app": "key-0"}
    state.own(FILTER).update(asked.pod, make_pod("other", labels=labels, node=view.name), view, 1)
    assert len(judged) == 1


def test_filtering_stops_when_every_node_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask("PodTopologySpread", many(DO_NOT_SCHEDULE, [f"unknown-{k}" for k in range(MANY)]), nodes())
    gathered: list[int] = []
    prepared = asked.state.read(FILTER)
    original = type(prepared.spreads[0].counts.topology).gather

    def gather(self: Any, values: Any, missing: Any, some: Any) -> Any:
        gathered.append(1)
        return original(self, values, missing, some)

    monkeypatch.setattr(type(prepared.spreads[0].counts.topology), "gather", gather)
    refusals = filtering.filter_nodes(prepared, asked.world.nodes)
    assert refusals is not None
    assert len(gathered) == 1
    assert np.logical_or.reduce([entry.mask for entry in refusals.entries]).all()
