"""Scores of the best nodes as a table: the totals, and the plugins that make a difference."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from moorage.cli.printing import printable
from moorage.runtime.record import NodeScore


def scores(best: Sequence[NodeScore], assigned: str) -> Table:
    """`assigned` is the node that gets a star."""
    names = list(dict.fromkeys(score.plugin for entry in best for score in entry.plugins))
    points = {name: {_points(entry, name) for entry in best} for name in names}
    moving = [name for name in names if len(points[name]) > 1 or (len(best) == 1 and points[name] != {0})]
    table = Table("node", "total", *moving, box=None, pad_edge=False)
    for entry in best:
        mark = " *" if entry.node == assigned else ""
        shown = [str(_points(entry, name)) for name in moving]
        table.add_row(f"{printable(entry.node)}{mark}", str(entry.total), *shown)
    return table


def _points(entry: NodeScore, plugin: str) -> int:
    return next((score.weighted for score in entry.plugins if score.plugin == plugin), 0)
