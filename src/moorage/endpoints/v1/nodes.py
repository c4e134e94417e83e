"""The views of /moorage/v1/nodes: the nodes as the scheduler accounts for them, assumed pods included."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.times import parse_time
from moorage.app.scheduler import Scheduler
from moorage.endpoints.answers import ConditionOfNode, NodeAnswer, NodesAnswer, NodeSummary, NodeTaint, PodOnNode
from moorage.endpoints.loop_bridge import Cached, LoopBridge
from moorage.endpoints.queries import NodeQuery, NodesQuery, Reason
from moorage.framework.nodes import NodeView
from moorage.state.pod_entry import PodEntry


class NodesView:
    def __init__(self, scheduler: Scheduler, bridge: LoopBridge) -> None:
        self._bridge = bridge
        self._table = table = scheduler.engine.cache.table
        self._views = Cached(bridge, scheduler.clock.now, lambda: list(table.nodes()), _by_name)

    async def nodes(self, query: NodesQuery) -> NodesAnswer:
        """Return a page of nodes, by name."""
        views = await self._views.get()
        found = views[bisect_right(views, query.after, key=_name) if query.after else 0 :]
        if query.search:
            found = [view for view in found if _has(view.node, query.search)]
        shown = found[: query.limit]
        requested = await self._bridge.call(lambda: [dict(view.requested) for view in shown])
        return NodesAnswer(
            total=len(views),
            nodes=[NodeSummary(**_fields(view, amounts)) for view, amounts in zip(shown, requested, strict=True)],
            after=shown[-1].name if len(found) > len(shown) else None,
        )

    async def node(self, query: NodeQuery, name: str) -> NodeAnswer | Reason:
        """Return one node with a page of its pods."""
        table = self._table

        def look() -> tuple[NodeView, dict[str, int], list[PodEntry]] | None:
            row = table.row_of(name)
            if row < 0:
                return None
            view = table.view(row)
            return view, dict(view.requested), list(table.load_on(row).entries.values())

        if (looked := await self._bridge.call(look)) is None:
            return f"there is no node {name[:300]!r}; /moorage/v1/nodes lists the nodes"
        view, requested, entries = looked
        found = sorted((each for each in entries if each.original.key > query.after), key=lambda one: one.original.key)
        shown = found[: query.limit]
        pods = [pod_on_node(each.original, each.requests, assumed=each.assumed) for each in shown]
        return described(view, requested, pods, shown[-1].original.key if len(found) > len(shown) else None)


def _by_name(views: list[NodeView]) -> list[NodeView]:
    return sorted(views, key=_name)


def _name(view: NodeView) -> str:
    return view.name


def _has(node: Node, text: str) -> bool:
    return text in node.name or any(text in f"{key}={value}" for key, value in node.labels.items())


def _fields(view: NodeView, requested: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a NodeSummary."""
    return {
        "name": view.name,
        "labels": view.labels,
        "taints": [NodeTaint(key=each.key, value=each.value, effect=each.effect) for each in view.taints],
        "unschedulable": view.unschedulable,
        "allocatable": view.allocatable,
        "requested": {name: amount for name, amount in requested.items() if name != "pods"},
        "pod_count": requested["pods"],
        "deleting_since": parse_time(view.node.metadata.deletion_timestamp),
    }


def described(view: NodeView, requested: Mapping[str, int], pods: Sequence[PodOnNode], after: str | None) -> NodeAnswer:
    """Return a node with some of its pods."""
    conditions = [
        ConditionOfNode(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            since=parse_time(each.last_transition_time),
        )
        for each in view.node.status.conditions
    ]
    created = parse_time(view.node.metadata.creation_timestamp)
    return NodeAnswer(**_fields(view, requested), created=created, conditions=conditions, pods=pods, after=after)


def pod_on_node(pod: Pod, requests: Mapping[str, int], *, assumed: bool = False) -> PodOnNode:
    """Return a pod as the list of a node shows it."""
    owner = next((each for each in pod.metadata.owner_references if each.controller), None)
    return PodOnNode(
        pod=pod.key,
        uid=pod.uid,
        profile=pod.scheduler_name,
        priority=pod.priority,
        assumed=assumed,
        terminating=pod.is_terminating,
        requests={name: amount for name, amount in requests.items() if amount},
        phase=pod.status.phase,
        created=parse_time(pod.metadata.creation_timestamp),
        owner=f"{owner.kind}/{owner.name}" if owner is not None else "",
    )
