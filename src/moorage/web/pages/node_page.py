"""Node: its free resources, its pods, and the pending pods that it rejects."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from moorage.api.quantity import format_amount
from moorage.endpoints.answers import NodeAnswer, NodeTaint, PodOnNode
from moorage.web.pages import shell
from moorage.web.pages.text import address, pod_url
from moorage.web.source import ClusterSource, WhatIfSource

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
        content = await self._source.node(self._name)
        node = content.node
        with shell.card():
            self._show_state(node)
        with shell.card():
            shell.section("Resources")
            _show_amounts(node)
        if content.refused:
            with shell.card():
                shell.section("Pending pods that this node rejects")
                columns = (("pod", "Pod"), ("pods", "Pods of this template"), ("plugin", "Plugin"), ("why", "Reason"))
                rows = [
                    {
                        "pod": each.pod,
                        "pods": each.pods,
                        "plugin": each.plugin,
                        "pod_url": pod_url(each.pod),
                        "why": "; ".join(each.reasons),
                    }
                    for each in content.refused
                ]
                shell.table(columns, rows, "pod", PER_PAGE)
        with shell.card():
            shell.section(f"Pods ({node.pod_count:,})")
            _show_pods(node.pods)

    def _show_state(self, node: NodeAnswer) -> None:
        with ui.element("div").classes("m-row"):
            if node.unschedulable:
                ui.label("Cordoned: accepts no new pods").classes("m-bad")
            else:
                ui.label("Schedulable").classes("m-good")
            if isinstance(self._source, WhatIfSource):
                ui.link("What if this node is drained?", address("/what-if", {"drain": self._name}))
                ui.link("What if more nodes like this are added?", address("/what-if", {"like": self._name}))
        for what, texts in (
            ("Taints", [_taint(taint) for taint in node.taints]),
            ("Labels", [f"{key}={value}" for key, value in sorted(node.labels.items())]),
        ):
            if texts:
                with ui.element("div").classes("m-row"):
                    ui.label(what).classes("m-soft")
                    for each in texts:
                        ui.label(each).classes("m-chip")


def _taint(taint: NodeTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _show_amounts(node: NodeAnswer) -> None:
    requested = {**node.requested, "pods": node.pod_count}
    with ui.element("div").classes("m-amounts"):
        for head in ("Resource", "Requested share", "Requested", "Allocatable", "Free"):
            ui.label(head).classes("m-head")
        for resource, there in node.allocatable.items():
            used = requested.get(resource, 0)
            shell.text(resource)
            with ui.element("div").classes("m-bar"):
                ui.element("div").style(f"width: {min(100, 100 * used / there if there else 0):.1f}%")
            ui.label(format_amount(resource, used))
            ui.label(format_amount(resource, there))
            ui.label(format_amount(resource, there - used)).classes("m-bad" if used > there else "")


def _show_pods(pods: Sequence[PodOnNode]) -> None:
    if not pods:
        shell.empty("This node has no pods.")
        return
    rows = [
        {
            "pod": pod.pod,
            "pod_url": pod_url(pod.pod),
            "priority": pod.priority,
            "state": "Terminating" if pod.terminating else "",
        }
        for pod in pods
    ]
    shell.table((("pod", "Pod"), ("priority", "Priority"), ("state", "")), rows, "pod", PER_PAGE)
