"""Cluster: all nodes at a glance, by any resource, grouped by any label."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from mooring.web import shell
from mooring.web.heat_map import HeatMap, heat_map
from mooring.web.queue_page import show_tiles
from mooring.web.source import ClusterSource, Json
from mooring.web.text import address, node_url

MOST_FOUND = 20
NODES_SECONDS = 5.0
"""All nodes are much to ask for."""


class ClusterPage:
    def __init__(self, source: ClusterSource, resource: str, group: str) -> None:
        self._source = source
        self._resource = resource
        self._group = group
        self._nodes: Json = {}
        self._map: HeatMap | None = None

    async def show(self) -> None:
        with shell.frame(self._source, "Cluster", "Cluster") as content:
            shell.headline("Nodes")
        await shell.load(content, self._fill)

    async def _fill(self) -> None:
        summary, self._nodes = await self._source.summary(), await self._source.nodes()
        with ui.element("div").classes("m-tiles"):
            with ui.element("div").classes("m-tile"):
                ui.label(f"{summary['nodes']:,}").classes("m-number")
                ui.label("Nodes").classes("m-soft")
            show_tiles(summary["pods"])
        if not self._nodes["names"]:
            shell.empty("There are no nodes.", "Pods wait until there are some.")
            return
        with shell.card():
            self._show_choices()
            self._found = ui.element("div").classes("m-row")
            self._show_map()
            ui.label("An orange frame is a cordoned node. Click a node to open it.").classes("m-soft")
        shell.Refresher(self._source, self._ask, NODES_SECONDS)

    def _show_choices(self) -> None:
        resources, labels = list(self._nodes["amounts"]), list(self._nodes["labels"])
        self._resource = self._resource if self._resource in resources else resources[0]
        self._group = self._group if self._group in labels else ""
        with ui.element("div").classes("m-row"):
            resource = ui.select(resources, value=self._resource, label="Resource")
            groups = {"": "no groups", **{key: key for key in labels}}
            group = ui.select(groups, value=self._group, label="Group by")
            search = ui.input("Find a node").props("type=search dense outlined clearable debounce=200")
        for choice in (resource, group):
            choice.props("dense outlined options-dense").style("min-width: 220px")
        resource.on_value_change(lambda event: self._choose(event.value, self._group))
        group.on_value_change(lambda event: self._choose(self._resource, event.value))
        search.on_value_change(lambda event: self._find(event.value or ""))

    def _show_map(self) -> None:
        self._map = heat_map(self._nodes, self._resource, self._group)
        self._chart = ui.echart(self._map.options, on_point_click=self._open)
        self._chart.style(f"height: {self._map.height}px; width: 100%")
        self._chart.props('role="img" aria-label="Nodes by requested share; use Find a node by keyboard"')

    def _choose(self, resource: str, group: str) -> None:
        self._resource, self._group = resource, group
        ui.navigate.history.replace(address("/cluster", {"resource": resource, "group": group}))
        self._draw()

    def _draw(self) -> None:
        self._map = heat_map(self._nodes, self._resource, self._group)
        self._chart.options.clear()
        self._chart.options.update(self._map.options)
        self._chart.style(f"height: {self._map.height}px; width: 100%")
        self._chart.update()

    def _find(self, part: str) -> None:
        self._found.clear()
        names = [name for name in self._nodes["names"] if part and part in name]
        with self._found:
            for name in names[:MOST_FOUND]:
                ui.link(name, node_url(name)).classes("m-chip")
            if part and not names:
                ui.label("No node has this in its name.").classes("m-soft")
            if len(names) > MOST_FOUND:
                ui.label(f"and {len(names) - MOST_FOUND:,} more").classes("m-soft")

    def _open(self, event: Any) -> None:
        assert self._map is not None
        ui.navigate.to(node_url(self._map.nodes[event.data_index]))

    async def _ask(self) -> None:
        nodes = await self._source.nodes()
        if nodes != self._nodes:
            self._nodes = nodes
            self._draw()
