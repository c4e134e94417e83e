"""Queue: the pending pods and why they are pending, grouped by the plugins that reject them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from msgspec import structs
from nicegui import ui

from moorage.endpoints.answers import PendingPod, QueueAnswer
from moorage.endpoints.queries import QueueQuery
from moorage.web.pages import shell
from moorage.web.pages.alike import merged
from moorage.web.pages.text import address, age, count, pod_url
from moorage.web.source import ClusterSource, Json

PLACES = {
    "active": ("Active", "Waiting for its turn"),
    "backoff": ("Backoff", "Tried recently; retried after a delay"),
    "unschedulable": ("Unschedulable", "Rejected; waiting for an event that may help"),
    "gated": ("Gated", "Kept out of the queue by a PreEnqueue plugin"),
    "permit": ("In Permit", "Has a node; waiting for a Permit plugin"),
    "inflight": ("In flight", "Being scheduled or bound"),
    "assumed": ("Assumed", "Has a node; not yet confirmed by the API server"),
    "bound": ("Bound", "Pods on nodes"),
    "nodes": ("Nodes", "All nodes of the cluster"),
}
"""Count → its label and meaning: places of pods, and nodes."""
ALIKE = ("state", "reason", "priority")
"""Pods with equal values are one row if there are many."""
COLUMNS = (("pod", "Pod"), ("place", "State"), ("why", "Reason"), ("age", "Age"), ("priority", "Priority"))


class QueuePage:
    def __init__(self, source: ClusterSource, query: QueueQuery) -> None:
        self._source = source
        self._query = query
        self._shown: QueueAnswer | None = None

    async def show(self) -> None:
        with shell.frame(self._source, "Queue", "Queue") as content:
            shell.headline("Pending pods")
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

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
        shell.Refresher(self._source, self._ask).show(stale(answer.connected))
        self._render(answer)

    # Actions

    async def _search_for(self) -> None:
        await self._go(search=self._search.value or "", after="")

    async def _choose(self, place: str, reason: str) -> None:
        await self._go(place=place, reason=reason, after="")

    async def _go_on(self) -> None:
        assert self._shown is not None  # otherwise there is no button
        await self._go(after=self._shown.after)

    async def _go(self, **changes: Any) -> None:
        self._query = structs.replace(self._query, **changes)
        query = self._query
        shown = {"reason": query.reason, "place": query.place, "search": query.search, "after": query.after}
        ui.navigate.history.replace(address("/", shown))
        await self._ask()

    # Content

    async def _ask(self) -> str | None:
        query = self._query
        answer = await self._source.queue(query)
        if answer != self._shown and query is self._query:  # the user may have moved on meanwhile
            self._render(answer)
        return stale(answer.connected)

    def _render(self, answer: QueueAnswer) -> None:
        before, self._shown = self._shown, answer
        if before is None or before.places != answer.places:
            shell.refill(self._tiles, lambda: show_tiles(answer.places))
        shell.refill(self._groups, lambda: self._show_groups(answer))
        now = time.time()
        self._table.rows = merged([_row(pod, now) for pod in answer.pods], "pod", ALIKE)
        self._table.set_visibility(bool(answer.pods))
        self._first.set_visibility(bool(self._query.after))
        self._next.set_visibility(answer.after is not None)
        shell.refill(self._empty, lambda: self._show_empty(answer))

    def _show_groups(self, answer: QueueAnswer) -> None:
        total = sum(group.pods for group in answer.groups)
        self._group("All pods", total, "", "")
        for group in answer.groups:
            name = group.reason.replace(",", ", ") or PLACES[group.place][0]
            self._group(name, group.pods, group.place, group.reason)

    def _group(self, name: str, pods: int, place: str, reason: str) -> None:
        chosen = (place, reason) == (self._query.place, self._query.reason)
        button = ui.element("button").classes(f"m-group {'m-chosen' if chosen else ''}")
        button.props(f"aria-pressed={'true' if chosen else 'false'}")
        button.on("click", lambda: self._choose(place, reason))
        with button:
            with ui.element("div").classes("m-text"):
                shell.text(name)
                if reason and place != "unschedulable":
                    ui.label(PLACES[place][0]).classes("m-soft")
            ui.label(f"{pods:,}").classes("m-count")

    def _show_empty(self, answer: QueueAnswer) -> None:
        if answer.pods:
            return
        if self._query.search or self._query.reason or self._query.place:
            shell.empty("No pods match.", "Clear the search, or choose All pods.")
        elif answer.connected:
            shell.empty("No pods are pending.", "Every pod has a node.")
        else:
            shell.empty("It is not known which pods are pending.", "The scheduler has not read the pods yet.")


def show_tiles(places: Mapping[str, int]) -> None:
    for place, number in places.items():
        name, meaning = PLACES.get(place, (place, ""))
        with ui.element("div").classes("m-tile").tooltip(meaning):
            ui.label(f"{number:,}").classes("m-number")
            ui.label(name).classes("m-soft")


def stale(connected: bool) -> str | None:
    """Return why an answer of the scheduler is out of date; None if it is not."""
    return None if connected else "Pods and nodes are shown as it last saw them. The page goes on by itself."


def _row(pod: PendingPod, now: float) -> Json:
    place = PLACES.get(pod.place, (pod.place,))[0]
    # The message goes on with what preemption says; the page of the pod shows that.
    figures, dot, _ = pod.message.partition(". ")
    why = f"{figures}{dot.strip()}" or pod.why
    return {
        "pod": pod.pod,
        "pod_url": pod_url(pod.pod),
        "place": place + (f", retried within {age(pod.until - now)}" if pod.until is not None else ""),
        "state": (place, pod.nominated_node),
        "reason": why,
        "why": " ".join(
            each
            for each in (
                f"Nominated to {pod.nominated_node}." if pod.nominated_node else "",
                why,
                f"{count(pod.attempts, 'attempt')}." if pod.attempts else "",
            )
            if each
        ),
        "age": "" if pod.since is None else age(now - pod.since),
        "priority": pod.priority,
    }
