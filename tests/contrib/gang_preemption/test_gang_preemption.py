"""GangPreemption: victims for a whole group or none, and what becomes of the members until they are gone."""

from __future__ import annotations

import pytest

from mooring.testing import make_node, make_pod
from tests.contrib.coscheduling.gangs import gang, member, nodes, podgroup, started
from tests.contrib.gang_preemption.gangs import cluster, ended, low


def test_victims_of_all_members_go_at_once_and_the_group_starts_when_they_are_gone():
    with cluster() as found:
        found.add(nodes(3), (low(f"low-{n}", f"n{n}") for n in range(3)))
        found.add(gang("train", 3, priority=100))
        found.settle(5)
        assert sorted(found.record("train-0").victims) == ["default/low-0", "default/low-1", "default/low-2"]
        nominated = {found.pod(f"train-{n}").nominated_node_name for n in range(3)}
        assert nominated == {"n0", "n1", "n2"}
        assert ended(found) == ["low-0", "low-1", "low-2"]
        found.settle(5)
        assert started(found) == {"train": 3}
