"""What if: new pods, drained nodes, more nodes; tried on a copy, and compared with the present."""

from __future__ import annotations

from collections.abc import Iterator

from nicegui import ui

from moorage.web.pages import explanation_view as view
from moorage.web.pages import shell
from moorage.web.pages.alike import merged
from moorage.web.pages.text import count
from moorage.web.source import Json, Question, WhatIfSource

MAX_NODES = 1000
PER_PAGE = 50
EXAMPLE = """apiVersion: v1
kind: Pod
metadata: {name: example}
spec:
  containers:
  - name: main
    image: app
    resources: {requests: {cpu: 500m}}
"""


class WhatIfPage:
    def __init__(self, source: WhatIfSource, drain: str = "", like: str = "") -> None:
        self._source = source
        self._drained, self._liked = drain, like

    async def show(self) -> None:
        with shell.frame(self._source, "What if", "What if"):
            shell.headline("What if")
            ui.label("Changes are tried on a copy in memory. The cluster itself is not changed.").classes("m-soft")
            with shell.card():
                self._show_form()
            self._answer = ui.element("div").classes("m-answer")
        if self._drained or self._liked:
            await self._try()  # the question is in the address

    def _show_form(self) -> None:
        self._manifests = (
            ui.textarea("Objects to apply (YAML or JSON)", placeholder=EXAMPLE)
            .props("outlined input-class=m-mono rows=9")
            .style("width: 100%")
        )
        with ui.element("div").classes("m-row"):
            self._drain = ui.input("Nodes to drain", value=self._drained)
            self._number = ui.number("Nodes to add", value=int(bool(self._liked)), min=0, max=MAX_NODES)
            self._like = ui.input("Copies of node", value=self._liked)
            for field in (self._drain, self._number, self._like):
                field.props("dense outlined").style("min-width: 220px")
            self._button = ui.button("Try", on_click=self._try).props("no-caps unelevated")

    async def _try(self) -> None:
        self._answer.clear()
        self._button.disable()
        try:
            await shell.load(self._answer, self._fill)
        finally:
            self._button.enable()

    async def _fill(self) -> None:
        names = [name.strip() for name in self._drain.value.split(",") if name.strip()]
        question = Question(
            manifests=self._manifests.value or "",
            drain=tuple(names),
            add_nodes=int(self._number.value or 0),
            like=self._like.value.strip(),
        )
        if not (question.manifests.strip() or question.drain or question.add_nodes):
            shell.empty(
                "There is nothing to try.", "Paste objects, name nodes to drain, or set the number of nodes to add."
            )
            return
        outcome = await self._source.what_if(question)
        rows = merged(_rows(outcome), "pod", ("now", "then"))
        with shell.card():
            shell.section(_headline(outcome))
            if rows:
                shell.table((("pod", "Pod"), ("now", "Now"), ("then", "After")), rows, "pod", PER_PAGE)
            else:
                shell.empty("No pod would move.")
        why = outcome["explanation"]
        if why is not None and why["refusals"]:
            with shell.card():
                shell.section(f"Why {why['pod']} would stay pending")
                view.show_refusals(why["refusals"], why["nodes"]["total"])


def _headline(outcome: Json) -> str:
    parts = [
        f"{count(len(outcome[key]), 'pod')} {says}"
        for key, says in (
            ("placed", "placed"),
            ("moved", "moved"),
            ("pending", "pending"),
            ("preempted", "preempted"),
            ("lost", "lost"),
            ("blocked", "blocked"),
        )
        if outcome.get(key)
    ]
    return ", ".join(parts) or "Nothing would change"


def _rows(outcome: Json) -> Iterator[Json]:
    for pod, then in _then(outcome):
        now = outcome["present"].get(pod)
        shown = {None: "does not exist", "": "pending"}.get(now, now)
        yield {"pod": pod, "now": shown, "then": then}


def _then(outcome: Json) -> Iterator[tuple[str, str]]:
    yield from outcome["placed"].items()
    yield from ((pod, move["to"]) for pod, move in outcome["moved"].items())
    yield from ((pod, f"pending: {message}") for pod, message in outcome["pending"].items())
    yield from ((pod, "preempted") for pod in outcome["preempted"])
    yield from ((pod, "deleted; no controller recreates it") for pod in outcome["lost"])
    yield from ((pod, f"stays on its node: {why}") for pod, why in outcome.get("blocked", {}).items())
