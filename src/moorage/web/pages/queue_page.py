"""Queue: which pods wait, and why; grouped by who refuses them, searchable."""

from __future__ import annotations

import time
from dataclasses import replace

from nicegui import ui

from moorage.web.pages import shell
from moorage.web.pages.text import address, age, count, pod_url
from moorage.web.source import ClusterSource, Json, QueueQuery

PLACES = {
    "active": ("Active", "Waits for its turn"),
    "backoff": ("Backoff", "Tried lately; tried again after a while"),
    "parked": ("Parked", "Refused; waits for an event that may help"),
    "gated": ("Gated", "Held back by a PreEnqueue plugin"),
    "permit": ("In Permit", "Has a node; a Permit plugin asks it to wait"),
    "inflight": ("In flight", "An attempt or a binding is under way"),
    "assumed": ("Assumed", "Has a node; the API server has not confirmed it"),
    "bound": ("Bound", "On nodes"),
    "nodes": ("Nodes", "All nodes of the cluster"),
}
"""What is counted → what it is called, and what it means: places of pods, and nodes."""
COLUMNS = (("pod", "Pod"), ("place", "State"), ("why", "Why"), ("age", "Waits"), ("priority", "Priority"))


class QueuePage:
    def __init__(self, source: ClusterSource, query: QueueQuery) -> None:
        self._source = source
        self._query = query
        self._shown: Json = {}

    async def show(self) -> None:
        with shell.frame(self._source, "Queue", "Queue") as content:
            shell.headline("Pods that wait")
        await shell.load(content, self._fill)

    async def _fill(self) -> None:
        answer = await self._source.queue(self._query)
        self._tiles = ui.element("div").classes("m-tiles")
        with ui.element("div").classes("m-columns"):
            with shell.card():
                shell.section("By reason")
                self._groups = ui.element("div")
            with ui.element("div").classes("m-card"):
                self._search = (
                    ui.input("Search namespace/name", value=self._query.search, on_change=self._search_for)
                    .props('type=search dense outlined clearable debounce=300 aria-label="Search pods"')
                    .classes("m-search")
                )
                self._table = shell.table(COLUMNS, [], "pod")
                self._empty = ui.element("div")
                with ui.element("div").classes("m-row"):
                    self._first = ui.button("First page", on_click=lambda: self._go(after=""))
                    self._next = ui.button("Next page", on_click=self._go_on)
                    for button in (self._first, self._next):
                        button.props("flat dense no-caps")
        shell.Refresher(self._source, self._ask)
        self._render(answer)

    # What the user does

    async def _search_for(self) -> None:
        await self._go(search=self._search.value or "", after="")

    async def _choose(self, place: str, reason: str) -> None:
        await self._go(place=place, reason=reason, after="")

    async def _go_on(self) -> None:
        await self._go(after=self._shown["after"])

    async def _go(self, **changes: str) -> None:
        self._query = replace(self._query, **changes)  # type: ignore[arg-type]
        query = self._query
        shown = {"reason": query.reason, "place": query.place, "search": query.search, "after": query.after}
        ui.navigate.history.replace(address("/", shown))
        await self._ask()

    # What is shown

    async def _ask(self) -> None:
        query = self._query
        answer = await self._source.queue(query)
        if answer != self._shown and query is self._query:  # the user may have gone on meanwhile
            self._render(answer)

    def _render(self, answer: Json) -> None:
        before, self._shown = self._shown, answer
        if before.get("places") != answer["places"]:
            shell.refill(self._tiles, lambda: show_tiles(answer["places"]))
        shell.refill(self._groups, lambda: self._show_groups(answer))
        now = time.time()
        self._table.rows = [_row(pod, now) for pod in answer["pods"]]
        self._table.set_visibility(bool(answer["pods"]))
        self._first.set_visibility(bool(self._query.after))
        self._next.set_visibility(answer["after"] is not None)
        shell.refill(self._empty, lambda: self._show_empty(answer))

    def _show_groups(self, answer: Json) -> None:
        total = sum(group["pods"] for group in answer["groups"])
        self._group("All pods", total, "", "")
        for group in answer["groups"]:
            name = group["reason"].replace(",", ", ") or PLACES[group["place"]][0]
            self._group(name, group["pods"], group["place"], group["reason"])

    def _group(self, name: str, pods: int, place: str, reason: str) -> None:
        chosen = (place, reason) == (self._query.place, self._query.reason)
        button = ui.element("button").classes(f"m-group {'m-chosen' if chosen else ''}")
        button.props(f"aria-pressed={'true' if chosen else 'false'}")
        button.on("click", lambda: self._choose(place, reason))
        with button:
            with ui.element("div").classes("m-text"):
                shell.text(name)
                if reason and place != "parked":
                    ui.label(PLACES[place][0]).classes("m-soft")
            ui.label(f"{pods:,}").classes("m-count")

    def _show_empty(self, answer: Json) -> None:
        if answer["pods"]:
            return
        if self._query.search or self._query.reason or self._query.place:
            shell.empty("No pod matches.", "Clear the search, or choose All pods.")
        else:
            shell.empty("No pod waits.", "Every pod has a node.")


def show_tiles(places: dict[str, int]) -> None:
    for place, number in places.items():
        name, meaning = PLACES.get(place, (place, ""))
        with ui.element("div").classes("m-tile").tooltip(meaning):
            ui.label(f"{number:,}").classes("m-number")
            ui.label(name).classes("m-soft")


def _row(pod: Json, now: float) -> Json:
    since, until = pod["since"], pod.get("until")
    tried = f"{pod['why']} Tried {count(pod['attempts'], 'time')}." if pod.get("attempts") else pod["why"]
    return {
        "pod": pod["pod"],
        "pod_url": pod_url(pod["pod"]),
        "place": PLACES.get(pod["place"], (pod["place"],))[0]
        + (f", at most {age(until - now)}" if until is not None else ""),
        "why": tried,
        "age": "" if since is None else age(now - since),
        "priority": pod["priority"],
    }
