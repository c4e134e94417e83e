"""A pod may be refused for thousands of reasons: nodes with the same ones share a status."""

from __future__ import annotations

import numpy as np

from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code
from moorage.runtime.filtering import hits_of
from moorage.testing import make_node, make_pod
from tests.plugins.one_plugin import ask

MANY = 500
NAMES = [f"example.com/r{i}" for i in range(MANY)]


def test_all_nodes_share_the_status_of_a_pod_that_asks_for_what_no_node_offers():
    pod = make_pod("p", requests={"cpu": "1", **dict.fromkeys(NAMES, "1")})
    asked = ask("NodeResourcesFit", pod, [make_node(f"n{i}", cpu="4" if i else "500m") for i in range(6)])
    nodes = asked.world.nodes
    refusals = asked.plugin.filter_nodes(asked.state, asked.pod, nodes)

    assert len({id(entry.mask) for entry in refusals.entries}) <= 3
    found = {status.reasons: np.count_nonzero(mask) for mask, status in hits_of(asked.plugin, refusals, nodes)}
    expected = tuple(f"Insufficient {name}" for name in NAMES)
    assert found == {("Insufficient cpu", *expected): 1, expected: 5}
    codes = {status.code for _, status in hits_of(asked.plugin, refusals, nodes)}
    assert codes == {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


def test_nodes_are_grouped_by_their_reasons():
    asked = ask("NodeResourcesFit", make_pod("p"), [make_node(f"n{i}") for i in range(9)])
    nodes = asked.world.nodes
    numbers = np.arange(len(nodes))
    refusals = nodes.refusals()
    for index in range(MANY):
        refusals.add(numbers % 3 == index % 3, f"reason {index}")
    hits = list(hits_of(asked.plugin, refusals, nodes))

    assert len(hits) == 3
    for mask, status in hits:
        assert not isinstance(mask, int)
        rest = int(numbers[mask][0]) % 3
        assert status.reasons == tuple(f"reason {index}" for index in range(MANY) if index % 3 == rest)
        assert mask.tolist() == (numbers % 3 == rest).tolist()


def test_a_dry_run_sees_the_same_reasons():
    pod = make_pod("p", requests=dict.fromkeys(NAMES, "1"))
    asked = ask("NodeResourcesFit", pod, [make_node("n")])
    assert isinstance(asked.state, CycleState)
    assert {name: len(reasons) for name, (_, reasons) in asked.refused().items()} == {"n": MANY}
