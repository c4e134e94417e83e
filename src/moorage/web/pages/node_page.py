"""Node: its free resources, its pods, and the pending pods that it rejects."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nicegui import ui

from moorage.api.quantity import format_amount
from moorage.endpoints.answers import ConditionOfNode, NodeAnswer, NodeTaint, PodOnNode
from moorage.web.pages import shell
from moorage.web.pages.alike import merged
from moorage.web.pages.text import address, age, clock, pod_url
from moorage.web.source import ClusterSource, NodeContent, WhatIfSource

PER_PAGE = 50
NODE_SECONDS = 2.0
"""How often the page of a running scheduler asks again."""
SHOWN = ("cpu", "memory", "pods")
"""Resources whose requests have their own column, or none."""


class NodePage:
    def __init__(self, source: ClusterSource, name: str) -> None:
        self._source = source
        self._name = name
        self._shown: NodeContent | None = None

    async def show(self) -> None:
        with shell.frame(self._source, self._name, "Cluster") as content:
            shell.headline(self._name)
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

    async def _fill(self) -> None:
        content = await self._source.node(self._name)
        self._body = ui.element("div").classes("m-part")
        shell.Refresher(self._source, self._ask, NODE_SECONDS)
        self._render(content)

    async def _ask(self) -> None:
        content = await self._source.node(self._name)
        if content != self._shown and not self._body.is_deleted:
            self._render(content)

    def _render(self, content: NodeContent) -> None:
        self._shown = content
        shell.refill(self._body, lambda: self._show_content(content))

    def _show_content(self, content: NodeContent) -> None:
        node = content.node
        with shell.card():
            self._show_state(node)
        if node.conditions:
            with shell.card():
                shell.section("Conditions")
                _show_conditions(node.conditions)
        with shell.card():
            shell.section("Resources")
            _show_amounts(node)
        if content.refused:
            with shell.card():
                shell.section("Pending pods that this node rejects")
                columns = (("pod", "Pod"), ("pods", "Pods"), ("plugin", "Plugin"), ("why", "Reason"))
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
                shell.table(columns, merged(rows, "pod", ("plugin", "why"), "pods"), "pod", PER_PAGE)
        with shell.card():
            shell.section(f"Pods ({node.pod_count:,})")
            _show_pods(node.pods)

    def _show_state(self, node: NodeAnswer) -> None:
        with ui.element("div").classes("m-row"):
            says, tone = _state(node)
            ui.label(says).classes(tone)
            if node.created is not None:
                ui.label(f"Age: {age(time.time() - node.created)}").classes("m-soft")
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
    now = time.time()
    rows = [
        {
            "pod": pod.pod,
            "pod_url": pod_url(pod.pod),
            "owner": pod.owner or "none",
            "state": "Terminating" if pod.terminating else "Assumed" if pod.assumed else pod.phase,
            "cpu": _amount(pod, "cpu"),
            "memory": _amount(pod, "memory"),
            "others": ", ".join(
                f"{name} {format_amount(name, amount)}" for name, amount in pod.requests.items() if name not in SHOWN
            ),
            "priority": pod.priority,
            "age": "" if pod.created is None else age(now - pod.created),
        }
        for pod in pods
    ]
    columns = [("pod", "Pod"), ("owner", "Owner"), ("state", "Phase"), ("cpu", "CPU"), ("memory", "Memory")]
    if any(row["others"] for row in rows):
        columns.append(("others", "Other requests"))
    shell.table([*columns, ("priority", "Priority"), ("age", "Age")], rows, "pod", PER_PAGE)


def _amount(pod: PodOnNode, resource: str) -> str:
    return format_amount(resource, pod.requests[resource]) if resource in pod.requests else ""


def _state(node: NodeAnswer) -> tuple[str, str]:
    """Return whether the node accepts pods, and the class of this sentence."""
    if node.deleting_since is not None:
        return f"Terminating since {clock(node.deleting_since)}", "m-bad"
    if node.unschedulable:
        return "Cordoned: accepts no new pods", "m-bad"
    ready = next((each for each in node.conditions if each.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        return f"Not ready: {ready.reason or ready.status}", "m-bad"
    closed = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    if closed:
        return "Accepts only pods that tolerate its taints", "m-warn"
    return "Schedulable", "m-good"


def _show_conditions(conditions: Sequence[ConditionOfNode]) -> None:
    now = time.time()
    rows = [
        {
            "type": each.type,
            "status": each.status,
            "since": "" if each.since is None else f"{age(now - each.since)} ago",
            "reason": each.reason,
            "message": each.message,
        }
        for each in conditions
    ]
    heads = ("type", "Type"), ("status", "Status"), ("since", "Changed"), ("reason", "Reason"), ("message", "Message")
    shell.table(heads, rows, "type")
