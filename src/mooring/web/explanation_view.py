"""The parts of an explanation: groups of refusals, remedies, scores, and the table of all nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui

from mooring.web import shell
from mooring.web.source import Json
from mooring.web.text import count, node_url, pod_url

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


def show_preemption(preemption: Json) -> None:
    with ui.element("div").classes("m-row"):
        ui.label("Preemption would delete these pods on")
        ui.link(preemption["nominatedNode"], node_url(preemption["nominatedNode"])).classes("m-text")
    with ui.element("ul"):
        for victim in preemption["victims"]:
            with ui.element("li"):
                ui.link(victim, pod_url(victim)).classes("m-text")


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


def node_rows(table: Json) -> tuple[list[Json], list[Json]]:
    """Columns and rows of the grid; fields are numbered, because a name may contain anything."""
    plugins = table["plugins"]
    columns: list[Json] = [
        {"headerName": "Node", "field": "node", "pinned": "left", "width": 220},
        {"headerName": "Refused by", "field": "number", "width": 130, "filter": "agNumberColumnFilter"},
        {
            "headerName": "Score",
            "field": "score",
            "width": 110,
            "filter": "agNumberColumnFilter",
            "sort": "desc",
        },
        *(
            {"headerName": each["plugin"], "field": f"p{place}", "tooltipField": f"p{place}", "flex": 1}
            for place, each in enumerate(plugins)
        ),
    ]
    rows = []
    for index, (name, score) in enumerate(zip(table["nodes"], table["scores"], strict=True)):
        row: Json = {"node": name, "score": score, "number": 0}
        for place, each in enumerate(plugins):
            verdict = each["verdicts"][index]
            if verdict:
                row[f"p{place}"] = each["reasons"][verdict - 1]
                row["number"] += 1
        rows.append(row)
    return columns, rows


def show_nodes(table: Json, on_node: Callable[[str], Any]) -> None:
    """Every node with what each plugin says; scrolls without drawing what is not seen."""
    columns, rows = node_rows(table)
    if not any(row["score"] is not None for row in rows):
        del columns[2]

    async def chosen(event: Any) -> None:
        await on_node(event.args["data"]["node"])

    search = ui.input("Filter nodes and reasons").props(
        'type=search dense outlined clearable debounce=200 aria-label="Filter nodes"'
    )
    search.classes("m-search")
    grid = ui.aggrid(
        {
            "columnDefs": columns,
            "rowData": rows,
            "defaultColDef": {"filter": "agTextColumnFilter", "sortable": True, "minWidth": 110},
            "rowHeight": 30,
            "headerHeight": 34,
            "enableCellTextSelection": True,
        },
        auto_size_columns=False,
    ).classes("m-grid")
    grid.style(f"height: {min(480, 60 + 31 * max(3, len(rows)))}px")
    search.on_value_change(
        lambda event: grid.run_grid_method("setGridOption", "quickFilterText", event.value or "")
    )
    grid.on("cellClicked", chosen, ["data"])
    grid.on("cellKeyDown", chosen, ["data"], js_handler=_ON_ENTER)


_ON_ENTER = "(event) => { if (event.event?.key === 'Enter') emit(event); }"
