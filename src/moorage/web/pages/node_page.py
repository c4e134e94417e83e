"""Node: what is free, what runs there, and which pending pods it does not take."""

from __future__ import annotations

from nicegui import ui

from moorage.api.quantity import format_amount
from moorage.web.pages import shell
from moorage.web.pages.text import address, pod_url
from moorage.web.source import ClusterSource, Json, WhatIfSource

PER_PAGE = 50


class NodePage:
    def __init__(self, source: ClusterSource, name: str) -> None:
        self._source = source
        self._name = name

    async def show(self) -> None:
        with shell.frame(self._source, self._name, "Cluster") as content:
            shell.headline(self._name)
        await shell.load(content, self._fill)

    async def _fill(self) -> None:
        node = await self._source.node(self._name)
        with shell.card():
            self._show_state(node)
        with shell.card():
            shell.section("Resources")
            _show_amounts(node)
        refused = node.get("refusedPods", [])
        if refused:
            with shell.card():
                shell.section("Pending pods that this node does not take")
                columns = (("pod", "Pod"), ("pods", "Pods like it"), ("plugin", "Plugin"), ("why", "Reason"))
                rows = [
                    {**each, "pod_url": pod_url(each["pod"]), "why": "; ".join(each.pop("reasons"))}
                    for each in refused
                ]
                shell.table(columns, rows, "pod", PER_PAGE)
        with shell.card():
            shell.section(f"Pods ({node['podCount']:,})")
            _show_pods(node["pods"])

    def _show_state(self, node: Json) -> None:
        with ui.element("div").classes("m-row"):
            if node["unschedulable"]:
                ui.label("Cordoned: takes no new pods").classes("m-bad")
            else:
                ui.label("Takes pods").classes("m-good")
            if isinstance(self._source, WhatIfSource):
                ui.link("What if it is drained?", address("/what-if", {"drain": self._name}))
                ui.link("What if there were more like it?", address("/what-if", {"like": self._name}))
        for what, texts in (
            ("Taints", [_taint(taint) for taint in node["taints"]]),
            ("Labels", [f"{key}={value}" for key, value in sorted(node["labels"].items())]),
        ):
            if texts:
                with ui.element("div").classes("m-row"):
                    ui.label(what).classes("m-soft")
                    for each in texts:
                        ui.label(each).classes("m-chip")


def _taint(taint: Json) -> str:
    value = f"={taint['value']}" if taint["value"] else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _show_amounts(node: Json) -> None:
    requested = {**node["requested"], "pods": node["podCount"]}
    with ui.element("div").classes("m-amounts"):
        for head in ("Resource", "Requested share", "Requested", "Allocatable", "Free"):
            ui.label(head).classes("m-head")
        for resource, there in node["allocatable"].items():
            used = requested.get(resource, 0)
            shell.text(resource)
            with ui.element("div").classes("m-bar"):
                ui.element("div").style(f"width: {min(100, 100 * used / there if there else 0):.1f}%")
            ui.label(format_amount(resource, used))
            ui.label(format_amount(resource, there))
            ui.label(format_amount(resource, there - used)).classes("m-bad" if used > there else "")


def _show_pods(pods: list[Json]) -> None:
    if not pods:
        shell.empty("No pod runs here.")
        return
    rows = [
        {
            "pod": pod["pod"],
            "pod_url": pod_url(pod["pod"]),
            "priority": pod["priority"],
            "state": "being deleted" if pod["terminating"] else "",
        }
        for pod in pods
    ]
    shell.table((("pod", "Pod"), ("priority", "Priority"), ("state", "")), rows, "pod", PER_PAGE)
