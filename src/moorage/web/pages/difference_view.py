"""Shows how two recorded attempts of a pod differ."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from moorage.endpoints.answers import AttemptDetails
from moorage.web.pages import attempt_diff, grid, shell
from moorage.web.pages.attempts_view import open_node, show_missing
from moorage.web.pages.text import address, pod_url


def show_difference(before: AttemptDetails, after: AttemptDetails) -> None:
    heads = (f"Attempt {before.attempt}", f"Attempt {after.attempt}")
    changed, moved = attempt_diff.changes(before, after), attempt_diff.scores(before, after)
    with shell.card():
        with ui.element("div").classes("m-row"):
            shell.section(f"{heads[0]} and {heads[1].lower()}")
            ui.link("Close", address(pod_url(after.pod), {"attempt": str(after.sequence)}))
        if before.uid != after.uid:
            ui.label("These attempts belong to two different pods of the same name.").classes("m-bad")
        _show_table(("", *heads), attempt_diff.facts(before, after))
        if note := attempt_diff.note(before, after):
            ui.label(note).classes("m-soft")
        shell.section("Nodes with a different verdict")
        if changed:
            show_missing(before, after)
            _show_table(("Nodes", *heads), attempt_diff.groups(changed))
            grid.show_nodes(attempt_diff.table(changed, heads), open_node, refused_by=False)
        else:
            ui.label("None: the same plugins rejected the same nodes.")
        if moved:
            shell.section("Scores that changed")
            _show_table(("Node", *heads, "Points by plugin"), moved)


def _show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    columns = [(f"c{place}", head) for place, head in enumerate(heads)]
    shown = [{"id": at, **{f"c{place}": cell for place, cell in enumerate(row)}} for at, row in enumerate(rows)]
    if shown:
        shell.table(columns, shown, "id")
