"""What is remembered of a group while its members get their nodes."""

from __future__ import annotations

import pytest

from moorage.api.resources import Unstructured
from moorage.contrib.coscheduling.groups import GroupObject, Round
from tests.contrib.coscheduling.gangs import member, podgroup

PODS = {str(number): member("g", number) for number in range(3)}


@pytest.mark.parametrize(
    ("uid", "node", "expected"),
    [
        ("0", "n0", {"1": "n1", "2": "n2"}),
        ("0", "n1", {"1": "n0", "2": "n2"}),
        ("0", "elsewhere", {"1": "n1", "2": "n2"}),
        ("another", "n1", {"0": "n0", "1": "n1", "2": "n2"}),
    ],
    ids=["as planned", "where another one was to go", "where none was to go", "a pod without a place"],
)
def test_a_member_that_takes_the_node_of_another_leaves_it_its_own(uid, node, expected):
    under_way = Round({uid: (pod, f"n{uid}") for uid, pod in PODS.items()}, until=1)
    under_way.take(uid, node)
    assert {uid: planned for uid, (_, planned) in under_way.planned.items()} == expected


@pytest.mark.parametrize("spec", [{}, {"minMember": "3"}, {"minMember": None}])
def test_a_podgroup_without_a_number_asks_for_none(spec):
    assert GroupObject(Unstructured({**podgroup("g", 1), "spec": spec})).min_member == 0
