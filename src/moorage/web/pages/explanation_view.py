"""Parts of explanations and attempts: rejections by plugin, remedies, victims, scores.

Explanations are JSON, attempts are Structs; both are read as the types that a part needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from nicegui import ui

from moorage.endpoints.answers import NodePoints
from moorage.web.pages import shell
from moorage.web.pages.chart_style import GRID, SOFT
from moorage.web.pages.text import count, node_url, pod_url
from moorage.web.source import Json

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
"""The palette of Okabe and Ito, which colour-blind people can distinguish."""
SHOWN_DETAILS = 6
NAME_END = 8
"""Characters at the end of a long node name that the chart shows."""


class RefusalRow(msgspec.Struct, frozen=True, rename="camel"):
    """Nodes that one plugin rejected for the same reasons."""

    plugin: str
    reasons: Sequence[str]
    nodes: int
    only_reason: int | None = None
    """The number of nodes that no other plugin rejects; None if that is not known."""
    details: Sequence[str] = ()


Figures = Mapping[tuple[str, tuple[str, ...]], Sequence[str]]
"""Plugin and reasons → the figures behind them."""


def figures(explanation: Json) -> Figures:
    """Return the figures of an explanation, to show beside the rejections of an attempt."""
    return {(each["plugin"], tuple(each["reasons"])): each["details"] for each in explanation["refusals"]}


def show_refusals(groups: Sequence[Any], total: int, known: Figures = MappingProxyType({})) -> None:
    """Show which plugin rejects how many nodes, and why; the largest group first. Groups without details get
    the figures that are `known`."""
    rows = msgspec.convert(groups, list[RefusalRow], from_attributes=True)
    sole = any(row.only_reason is not None for row in rows)
    with ui.element("div").classes("m-refusals" if sole else "m-refusals m-three"):
        for head in ("Nodes", *(["Sole reason on"] if sole else []), "Plugin", "Reason and details"):
            ui.label(head).classes("m-head")
        for row in rows:
            with ui.element("div"):
                ui.label(f"{row.nodes:,}").classes("m-count")
                with ui.element("div").classes("m-bar"):
                    ui.element("div").style(f"width: {100 * row.nodes / max(1, total):.1f}%")
            if sole:
                ui.label(count(row.only_reason or 0, "node"))
            shell.text(row.plugin)
            with ui.element("div"):
                shell.text("; ".join(row.reasons))
                details = row.details or known.get((row.plugin, tuple(row.reasons)), ())
                for detail in details[:SHOWN_DETAILS]:
                    shell.text(detail).classes("m-soft")
                if len(details) > SHOWN_DETAILS:
                    ui.label(f"and {len(details) - SHOWN_DETAILS} more").classes("m-soft")


def show_remedies(remedies: list[Json]) -> None:
    """Show changes that would let a node accept the pod."""
    with ui.element("ol"):
        for remedy in remedies:
            with ui.element("li"):
                shell.text(remedy["text"])
                nodes = f"Makes {count(remedy['nodes'], 'node')} feasible ({remedy['node']})."
                shell.text(nodes if remedy["nodes"] and remedy["node"] else remedy["node"]).classes("m-soft")
                if remedy["command"]:
                    shell.text(remedy["command"]).classes("m-command")


def show_preemption(title: str, node: str, victims: Iterable[str], candidates: Sequence[Json] = ()) -> None:
    with ui.element("div").classes("m-row"):
        ui.label(title)
        ui.link(node, node_url(node)).classes("m-text")
    with ui.element("ul"):
        for victim in victims:
            with ui.element("li"):
                ui.link(victim, pod_url(victim)).classes("m-text")
    _show_candidates(candidates)


def _show_candidates(candidates: Sequence[Json]) -> None:
    if len(candidates) < 2:
        return
    ui.label("Candidate nodes, best first").classes("m-soft")
    columns = (
        ("node", "Node"),
        ("pods", "Victims"),
        ("highestPriority", "Highest priority"),
        ("spared", "Spared pods"),
        ("pdbViolations", "PDB violations"),
    )
    rows = [
        {**each, "node_url": node_url(each["node"]), "pods": len(each["victims"]), "spared": len(each["reprieved"])}
        for each in candidates
    ]
    shell.table(columns, rows, "node")


def show_scores(scores: Sequence[Any], margin: int | None, decided_by: Sequence[str] = ()) -> None:
    """Show a stacked bar for each of the best nodes, the winner on top."""
    best = msgspec.convert(scores, list[NodePoints], from_attributes=True)
    points = [{each.plugin: each.weighted for each in node.plugins} for node in best]
    names = dict.fromkeys(name for each in points for name in each)
    telling = [name for name in names if any(each.get(name, 0) for each in points)]
    if margin is not None:
        by = f", decided by {', '.join(decided_by)}" if decided_by else ""
        says = f"{margin} points ahead of the second{by}" if margin else "tied with the second"
        shell.text(f"{best[0].node}: {best[0].total} points, {says}.")
    series = [
        {
            "name": name,
            "type": "bar",
            "stack": "total",
            "barMaxWidth": 26,
            "data": [each.get(name, 0) for each in points],
            "itemStyle": {"color": COLOURS[place % len(COLOURS)]},
        }
        for place, name in enumerate(telling)
    ]
    labels = [f"{_short(node.node)}  {node.total}" for node in best]
    ui.echart(
        {
            "animation": False,
            "grid": {"left": 8, "right": 24, "top": 34, "bottom": 8, "containLabel": True},
            "legend": {"type": "scroll", "top": 0, "textStyle": SOFT},
            "tooltip": {"renderMode": "richText", "trigger": "item", "confine": True},
            "xAxis": {"type": "value", "axisLabel": SOFT, **GRID},
            "yAxis": {"type": "category", "inverse": True, "data": labels, "axisLabel": SOFT},
            "series": series,
        }
    ).style(f"height: {60 + 34 * len(best)}px; width: 100%")


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:28]}…{name[-NAME_END:]}"
