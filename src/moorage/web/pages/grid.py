"""Tables of thousands of rows to filter and sort; the browser draws the visible part only.

Rows are sent as one text of columns, from which the browser makes the rows. Otherwise thousands of objects
would have to be created here, sent, and watched by the framework of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from nicegui import ui

from moorage.api.node import ZONE
from moorage.web.source import Json

_UNPACK = """(grid) => {
  const table = JSON.parse(grid.context.packed);
  const columns = Object.entries(table);
  const rows = table.node.map((_, at) => {
    const row = {number: 0};
    for (const [field, column] of columns) {
      if (Array.isArray(column)) { row[field] = column[at]; continue; }
      const verdict = column.verdicts[at];
      if (!verdict) continue;
      row[field] = column.reasons[verdict - 1];
      row.number += 1;
    }
    return row;
  });
  grid.api.setGridOption("rowData", rows);
}"""
_BY_NAME = "(one, other) => one.localeCompare(other, undefined, {numeric: true})"
_ON_ENTER = "(event) => { if (event.event?.key === 'Enter') emit(event); }"
_NODE = {"headerName": "Node", "field": "node", "pinned": "left", "width": 220}
LISTED_LABELS = (ZONE, "node.kubernetes.io/instance-type")
MAX_RESOURCES = 5
"""Labels and resources with a column in the list of nodes."""
_NUMBER = {"filter": "agNumberColumnFilter", "cellDataType": "number"}


def show_nodes(table: Json, on_node: Callable[[str], Any], refused_by: bool = True) -> None:
    """Show nodes with what each plugin says about them, in the form of an explanation's table. `refused_by`
    adds a column with the number of plugins that reject a node."""
    columns: list[Json] = [_NODE]
    if refused_by:
        columns.append({"headerName": "Rejections", "field": "number", "width": 130, **_NUMBER})
    packed: Json = {"node": table["nodes"]}
    if any(score is not None for score in table["scores"]):
        columns.append({"headerName": "Score", "field": "score", "width": 110, "sort": "desc", **_NUMBER})
        packed["score"] = table["scores"]
    for place, each in enumerate(table["plugins"]):
        field = f"p{place}"  # a name may contain anything
        columns.append({"headerName": each["plugin"], "field": field, "tooltipField": field, "flex": 1})
        packed[field] = {"reasons": each["reasons"], "verdicts": each["verdicts"]}
    _show(columns, packed, on_node)


def show_list(nodes: Json, on_node: Callable[[str], Any]) -> Callable[[Json], None]:
    """Show the nodes of a cluster with their state and the requested share of each resource. Returns a function
    that replaces the rows."""
    columns: list[Json] = [
        {**_NODE, "sort": "asc", ":comparator": _BY_NAME},
        {"headerName": "State", "field": "state", "width": 150},
    ]
    columns += [{"headerName": key, "field": f"l{at}", "flex": 1} for at, key in enumerate(_labels(nodes))]
    columns += [
        {
            "headerName": f"{name} %",
            "headerTooltip": f"{name}: requested share",
            "field": f"r{at}",
            "width": 130,
            **_NUMBER,
        }
        for at, name in enumerate(_resources(nodes))
    ]
    grid = _show(columns, _listed(nodes), on_node, "Filter nodes")

    def replace(now: Json) -> None:
        columns = _listed(now)
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        grid.run_grid_method("setGridOption", "rowData", rows)

    return replace


def _labels(nodes: Json) -> list[str]:
    return [key for key in LISTED_LABELS if key in nodes["labels"]]


def _resources(nodes: Json) -> list[str]:
    return list(nodes["amounts"])[:MAX_RESOURCES]


def _listed(nodes: Json) -> Json:
    """Return the columns of the list."""
    cordoned, deleting = nodes["unschedulable"], nodes["deleting"]
    state = [
        "being deleted" if leaves else "cordoned" if closed else ""
        for closed, leaves in zip(cordoned, deleting, strict=True)
    ]
    found: Json = {"node": nodes["names"], "state": state}
    found |= {f"l{at}": nodes["labels"][key] for at, key in enumerate(_labels(nodes))}
    for at, name in enumerate(_resources(nodes)):
        amounts = nodes["amounts"][name]
        pairs = zip(amounts["requested"], amounts["allocatable"], strict=True)
        found[f"r{at}"] = [round(100 * used / there, 1) if there > 0 else None for used, there in pairs]
    return found


def _packed(columns: Json) -> str:
    return msgspec.json.encode(columns).decode()


def _show(
    columns: list[Json], packed: Json, on_node: Callable[[str], Any], search_for: str = "Filter nodes and reasons"
) -> ui.aggrid:
    async def chosen(event: Any) -> None:
        await on_node(event.args["data"]["node"])

    search = ui.input(search_for).props('type=search dense outlined clearable debounce=200 aria-label="Filter nodes"')
    search.classes("m-search")
    grid = ui.aggrid(
        {
            "columnDefs": columns,
            "context": {"packed": _packed(packed)},
            ":onGridReady": _UNPACK,
            "defaultColDef": {"filter": "agTextColumnFilter", "sortable": True, "minWidth": 110},
            "rowHeight": 30,
            "headerHeight": 34,
            "enableCellTextSelection": True,
        },
        auto_size_columns=False,
    ).classes("m-grid")
    grid.style(f"height: {min(480, 60 + 31 * max(3, len(packed['node'])))}px")
    search.on_value_change(lambda event: grid.run_grid_method("setGridOption", "quickFilterText", event.value or ""))
    grid.on("cellClicked", chosen, ["data"])
    grid.on("cellKeyDown", chosen, ["data"], js_handler=_ON_ENTER)
    return grid
