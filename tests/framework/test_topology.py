"""Topology: which rows have a value of a label."""

from __future__ import annotations

import random

from moorage.state.columns import Topologies
from moorage.state.node_table import NodeTable
from moorage.testing import make_node


def test_rows_of_a_value_are_those_that_a_scan_finds():
    draw, table = random.Random(7), NodeTable(width=2)
    topologies = Topologies(table)
    for _ in range(60):
        name, zone = f"n{draw.randrange(20)}", draw.choice(["x", "y", "z", "", None])
        if draw.random() < 0.2:
            table.remove_node(name)
        else:
            table.set_node(make_node(name, labels={} if zone is None else {"zone": zone}))
        found = topologies.topology("zone")
        for value in ("x", "y", "z", "", "nobody has it"):
            expected = sorted(node.row for node in table.nodes() if node.labels.get("zone") == value)
            assert found.rows_of(value) == expected
