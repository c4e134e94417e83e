"""The attempts of a pod, as a scheduler has recorded them: a list to choose from, and the chosen one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from nicegui import ui

from mooring.web import explanation_view as view
from mooring.web import shell
from mooring.web.source import Json, RecordingSource
from mooring.web.text import node_url

PER_PAGE = 50
RESULTS = {"scheduled": "m-good", "unschedulable": "m-bad", "error": "m-bad"}


def show_list(records: list[Json], chosen: int, on_choose: Callable[[int], Any]) -> None:
    """The newest first."""
    for record in reversed(records):
        sequence = record["sequence"]
        button = ui.element("button").classes(f"m-group {'m-chosen' if sequence == chosen else ''}")
        button.props(f"aria-pressed={'true' if sequence == chosen else 'false'}")
        button.on("click", lambda _, sequence=sequence: on_choose(sequence))
        with button, ui.element("div").classes("m-text"):
            with ui.element("div").classes("m-row"):
                ui.label(f"Attempt {record['attempt']}").classes("m-count")
                ui.label(record["result"]).classes(RESULTS.get(record["result"], ""))
                ui.label(f"{_clock(record['started'])}, {1000 * record['durationSeconds']:.1f} ms")
            if record["wokenBy"]:
                hint = f" (hint of {record['wokenHint']})" if record["wokenHint"] else ""
                shell.text(f"woken by {record['wokenBy']}{hint}").classes("m-soft")


async def show_attempt(source: RecordingSource, record: Json) -> None:
    """What one attempt decided, and why."""
    nodes = record["nodes"]
    with shell.card():
        shell.section(f"Attempt {record['attempt']}: {record['result']}")
        ui.label(
            f"{nodes['feasible']:,} of {nodes['evaluated']:,} evaluated nodes feasible, "
            f"{nodes['total']:,} nodes in all"
        )
        if record["node"]:
            ui.link(record["node"], node_url(record["node"])).classes("m-text")
        if record["message"]:
            shell.text(record["message"]).classes("m-mono")
        for extender in record["extenders"]:
            error = f": {extender['error']}" if extender["error"] else ""
            shell.text(f"extender {extender['extender']} removed {extender['removedNodes']} nodes{error}")
    if record["scores"]:
        with shell.card():
            shell.section("Best nodes")
            view.show_scores(record["scores"], record["margin"])
    if record["nominatedNode"]:
        with shell.card():
            shell.section("Preemption")
            view.show_preemption(record)
    if record["refusals"]:
        with shell.card():
            shell.section("Who refused nodes")
            view.show_refusals(record["refusals"], nodes["total"])
        with shell.card():
            shell.section("Refused nodes")
            _show_refused(await source.refused_nodes(record["sequence"]))


def _show_refused(refused: list[Json]) -> None:
    rows = [
        {
            "node": each["node"],
            "node_url": node_url(each["node"]),
            "plugin": each["plugin"],
            "why": "; ".join(each["reasons"]),
        }
        for each in refused
    ]
    columns = (("node", "Node"), ("plugin", "Plugin that came first"), ("why", "Reason"))
    search = ui.input("Filter nodes").props("type=search dense outlined clearable debounce=200")
    table = shell.table(columns, rows, "node", PER_PAGE)
    search.classes("m-search").bind_value_to(table, "filter", lambda value: value or "")


def _clock(epoch: float) -> str:
    return f"{datetime.fromtimestamp(epoch, UTC):%Y-%m-%d %H:%M:%S} UTC"
