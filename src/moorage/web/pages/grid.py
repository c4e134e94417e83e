"""Tables of thousands of rows to filter and sort; the browser draws the visible part only.

Rows are sent as one text of columns, from which the browser makes the rows. Otherwise thousands of objects
would have to be created here, sent, and watched by the framework of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from nicegui import ui

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
_ON_ENTER = "(event) => { if (event.event?.key === 'Enter') emit(event); }"
_NODE = {"headerName": "Node", "field": "node", "pinned": "left", "width": 220}
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


def _show(columns: list[Json], packed: Json, on_node: Callable[[str], Any]) -> None:
    async def chosen(event: Any) -> None:
        await on_node(event.args["data"]["node"])

    search = ui.input("Filter nodes and reasons").props(
        'type=search dense outlined clearable debounce=200 aria-label="Filter nodes"'
    )
    search.classes("m-search")
    grid = ui.aggrid(
        {
            "columnDefs": columns,
            "context": {"packed": msgspec.json.encode(packed).decode()},
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
