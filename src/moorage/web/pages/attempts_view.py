"""The attempts of a pod, as a scheduler has recorded them: a timeline to choose from, and the chosen one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from nicegui import ui

from moorage.web.pages import explanation_view as view
from moorage.web.pages import grid, shell
from moorage.web.pages.text import address, count, node_url, pod_url
from moorage.web.source import Json

RESULTS = {"scheduled": "m-good", "unschedulable": "m-bad", "error": "m-bad"}


def show_timeline(records: list[Json], chosen: Json, on_choose: Callable[[int], Any]) -> None:
    """Attempts and what woke the pod for them, the newest first."""
    newest = records[-1]
    for record in reversed(records):
        if record["uid"] != newest["uid"]:
            ui.label("An earlier pod of this name").classes("m-soft")
            newest = record
        _show_entry(record, chosen, on_choose)
        if record["wokenBy"]:
            hint = f", by the hint of {record['wokenHint']}" if record["wokenHint"] else ""
            shell.text(f"↑ {record['wokenBy']}{hint}").classes("m-soft m-move")


def _show_entry(record: Json, chosen: Json, on_choose: Callable[[int], Any]) -> None:
    sequence, is_chosen = record["sequence"], record["sequence"] == chosen["sequence"]
    button = ui.element("button").classes(f"m-group {'m-chosen' if is_chosen else ''}")
    button.props(f"aria-pressed={'true' if is_chosen else 'false'}")
    button.on("click", lambda: on_choose(sequence))
    with button, ui.element("div").classes("m-text"):
        with ui.element("div").classes("m-row"):
            ui.label(f"Attempt {record['attempt']}").classes("m-count")
            ui.label(record["result"]).classes(RESULTS.get(record["result"], ""))
        ui.label(f"{clock(record['started'])}, {1000 * record['durationSeconds']:.1f} ms")
        refused = sorted({group["plugin"] for group in record["refusals"]})
        if record["result"] == "unschedulable" and refused:
            shell.text(f"refused by {', '.join(refused)}").classes("m-soft")
    if not is_chosen:
        query = {"attempt": str(chosen["sequence"]), "compare": str(sequence)}
        ui.link(f"Compare with attempt {chosen['attempt']}", address(pod_url(record["pod"]), query)).classes(
            "m-move"
        )


def show_attempt(record: Json) -> None:
    """What one attempt decided, and why, at each extension point that is on record."""
    with shell.card():
        shell.section(f"Attempt {record['attempt']}: {record['result']}")
        with ui.element("div").classes("m-pairs"):
            for name, says in _points(record):
                ui.label(name).classes("m-soft")
                shell.text(says)
        if record["node"]:
            ui.link(record["node"], node_url(record["node"])).classes("m-text")
        if record["message"]:
            shell.text(record["message"]).classes("m-mono")
    if record["scores"]:
        with shell.card():
            shell.section("Best nodes")
            view.show_scores(record["scores"], record["margin"])
    if record["nominatedNode"]:
        with shell.card():
            shell.section("Preemption")
            view.show_preemption(record, "These pods were preempted on")
    if record["refusals"]:
        with shell.card():
            shell.section("Who refused nodes")
            view.show_refusals(record["refusals"], record["nodes"]["total"])
        with shell.card():
            shell.section("Node by node")
            ui.label("A node is refused by the plugin that came first; the others were not asked.").classes(
                "m-soft"
            )
            show_missing(record)
            grid.show_nodes(_table(record), open_node, refused_by=False)


def _points(record: Json) -> list[tuple[str, str]]:
    """Extension point → what came of it."""
    nodes, scores = record["nodes"], record["scores"]
    found = [("PreFilter", record["preFilter"])]
    if nodes["total"]:
        evaluated = f"{nodes['evaluated']:,} of {count(nodes['total'], 'node')} evaluated"
        found.append(("Filter", f"{evaluated}, {nodes['feasible']:,} feasible"))
    for each in record["extenders"]:
        error = f": {each['error']}" if each["error"] else ""
        found.append(
            (f"Extender {each['extender']}", f"removed {count(each['removedNodes'], 'node')}{error}")
        )
    nominated = f"nominated {record['nominatedNode']}" if record["nominatedNode"] else ""
    found.append(("PostFilter", record["postFilter"] or nominated))
    if scores:
        margin = "" if record["margin"] is None else f", {record['margin']} ahead of the second"
        found.append(("Score", f"{scores[0]['node']} has {scores[0]['total']} points{margin}"))
    found.append(("Failed or refused at", record["plugin"]))
    return [(name, says) for name, says in found if says]


def _table(record: Json) -> Json:
    """Refused and best nodes in the form of an explanation's table."""
    groups = record["refusals"]
    plugins = list(dict.fromkeys(group["plugin"] for group in groups))
    reasons: dict[str, list[str]] = {plugin: [] for plugin in plugins}
    verdicts: dict[str, tuple[str, int]] = {}
    for group in groups:
        known = reasons[group["plugin"]]
        known.append("; ".join(group["reasons"]))
        verdicts.update(dict.fromkeys(group["nodeNames"], (group["plugin"], len(known))))
    totals = {each["node"]: each["total"] for each in record["scores"]}
    nodes = [*totals, *verdicts]
    return {
        "nodes": nodes,
        "scores": [totals.get(node) for node in nodes],
        "plugins": [
            {
                "plugin": plugin,
                "reasons": reasons[plugin],
                "verdicts": [
                    number if by == plugin else 0
                    for by, number in (verdicts.get(node, ("", 0)) for node in nodes)
                ],
            }
            for plugin in plugins
        ],
    }


def show_missing(*records: Json) -> None:
    """How many nodes of these attempts are not named."""
    missing = sum(
        group["nodes"] - len(group["nodeNames"]) for record in records for group in record["refusals"]
    )
    if missing:
        ui.label(f"{count(missing, 'more refused node')} not shown.").classes("m-bad")


async def open_node(node: str) -> None:
    ui.navigate.to(node_url(node))


def clock(epoch: float) -> str:
    return f"{datetime.fromtimestamp(epoch, UTC):%Y-%m-%d %H:%M:%S} UTC"
