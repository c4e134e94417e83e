"""Cluster: all nodes by any resource, grouped by any label; pods by state; recent attempts of a scheduler."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from moorage.endpoints.answers import SummaryAnswer
from moorage.web.pages import grid, shell
from moorage.web.pages.attempts_view import open_node
from moorage.web.pages.curves import show_curves
from moorage.web.pages.heat_map import MEASURED, REQUESTED, HeatMap, heat_map
from moorage.web.pages.queue_page import show_tiles, stale
from moorage.web.pages.text import address, node_url
from moorage.web.source import ClusterSource, Json

MAX_FOUND = 20
NODES_SECONDS = 5.0
"""Listing all nodes is expensive."""


class ClusterPage:
    def __init__(self, source: ClusterSource, resource: str, group: str, used: str) -> None:
        self._source = source
        self._chosen = {"resource": resource, "group": group, "show": used}
        """The choices in the address of the page."""
        self._summary: SummaryAnswer | None = None
        self._nodes: Json = {}
        self._map: HeatMap | None = None

    async def show(self) -> None:
        with shell.frame(self._source, "Cluster", "Cluster") as content:
            shell.headline("Nodes")
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

    async def _fill(self) -> None:
        summary, self._nodes = await self._source.summary(), await self._source.nodes()
        self._tiles = ui.element("div").classes("m-tiles")
        if not self._nodes["names"]:
            self._show_summary(summary)
            shell.empty("The cluster has no nodes.", "Pods stay pending until it has some.")
            return
        with shell.card():
            self._show_choices()
            self._found = ui.element("div").classes("m-row")
            self._show_map()
            note = "Nodes with an orange frame are cordoned or being deleted. Click a node to open it."
            ui.label(note).classes("m-soft")
        if summary.steps is not None:
            self._draw_curves = show_curves()
        with shell.card():
            shell.section("All nodes")
            self._list = grid.show_list(self._nodes, open_node)
        self._show_summary(summary)
        shell.Refresher(self._source, self._ask, NODES_SECONDS).show(stale(summary.connected))

    def _show_summary(self, summary: SummaryAnswer) -> None:
        before, self._summary = self._summary, summary
        if before is None or (summary.nodes, summary.pods) != (before.nodes, before.pods):
            shell.refill(self._tiles, lambda: show_tiles({"nodes": summary.nodes, **summary.pods}))
        if summary.steps is not None and self._nodes["names"]:
            self._draw_curves(summary.steps)

    def _show_choices(self) -> None:
        resources, labels = list(self._nodes["amounts"]), list(self._nodes["labels"])
        used = [REQUESTED]
        if any(MEASURED in amounts for amounts in self._nodes["amounts"].values()):
            used.append(MEASURED)
        with ui.element("div").classes("m-row"):
            self._select("Resource", "resource", {name: name for name in resources})
            self._select("Group by", "group", {"": "no grouping", **{key: key for key in labels}})
            self._select("Share", "show", {name: name for name in used})
            search = ui.input("Find a node").props("type=search dense outlined clearable debounce=200")
        search.on_value_change(lambda event: self._find(event.value or ""))

    def _select(self, label: str, choice: str, options: dict[str, str]) -> None:
        if self._chosen[choice] not in options:
            self._chosen[choice] = next(iter(options))
        made = ui.select(options, value=self._chosen[choice], label=label)
        made.props("dense outlined options-dense").style("min-width: 200px")
        made.on_value_change(lambda event: self._choose(choice, event.value))

    def _choose(self, choice: str, value: str) -> None:
        self._chosen[choice] = value
        ui.navigate.history.replace(address("/cluster", self._chosen))
        self._draw()

    def _made(self) -> HeatMap:
        chosen = self._chosen
        self._map = heat_map(self._nodes, chosen["resource"], chosen["group"], chosen["show"])
        return self._map

    def _show_map(self) -> None:
        made = self._made()
        self._chart = ui.echart(made.options, on_point_click=self._open)
        self._chart.style(f"height: {made.height}px; width: 100%")
        self._chart.props('role="img" aria-label="Nodes by share; use Find a node with the keyboard"')

    def _draw(self) -> None:
        made = self._made()
        self._chart.options.clear()
        self._chart.options.update(made.options)
        self._chart.style(f"height: {made.height}px; width: 100%")
        self._chart.update()

    def _find(self, part: str) -> None:
        self._found.clear()
        names = [name for name in self._nodes["names"] if part and part in name]
        with self._found:
            for name in names[:MAX_FOUND]:
                ui.link(name, node_url(name)).classes("m-chip")
            if part and not names:
                ui.label("No node name contains this text.").classes("m-soft")
            if len(names) > MAX_FOUND:
                ui.label(f"and {len(names) - MAX_FOUND:,} more").classes("m-soft")

    def _open(self, event: Any) -> None:
        assert self._map is not None
        ui.navigate.to(node_url(self._map.nodes[event.data_index]))

    async def _ask(self) -> str | None:
        summary = await self._source.summary()
        self._show_summary(summary)
        nodes = await self._source.nodes()
        if nodes != self._nodes:
            self._nodes = nodes
            self._draw()
            self._list(nodes)
        return stale(summary.connected)
