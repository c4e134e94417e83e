"""The parts of an explanation: groups of refusals, remedies, victims, scores."""

from __future__ import annotations

from nicegui import ui

from moorage.web.pages import shell
from moorage.web.pages.text import count, node_url, pod_url
from moorage.web.source import Json

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
"""Okabe and Ito's, which colour-blind people can tell apart."""
SHOWN_DETAILS = 6
ENOUGH_MARGIN = 8
"""Characters of a node's name that the chart shows from its end, where names are long."""


def show_refusals(groups: list[Json], total: int) -> None:
    """Who refuses how many nodes, and why; the largest first."""
    alone = any("onlyReason" in group for group in groups)
    with ui.element("div").classes("m-refusals" if alone else "m-refusals m-three"):
        for head in ("Nodes", *(["Only reason"] if alone else []), "Plugin", "Reason, and what is behind it"):
            ui.label(head).classes("m-head")
        for group in groups:
            with ui.element("div"):
                ui.label(f"{group['nodes']:,}").classes("m-count")
                with ui.element("div").classes("m-bar"):
                    ui.element("div").style(f"width: {100 * group['nodes'] / max(1, total):.1f}%")
            if alone:
                ui.label(f"{group['onlyReason']:,}")
            shell.text(group["plugin"])
            with ui.element("div"):
                shell.text("; ".join(group["reasons"]))
                details = group.get("details", [])
                for detail in details[:SHOWN_DETAILS]:
                    shell.text(detail).classes("m-soft")
                if len(details) > SHOWN_DETAILS:
                    ui.label(f"and {len(details) - SHOWN_DETAILS} more").classes("m-soft")


def show_remedies(remedies: list[Json]) -> None:
    """Each was tried on a copy of this state."""
    with ui.element("ol"):
        for remedy in remedies:
            with ui.element("li"):
                shell.text(remedy["text"])
                nodes = count(remedy["nodes"], "node")
                gain = (
                    f"{nodes} would take the pod, {remedy['node']} first"
                    if remedy["nodes"]
                    else remedy["node"]
                )
                shell.text(gain).classes("m-soft")


def show_preemption(preemption: Json, says: str = "Preemption would delete these pods on") -> None:
    with ui.element("div").classes("m-row"):
        ui.label(says)
        ui.link(preemption["nominatedNode"], node_url(preemption["nominatedNode"])).classes("m-text")
    with ui.element("ul"):
        for victim in preemption["victims"]:
            with ui.element("li"):
                ui.link(victim, pod_url(victim)).classes("m-text")
    _show_candidates(preemption.get("candidates", []))


def _show_candidates(candidates: list[Json]) -> None:
    if len(candidates) < 2:
        return
    ui.label("Nodes that it could choose from, those that cost least first").classes("m-soft")
    columns = (
        ("node", "Node"),
        ("pods", "Victims"),
        ("highestPriority", "Highest priority"),
        ("spared", "Pods that can stay"),
        ("pdbViolations", "Violated budgets"),
    )
    rows = [
        {
            **each,
            "node_url": node_url(each["node"]),
            "pods": len(each["victims"]),
            "spared": len(each["reprieved"]),
        }
        for each in candidates
    ]
    shell.table(columns, rows, "node")


def show_scores(scores: list[Json], margin: int | None, decided_by: list[str] | None = None) -> None:
    """A stacked bar for each of the best nodes, the winner on top."""
    names = list(dict.fromkeys(each["plugin"] for node in scores for each in node["plugins"]))
    points = [{each["plugin"]: each["weighted"] for each in node["plugins"]} for node in scores]
    telling = [name for name in names if any(each.get(name, 0) for each in points)]
    if margin is not None:
        by = f", by {', '.join(decided_by)}" if decided_by else ""
        says = f"{margin} points ahead of the second{by}" if margin else "chosen among equals"
        shell.text(f"{scores[0]['node']}: {scores[0]['total']} points, {says}.")
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
    labels = [f"{_short(node['node'])}  {node['total']}" for node in scores]
    soft = {"color": "#7b8a99"}
    ui.echart(
        {
            "animation": False,
            "grid": {"left": 8, "right": 24, "top": 34, "bottom": 8, "containLabel": True},
            "legend": {"type": "scroll", "top": 0, "textStyle": soft},
            "tooltip": {"renderMode": "richText", "trigger": "item", "confine": True},
            "xAxis": {"type": "value", "axisLabel": soft},
            "yAxis": {"type": "category", "inverse": True, "data": labels, "axisLabel": soft},
            "series": series,
        }
    ).style(f"height: {60 + 34 * len(scores)}px; width: 100%")


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:28]}…{name[-ENOUGH_MARGIN:]}"
