"""The nodes as /moorage/v1 shows them: as the scheduler accounts them, assumed pods included.

Amounts are the scheduler's own integers: cpu in thousandths of a core, everything else in its unit.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from moorage.api.node import Node
from moorage.app.scheduler import Scheduler
from moorage.endpoints.cached import Kept
from moorage.endpoints.loop_bridge import LoopDoor
from moorage.endpoints.v1.routes import NodeQuery, NodesQuery
from moorage.framework.nodes import NodeView
from moorage.state.pod_entry import PodEntry


class NodesPage:
    def __init__(self, scheduler: Scheduler, door: LoopDoor) -> None:
        self._door = door
        table = scheduler.engine.cache.table
        self._views = Kept(door, scheduler.clock.now, lambda: list(table.nodes()), _by_name)

    async def page(self, query: NodesQuery) -> dict[str, Any]:
        views = await self._views.get()
        found = views[bisect_right(views, query.after, key=_name) if query.after else 0 :]
        if query.search:
            found = [view for view in found if _has(view.node, query.search)]
        shown = found[: query.limit]
        requested = await self._door.ask(lambda: [dict(view.requested) for view in shown])
        return {
            "total": len(views),
            "nodes": [_describe(view, amounts) for view, amounts in zip(shown, requested, strict=True)],
            "after": shown[-1].name if len(found) > len(shown) else None,
        }


def _by_name(views: list[NodeView]) -> list[NodeView]:
    return sorted(views, key=_name)


async def node(scheduler: Scheduler, door: LoopDoor, query: NodeQuery, name: str) -> dict[str, Any] | str:
    table = scheduler.engine.cache.table

    def look() -> tuple[NodeView, dict[str, int], list[PodEntry]] | None:
        row = table.row_of(name)
        if row < 0:
            return None
        view = table.view(row)
        return view, dict(view.requested), list(table.load_on(row).entries.values())

    if (looked := await door.ask(look)) is None:
        return f"there is no node {name[:300]!r}: /moorage/v1/nodes names them"
    view, requested, entries = looked
    found = sorted(
        (entry for entry in entries if entry.original.key > query.after), key=lambda one: one.original.key
    )
    shown = found[: query.limit]
    return {
        **_describe(view, requested),
        "pods": [_pod(entry) for entry in shown],
        "after": shown[-1].original.key if len(found) > len(shown) else None,
    }


def _name(view: NodeView) -> str:
    return view.name


def _has(node: Node, text: str) -> bool:
    return text in node.name or any(text in f"{key}={value}" for key, value in node.labels.items())


def _describe(view: NodeView, requested: dict[str, int]) -> dict[str, Any]:
    return {
        "name": view.name,
        "labels": view.labels,
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in view.taints],
        "unschedulable": view.unschedulable,
        "allocatable": view.allocatable,
        "requested": {name: amount for name, amount in requested.items() if name != "pods"},
        "podCount": requested["pods"],
    }


def _pod(entry: PodEntry) -> dict[str, Any]:
    pod = entry.original
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "profile": pod.scheduler_name,
        "priority": pod.priority,
        "assumed": entry.assumed,
        "terminating": pod.is_terminating,
        "requests": {name: amount for name, amount in entry.requests.items() if amount},
    }
