"""The recorded attempts of a pod: a timeline to choose from, and the chosen attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from nicegui import ui

from moorage.endpoints.answers import AttemptDetails
from moorage.web.pages import explanation_view as view
from moorage.web.pages import grid, shell
from moorage.web.pages.alike import runs
from moorage.web.pages.text import address, clock, count, node_url, pod_url
from moorage.web.source import Json

RESULTS = {"scheduled": "m-good", "unschedulable": "m-bad", "error": "m-bad"}


def show_timeline(records: Sequence[AttemptDetails], chosen: AttemptDetails, on_choose: Callable[[int], Any]) -> None:
    """Show the attempts, newest first, and the events that woke the pod for them. Attempts in a row that ended
    alike are one entry with a count."""
    newest = records[-1]
    for same in runs(reversed(records), _end_of):
        if same[0].uid != newest.uid:
            ui.label("Earlier pod of the same name").classes("m-soft")
            newest = same[0]
        _show_entry(same[0], chosen, on_choose)
        if len(same) > 1:
            is_open = any(record.sequence == chosen.sequence for record in same[1:])
            with ui.element("details").props("open" if is_open else "").classes("m-more"):
                with ui.element("summary"):
                    ui.label(f"{count(len(same) - 1, 'earlier attempt')} with the same result")
                for record in same[1:]:
                    _show_entry(record, chosen, on_choose)


def _end_of(record: AttemptDetails) -> tuple[str, str, str, tuple[str, ...]]:
    """Return how an attempt ended."""
    return record.uid, record.result, record.message, tuple(sorted({group.plugin for group in record.refusals}))


def _show_entry(record: AttemptDetails, chosen: AttemptDetails, on_choose: Callable[[int], Any]) -> None:
    is_chosen = record.sequence == chosen.sequence
    button = ui.element("button").classes(f"m-group {'m-chosen' if is_chosen else ''}")
    button.props(f"aria-pressed={'true' if is_chosen else 'false'}")
    button.on("click", lambda: on_choose(record.sequence))
    with button, ui.element("div").classes("m-text"):
        with ui.element("div").classes("m-row"):
            ui.label(f"Attempt {record.attempt}").classes("m-count")
            ui.label(record.result).classes(RESULTS.get(record.result, ""))
        ui.label(f"{clock(record.started)}, {1000 * record.duration_seconds:.1f} ms")
        rejectors = sorted({group.plugin for group in record.refusals})
        if record.result == "unschedulable" and rejectors:
            shell.text(f"rejected by {', '.join(rejectors)}").classes("m-soft")
    if not is_chosen:
        query = {"attempt": str(chosen.sequence), "compare": str(record.sequence)}
        ui.link(f"Compare with attempt {chosen.attempt}", address(pod_url(record.pod), query)).classes("m-move")
    if record.woken_by:
        hint = f", hint of {record.woken_hint}" if record.woken_hint else ""
        shell.text(f"↑ {record.woken_by}{hint}").classes("m-soft m-move")


def show_attempt(record: AttemptDetails, figures: view.Figures = MappingProxyType({})) -> None:
    """Show what one attempt decided, and why, at each extension point that is on record. `figures` belong to the
    rejections."""
    with shell.card():
        shell.section(f"Attempt {record.attempt}: {record.result}")
        with ui.element("div").classes("m-pairs"):
            for name, says in _points(record):
                ui.label(name).classes("m-soft")
                shell.text(says)
        if record.node:
            ui.link(record.node, node_url(record.node)).classes("m-text")
        if record.message:
            shell.text(record.message).classes("m-mono")
    if record.scores:
        with shell.card():
            shell.section("Best nodes")
            view.show_scores(record.scores, None)  # the row Score says by how much the first is ahead
    if record.nominated_node:
        with shell.card():
            shell.section("Preemption")
            view.show_preemption("Pods preempted on", record.nominated_node, record.victims)
    if record.refusals:
        with shell.card():
            shell.section("Rejections by plugin")
            view.show_refusals(record.refusals, record.nodes.total, figures)
        with shell.card():
            shell.section("Rejections by node")
            ui.label("Each node shows the first plugin that rejected it; later plugins did not run.").classes("m-soft")
            show_missing(record)
            grid.show_nodes(verdict_table(record), open_node, refused_by=False)


def _points(record: AttemptDetails) -> list[tuple[str, str]]:
    """Return extension point → outcome."""
    nodes, scores = record.nodes, record.scores
    found = [("PreFilter", record.pre_filter)]
    if nodes.total:
        evaluated = f"{nodes.evaluated:,} of {count(nodes.total, 'node')} evaluated"
        found.append(("Filter", f"{evaluated}, {nodes.feasible:,} feasible"))
    for each in record.extenders:
        error = f": {each.error}" if each.error else ""
        found.append((f"Extender {each.extender}", f"removed {count(each.removed_nodes, 'node')}{error}"))
    nominated = f"nominated {record.nominated_node}" if record.nominated_node else ""
    said = "" if record.post_filter and record.post_filter in record.message else record.post_filter
    found.append(("PostFilter", said or nominated))
    if scores:
        margin = ""
        if record.margin is not None:
            margin = f", {record.margin} ahead of the second" if record.margin else ", as many as the second"
        found.append(("Score", f"{scores[0].node} has {scores[0].total} points{margin}"))
    found.append(("Failed or rejected by", record.plugin))
    return [(name, says) for name, says in found if says]


def verdict_table(record: AttemptDetails) -> Json:
    """Return rejected and best nodes in the form of the table of an explanation."""
    plugins = list(dict.fromkeys(group.plugin for group in record.refusals))
    reasons: dict[str, list[str]] = {plugin: [] for plugin in plugins}
    verdicts: dict[str, tuple[str, int]] = {}
    for group in record.refusals:
        known = reasons[group.plugin]
        known.append("; ".join(group.reasons))
        verdicts.update(dict.fromkeys(group.node_names, (group.plugin, len(known))))
    totals = {each.node: each.total for each in record.scores}
    nodes = [*totals, *verdicts]
    return {
        "nodes": nodes,
        "scores": [totals.get(node) for node in nodes],
        "plugins": [
            {
                "plugin": plugin,
                "reasons": reasons[plugin],
                "verdicts": [
                    number if by == plugin else 0 for by, number in (verdicts.get(node, ("", 0)) for node in nodes)
                ],
            }
            for plugin in plugins
        ],
    }


def show_missing(*records: AttemptDetails) -> None:
    """Show how many rejected nodes of these attempts are not named."""
    missing = sum(group.nodes - len(group.node_names) for record in records for group in record.refusals)
    if missing:
        ui.label(f"{count(missing, 'more rejected node')} not shown.").classes("m-bad")


async def open_node(node: str) -> None:
    ui.navigate.to(node_url(node))
