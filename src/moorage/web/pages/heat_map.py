"""Nodes as squares, coloured by the share of a resource that is requested or used, in one block per group.

All squares are drawn on one canvas: thousands of elements would be too many for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moorage.api.quantity import format_amount
from moorage.web.source import Json

COLUMNS = 80
CELL, LARGE_CELL = 15, 30
"""Pixels from row to row; large if there are few nodes."""
FEW = 400
COLOURS = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"]
"""Cividis, which colour-blind people see alike: dark is empty, bright is full."""
CORDONED = "#d55e00"
REQUESTED, MEASURED = "requested", "measured"
_TOOLTIP = "(square) => `${square.value[3]}\\n${square.value[4]}`"
"""The name and the figures, which follow the position and share of a square."""
MAX_LABEL = 24
"""Characters of a group's name beside its block."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The options of the chart, and the node of each square."""

    options: dict[str, Any]
    nodes: list[str]
    height: int


def heat_map(nodes: Json, resource: str, group: str, used: str = REQUESTED) -> HeatMap:
    """Return a map with groups by name, and the nodes in each by share. `used` names the amount to compare
    with the allocatable one."""
    squares: list[Any] = []
    names: list[str] = []
    labels: list[str] = []
    amounts = nodes["amounts"].get(resource)
    shares = _shares(amounts, used)
    for name, members in sorted(_groups(nodes, group).items()):
        labels += [""] * (1 if labels else 0)
        first = len(labels)
        members.sort(key=lambda index: -shares.get(index, -1.0))
        for place, index in enumerate(members):
            says = _says(resource, used, amounts, index)
            square = [place % COLUMNS, first + place // COLUMNS, _rounded(shares.get(index))]
            squares.append(_square([*square, nodes["names"][index][:80], says], nodes["unschedulable"][index]))
            names.append(nodes["names"][index])
        rows = -(-len(members) // COLUMNS)
        title = f"{name[:MAX_LABEL] or 'no label'} ({len(members):,})"
        labels += [title, *[""] * (rows - 1)]
    height = (CELL if len(names) > FEW else LARGE_CELL) * len(labels) + 70
    return HeatMap(_options(squares, labels, min(COLUMNS, max(20, len(names))), used), names, height)


def _groups(nodes: Json, group: str) -> dict[str, list[int]]:
    values = nodes["labels"].get(group) or ["all nodes"] * len(nodes["names"])
    found: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        found.setdefault(value, []).append(index)
    return found


def _shares(amounts: Json | None, used: str) -> dict[int, float]:
    """Return index → percentage in use, for the nodes that have the resource."""
    if amounts is None or used not in amounts:
        return {}
    pairs = enumerate(zip(amounts[used], amounts["allocatable"], strict=True))
    return {index: 100 * taken / there for index, (taken, there) in pairs if there > 0}


def _rounded(share: float | None) -> float | str:
    return "-" if share is None else round(share, 1)


def _says(resource: str, used: str, amounts: Json | None, index: int) -> str:
    if amounts is None or amounts["allocatable"][index] <= 0:
        return f"no {resource}"
    if used not in amounts:
        return f"{resource}: not {used}"
    there = format_amount(resource, amounts["allocatable"][index])
    return f"{format_amount(resource, amounts[used][index])} of {there} {resource} {used}"


def _square(value: list[Any], cordoned: bool) -> Any:
    """Return a plain value unless it needs a style, because there are thousands."""
    if not cordoned:
        return value
    marks = {"borderColor": CORDONED, "borderWidth": 2}
    return {"value": [*value[:-1], f"{value[-1]}\ncordoned"], "itemStyle": marks}


def _options(squares: list[Any], labels: list[str], columns: int, used: str) -> Json:
    soft = {"color": "#7b8a99"}
    plain = {"axisLine": {"show": False}, "axisTick": {"show": False}, "splitLine": {"show": False}}
    return {
        "animation": False,
        "grid": {"left": 190, "right": 8, "top": 46, "bottom": 4},
        "tooltip": {"renderMode": "richText", ":formatter": _TOOLTIP, "confine": True},
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
            "dimension": 2,
            "min": 0,
            "max": 100,
            "calculable": True,
            "orient": "horizontal",
            "left": 184,
            "top": 0,
            "itemWidth": 14,
            "text": [f"100 % {used}", "0 %"],
            "textStyle": soft,
            "inRange": {"color": COLOURS},
        },
        "series": [
            {
                "type": "heatmap",
                "data": squares,
                "encode": {"x": 0, "y": 1, "value": 2},
                "progressive": 0,
                "itemStyle": {"borderColor": "#8884", "borderWidth": 1},
                "emphasis": {"itemStyle": {"borderColor": "#ffffff", "borderWidth": 2}},
            }
        ],
    }
