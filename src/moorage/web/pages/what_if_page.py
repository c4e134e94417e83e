"""What if: new pods, drained nodes, more nodes, an upgrade; tried on a copy, and compared with the present."""

from __future__ import annotations

from collections.abc import Iterator

from nicegui import ui

from moorage.api.versions import BEHAVIOURS
from moorage.web.pages import explanation_view as view
from moorage.web.pages import shell, upgrade_view
from moorage.web.pages.alike import merged
from moorage.web.pages.text import count
from moorage.web.source import Json, Question, WhatIfSource

MAX_NODES = 1000
PER_PAGE = 50
UPGRADES = {"": "no upgrade", **{minor: f"kube-scheduler {minor}" for minor in list(BEHAVIOURS)[1:]}}
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
    def __init__(self, source: WhatIfSource, drain: str = "", like: str = "", upgrade: str = "") -> None:
        self._source = source
        self._drained, self._liked = drain, like
        self._upgraded = upgrade if upgrade in UPGRADES else ""

    async def show(self) -> None:
        with shell.frame(self._source, "What if", "What if"):
            shell.headline("What if")
            ui.label("Changes are tried on a copy in memory. The cluster itself is not changed.").classes("m-soft")
            with shell.card():
                self._show_form()
            self._answer = ui.element("div").classes("m-answer")
        if self._drained or self._liked or self._upgraded:
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
            self._upgrade = ui.select(UPGRADES, label="Upgrade to", value=self._upgraded)
            for field in (self._drain, self._number, self._like, self._upgrade):
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
        changes = bool(question.manifests.strip() or question.drain or question.add_nodes)
        if self._upgrade.value:
            await self._fill_upgrade(self._upgrade.value, changes)
            return
        if not changes:
            shell.empty(
                "There is nothing to try.",
                "Paste objects, name nodes to drain, set the number of nodes to add, or choose a version.",
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

    async def _fill_upgrade(self, to: str, changes: bool) -> None:
        if changes:
            shell.empty(
                "An upgrade is previewed on the cluster as it is.", "Clear the other fields, or choose no upgrade."
            )
            return
        upgrade_view.show(await self._source.upgrade(to))


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
