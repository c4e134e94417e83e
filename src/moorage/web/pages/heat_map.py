"""Nodes as squares, coloured by the share of a resource that is requested or used, in one block per group.

All squares are drawn on one canvas: thousands of elements would be too many for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moorage.api.quantity import format_amount
from moorage.web.pages.chart_style import SOFT, between, ink_on
from moorage.web.source import Json

COLUMNS = 80
NAMED_COLUMNS = 8
"""Squares in a row if they are wide enough for names."""
CELL, LARGE_CELL = 15, 34
"""Pixels from row to row; large if the squares have names."""
MAX_NAMED = 160
"""Up to this number of nodes, squares have names."""
COLOURS = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"]
"""Cividis, which colour-blind people see alike: dark is empty, bright is full."""
CORDONED = "#d55e00"
"""The frame of a node that is cordoned or being deleted."""
STATES = {"unschedulable": "cordoned", "deleting": "being deleted"}
"""Column of the nodes → what it means."""
REQUESTED, MEASURED = "requested", "measured"
_TOOLTIP = "(square) => `${square.value[3]}\\n${square.value[4]}`"
"""The name and the figures, which follow the position and share of a square."""
MAX_LABEL = 24
"""Characters of a group's name beside its block."""
TOP, BELOW = 40, 4
"""Pixels above and below the squares."""


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
    named = len(nodes["names"]) <= MAX_NAMED
    groups = _groups(nodes, group)
    columns = min(NAMED_COLUMNS if named else COLUMNS, max(map(len, groups.values()), default=1))
    for name, members in sorted(groups.items()):
        labels += [""] * (1 if labels and not named else 0)
        first = len(labels)
        members.sort(key=lambda index: -shares.get(index, -1.0))
        for place, index in enumerate(members):
            says = _says(resource, used, amounts, index)
            square = [place % columns, first + place // columns, _rounded(shares.get(index))]
            state = [word for key, word in STATES.items() if nodes[key][index]]
            squares.append(_square([*square, nodes["names"][index][:80], says], state, named))
            names.append(nodes["names"][index])
        rows = -(-len(members) // columns)
        title = f"{name[:MAX_LABEL] or 'no label'} ({len(members):,})"
        labels += [title, *[""] * (rows - 1)]
    height = (LARGE_CELL if named else CELL) * len(labels) + TOP + BELOW
    return HeatMap(_options(squares, labels, columns, used, named), names, height)


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


def _square(value: list[Any], state: list[str], named: bool) -> Any:
    """Return a plain value unless it needs a style, because there are thousands."""
    if not (state or named):
        return value
    square: Json = {
        "value": ["\n".join([value[-1], *state]) if at == len(value) - 1 else each for at, each in enumerate(value)]
    }
    if state:
        square["itemStyle"] = {"borderColor": CORDONED, "borderWidth": 2}
    if named and isinstance(value[2], float):
        square["label"] = {"color": ink_on(between(COLOURS, value[2] / 100))}
    return square


def _options(squares: list[Any], labels: list[str], columns: int, used: str, named: bool) -> Json:
    plain = {"axisLine": {"show": False}, "axisTick": {"show": False}, "splitLine": {"show": False}}
    left = min(190, 24 + 7 * max(map(len, labels), default=0))
    width = f"Math.max(30, (document.querySelector('main').clientWidth - {left + 80}) / {columns} - 10)"
    label = {
        "show": named,
        ":formatter": "(square) => square.value[3]",
        ":width": width,
        "overflow": "truncate",
        "fontSize": 12,
    }
    return {
        "animation": False,
        "grid": {"left": left, "right": 8, "top": TOP, "bottom": BELOW},
        "tooltip": {"renderMode": "richText", ":formatter": _TOOLTIP, "confine": True},
        "xAxis": {"type": "category", "data": list(range(columns)), "show": False},
        "yAxis": {
            **plain,
            "type": "category",
            "inverse": True,
            "data": labels,
            "axisLabel": {**SOFT, "interval": 0, "width": left - 10, "overflow": "truncate"},
        },
        "visualMap": {
            "type": "continuous",
            "dimension": 2,
            "min": 0,
            "max": 100,
            "calculable": False,
            "orient": "horizontal",
            "left": left - 8,
            "top": 0,
            "itemWidth": 14,
            "text": [f"100 % {used}", "0 %"],
            "textStyle": SOFT,
            "inRange": {"color": COLOURS},
        },
        "series": [
            {
                "type": "heatmap",
                "data": squares,
                "encode": {"x": 0, "y": 1, "value": 2},
                "progressive": 0,
                "label": label,
                "itemStyle": {"borderColor": "#8884", "borderWidth": 1},
                "emphasis": {"itemStyle": {"borderColor": "#ffffff", "borderWidth": 2}},
            }
        ],
    }
