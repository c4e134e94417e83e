"""Nodes as squares, coloured by how much of a resource is requested there, in blocks of one group each.

One canvas for all of them: thousands of elements would be too much for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mooring.web.source import Json
from mooring.web.text import amount

COLUMNS = 80
CELL, LARGE_CELL = 15, 30
"""Pixels from row to row; large where there are few nodes."""
FEW = 400
COLOURS = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"]
"""Cividis, which looks alike to all eyes: dark is empty, bright is full."""
CORDONED = "#d55e00"
MOST_LABEL = 24
"""Characters of a group's name beside its block."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The options of the chart, and the node of each square."""

    options: dict[str, Any]
    nodes: list[str]
    height: int


def heat_map(nodes: Json, resource: str, group: str) -> HeatMap:
    """Groups by name, nodes in each by how full they are."""
    squares: list[Json] = []
    names: list[str] = []
    labels: list[str] = []
    shares = _shares(nodes["amounts"].get(resource))
    for value, members in sorted(_groups(nodes, group).items()):
        labels += [""] * (1 if labels else 0)
        first = len(labels)
        members.sort(key=lambda index: -shares.get(index, -1.0))
        for place, index in enumerate(members):
            squares.append(_square(nodes, resource, index, place % COLUMNS, first + place // COLUMNS, shares))
            names.append(nodes["names"][index])
        rows = -(-len(members) // COLUMNS)
        title = f"{value[:MOST_LABEL] or 'without the label'} ({len(members):,})"
        labels += [title, *[""] * (rows - 1)]
    height = (CELL if len(names) > FEW else LARGE_CELL) * len(labels) + 70
    return HeatMap(_options(squares, labels, min(COLUMNS, max(20, len(names)))), names, height)


def _groups(nodes: Json, group: str) -> dict[str, list[int]]:
    values = nodes["labels"].get(group) or ["all nodes"] * len(nodes["names"])
    found: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        found.setdefault(value, []).append(index)
    return found


def _shares(amounts: Json | None) -> dict[int, float]:
    """Index → percent that is requested, of the nodes that have the resource."""
    if amounts is None:
        return {}
    pairs = enumerate(zip(amounts["requested"], amounts["allocatable"], strict=True))
    return {index: 100 * requested / there for index, (requested, there) in pairs if there > 0}


def _square(nodes: Json, resource: str, index: int, x: int, y: int, shares: dict[int, float]) -> Json:
    name = nodes["names"][index][:80]
    cordoned = nodes["unschedulable"][index]
    marks = {"borderColor": CORDONED, "borderWidth": 2} if cordoned else {}
    note = "\ncordoned" if cordoned else ""
    if index not in shares:
        return {"value": [x, y, "-"], "name": f"{name}\nhas no {resource}{note}", "itemStyle": marks}
    amounts = nodes["amounts"][resource]
    used, there = amounts["requested"][index], amounts["allocatable"][index]
    figures = f"{amount(resource, used)} of {amount(resource, there)} {resource} requested"
    says = f"{name}\n{figures}, {shares[index]:.0f} %{note}"
    return {"value": [x, y, round(shares[index], 1)], "name": says, "itemStyle": marks}


def _options(squares: list[Json], labels: list[str], columns: int) -> Json:
    soft = {"color": "#7b8a99"}
    plain = {"axisLine": {"show": False}, "axisTick": {"show": False}, "splitLine": {"show": False}}
    return {
        "animation": False,
        "grid": {"left": 190, "right": 8, "top": 46, "bottom": 4},
        "tooltip": {"renderMode": "richText", "formatter": "{b}", "confine": True},
        "xAxis": {"type": "category", "data": list(range(columns)), "show": False},
        "yAxis": {
            **plain,
            "type": "category",
            "inverse": True,
            "data": labels,
            "axisLabel": {**soft, "interval": 0, "width": 180, "overflow": "truncate"},
        },
        "visualMap": {
            "type": "continuous",
            "min": 0,
            "max": 100,
            "calculable": True,
            "orient": "horizontal",
            "left": 184,
            "top": 0,
            "itemWidth": 14,
            "text": ["100 % requested", "0 %"],
            "textStyle": soft,
            "inRange": {"color": COLOURS},
        },
        "series": [
            {
                "type": "heatmap",
                "data": squares,
                "progressive": 0,
                "itemStyle": {"borderColor": "#8884", "borderWidth": 1},
                "emphasis": {"itemStyle": {"borderColor": "#ffffff", "borderWidth": 2}},
            }
        ],
    }
