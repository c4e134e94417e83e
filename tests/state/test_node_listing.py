"""Nodes are listed zone by zone in turn, each exactly once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.state.node_listing import NodeOrder, Zone, zone_of
from tests.state.objects import make_node

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


def ordered(*zones: str) -> NodeOrder:
    """Rows 0, 1, 2 … in these zones."""
    order = NodeOrder()
    for row, zone in enumerate(zones):
        order.put(row, ("", zone))
    return order


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param("", [], id="no nodes"),
        pytest.param("aaa", [0, 1, 2], id="one zone: as they came"),
        pytest.param("aabb", [0, 2, 1, 3], id="one of each zone in turn"),
        pytest.param("baab", [0, 1, 3, 2], id="zones in the order of first sight, not of names"),
        pytest.param("abbbc", [0, 1, 4, 2, 3], id="exhausted zones are passed over"),
    ],
)
def test_listing(zones, expected):
    assert ordered(*zones).rows() == expected


def test_a_zone_goes_with_its_last_node_and_returns_at_the_end():
    order = ordered("a", "b", "b")
    assert order.remove(0)
    order.put(0, ("", "a"))

    assert order.rows() == [1, 0, 2]


def test_another_zone_moves_a_node_and_the_same_one_does_not():
    order = ordered("a", "a", "b")
    assert not order.put(0, ("", "a"))
    assert order.put(0, ("", "b"))

    assert order.rows() == [1, 2, 0]


def test_removing_an_unknown_node_changes_nothing():
    order = ordered("a")
    assert not order.remove(7)
    assert order.rows() == [0]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, ("", ""), id="no labels"),
        pytest.param({"topology.kubernetes.io/zone": "z"}, ("", "z"), id="zone only"),
        pytest.param({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}, ("r", "z"), id="both"),
        pytest.param(
            {"topology.kubernetes.io/zone": "z", BETA_ZONE: "old", BETA_REGION: "r"},
            ("r", "old"),
            id="the old names win",
        ),
    ],
)
def test_zone_of(labels, expected):
    assert zone_of(make_node("n", labels=labels)) == expected


def listed_plainly(nodes: dict[int, Zone], zones: list[Zone]) -> list[int]:
    """The plain model: rounds over zones until no node remains."""
    remaining = {zone: [row for row, found in nodes.items() if found == zone] for zone in zones}
    result = []
    while any(remaining.values()):
        result += [rows.pop(0) for rows in remaining.values() if rows]
    return result


steps = st.lists(st.tuples(st.integers(0, 8), st.sampled_from(["", "a", "b", "c"]), st.booleans()), max_size=40)


@given(steps)
def test_listing_is_a_permutation_whatever_comes_goes_or_moves(steps):
    order = NodeOrder()
    nodes: dict[int, Zone] = {}
    zones: list[Zone] = []
    for row, name, put in steps:
        zone = ("", name)
        if not put or nodes.get(row, zone) != zone:
            nodes.pop(row, None)
            zones = [seen for seen in zones if seen in nodes.values()]
        if put:
            nodes.setdefault(row, zone)
            zones += [zone] if zone not in zones else []
            order.put(row, zone)
        else:
            order.remove(row)

        assert len(order) == len(nodes)
        assert order.rows() == listed_plainly(nodes, zones)
        assert sorted(order.rows()) == sorted(nodes)
