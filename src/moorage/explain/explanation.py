"""Explain one pod: why it is pending, or why it is on its node, and what would help."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.explain.facts import all_facts
from moorage.explain.judging import Judge, Judgement, unassigned
from moorage.explain.other_remedies import state_remedies
from moorage.explain.refusals import RefusalGroup, detail_text, refusal_groups
from moorage.explain.remedies import SHOWN, find_remedies
from moorage.explain.standing import PodStanding, Surroundings, pods_on, standing
from moorage.explain.trying import Remedy, changed, leaving_nodes, outcome
from moorage.framework.nodes import IntArray, NodeView
from moorage.framework.optional import Detail
from moorage.framework.status import PostFilterResult
from moorage.runtime.attempt import Attempt
from moorage.runtime.score_board import ScoreBoard
from moorage.runtime.top_scores import NodeScore

MAX_BEST = 5
"""Number of nodes whose scores are shown, and of candidates for preemption."""


class PlacementReason(
    msgspec.Struct, frozen=True, rename={"best": "scores", "decided_by": "decidedBy", "own_refused": "ownRefused"}
):
    """Why a node is chosen."""

    node: str
    best: tuple[NodeScore, ...]
    """The best nodes, the winner first."""
    margin: int | None
    """Points between the first and the second; None without a second."""
    decided_by: tuple[str, ...]
    """The plugins that give the winner more points than the second, the largest difference first."""
    own: NodeScore | None = None
    """The scores of the node that the pod runs on, if that is another one."""
    own_refused: tuple[str, ...] = ()
    """Why that node would not be feasible now."""


class VictimsOnNode(msgspec.Struct, frozen=True, rename="camel"):
    """The victims of preemption on one node."""

    node: str
    victims: tuple[str, ...]
    reprieved: tuple[str, ...]
    """Candidate victims that preemption spares."""
    pdb_violations: int
    """Number of victims whose eviction violates a disruption budget."""
    highest_priority: int
    """Of the victims."""


@dataclass(slots=True)
class Explanation:
    """Why a pod is pending, or why it is on its node."""

    pod: Pod
    profile: str
    total: int
    feasible: int
    message: str
    """The text of the FailedScheduling event; empty if a node is feasible."""
    standing: PodStanding
    """The state of the pod, which comes first."""
    facts: tuple[str, ...] = ()
    """What decides about the pod, as sentences."""
    held_back: tuple[str, ...] = ()
    """Why PreEnqueue keeps the pod out of the queue."""
    groups: list[RefusalGroup] = field(default_factory=list)
    placement: PlacementReason | None = None
    nominated: str = ""
    candidates: list[VictimsOnNode] = field(default_factory=list)
    """The best nodes for preemption, the nominated one first."""
    remedies: list[Remedy] = field(default_factory=list)
    nodes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Node → every refusal there; only for the nodes that were asked about."""
    table: dict[str, Any] | None = None
    """What every plugin says about every node, if asked for."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "pod": self.pod.key,
            "state": self.standing.state,
            "headline": self.standing.headline,
            "facts": list(self.facts),
            "profile": self.profile,
            "assignedTo": self.pod.spec.node_name,
            "nodes": {"total": self.total, "feasible": self.feasible},
            "message": self.message,
            "heldBack": list(self.held_back),
            "refusals": _plain(self.groups),
            "placement": _plain(self.placement),
            "preemption": {
                "nominatedNode": self.nominated,
                "victims": list(self.candidates[0].victims) if self.candidates else [],
                "candidates": _plain(self.candidates),
            },
            "remedies": [remedy_dict(remedy) for remedy in self.remedies],
            "byNode": self.nodes,
            **({} if self.table is None else {"table": self.table}),
        }


async def explain(
    judge: Judge,
    pod: Pod,
    *,
    nodes: Sequence[str] = (),
    remedies: int = SHOWN,
    table: bool = False,
    signs: str = "",
    any_scheduler: bool = False,
) -> Explanation:
    """Explain why the pod is pending, or why it is on its node.

    `nodes` are explained one by one as well. `table` adds what every plugin says about every node. A pod that
    has a node is explained as if it were created now, with itself removed from the node. `signs` is what shows that
    another scheduler runs, for a pod that waits for one; with `any_scheduler` the name in the pod does not count."""
    assigned = pod.spec.node_name
    around = _around(judge, pod)
    gone = ((PODS, pod, None),) if assigned else ()
    with changed(judge, gone):
        judgement = await judge.ask(unassigned(pod) if assigned else pod)
        state = standing(
            pod,
            dataclasses.replace(
                around,
                feasible=judgement.feasible,
                total=len(judgement.nodes),
                schedulers=() if any_scheduler else tuple(judge.engine.profiles),
                held_back=() if judgement.held_back is None else judgement.held_back.reasons,
                signs=signs,
            ),
        )
        found = Explanation(pod, judge.profile.name, len(judgement.nodes), judgement.feasible, judgement.message, state)
        if judgement.held_back is not None:
            found.held_back = judgement.held_back.reasons
        found.groups = refusal_groups(judgement)
        found.placement = _placement(judge, judgement, assigned)
        if judgement.preemption is not None:
            found.nominated = judgement.preemption.nominated_node or ""
            found.candidates = _candidates(judgement.preemption)
        if nodes:
            views = judgement.nodes.where(judgement.nodes.named(*nodes))
            found.nodes = {view.name: _refusals_on(judgement, view) for view in views}
        if table:
            found.table = _node_table(judgement, judge.scores(judgement.attempt))
        leaving = leaving_nodes(judge)
        found.facts = state.facts if assigned else await all_facts(judge, judgement, state, leaving)
        if remedies:
            feasible, best = outcome(judge, judgement.attempt, leaving)
            ends = [*state_remedies(pod, state.state, feasible, best)]
            # A nominated pod waits for victims to leave; a change would only start over.
            tried = [] if state.state == "nominated" else await find_remedies(judge, judgement, remedies)
            found.remedies = [*ends, *tried][:remedies]
    return found


def _around(judge: Judge, pod: Pod) -> Surroundings:
    """Return the node of the pod and the pods there, before the pod is taken out of the cluster."""
    name = pod.spec.node_name or pod.nominated_node_name
    stores = judge.engine.stores
    node = stores.lister(NODES).get(name) if name else None
    return Surroundings(0, 0, (), node, pods_on(stores.lister(PODS).list(), pod.nominated_node_name))


def _candidates(preemption: PostFilterResult) -> list[VictimsOnNode]:
    """Return the candidates with the least damage. A plugin that names none has its victims alone."""
    if preemption.candidates:
        found = [
            _victims(each.node_name, each.victims, each.reprieved, each.pdb_violations)
            for each in preemption.candidates
        ]
    else:
        found = [_victims(preemption.nominated_node or "", preemption.victims)] if preemption.victims else []
    return sorted(
        found,
        key=lambda each: (
            each.node != preemption.nominated_node,
            each.pdb_violations,
            each.highest_priority,
            len(each.victims),
        ),
    )[:MAX_BEST]


def _victims(node: str, gone: Sequence[Pod], kept: Sequence[Pod] = (), violations: int = 0) -> VictimsOnNode:
    top = max(pod.priority for pod in gone)
    return VictimsOnNode(node, tuple(pod.key for pod in gone), tuple(pod.key for pod in kept), violations, top)


def _node_table(judgement: Judgement, board: ScoreBoard | None) -> dict[str, Any]:
    """Return what every plugin says about every node, in columns.

    `nodes` are names. Each of `plugins` that refuses a node has its `reasons`, and in `verdicts` a number for
    each node: 0 if it does not refuse the node, else the place of the reason, counted from 1. `scores` are
    totals, None for a node that is not feasible."""
    nodes = judgement.nodes
    plugins = [
        {
            "plugin": verdict.plugin.name,
            "reasons": ["; ".join(status.reasons) for status in verdict.statuses.verdicts[1:]],
            "verdicts": nodes.take(verdict.statuses.ids).tolist(),
        }
        for verdict in judgement.verdicts
    ]
    scores: list[int | None] = [None] * len(nodes)
    if board is not None:
        totals, feasible = nodes.take(board.totals).tolist(), nodes.take(judgement.attempt.ok).tolist()
        scores = [total if ok else None for total, ok in zip(totals, feasible, strict=True)]
    return {"nodes": nodes.names, "plugins": plugins, "scores": scores}


def _placement(judge: Judge, judgement: Judgement, assigned: str) -> PlacementReason | None:
    attempt = judgement.attempt
    board = judge.scores(attempt)
    refused: tuple[str, ...] = ()
    own: NodeScore | None = None
    if assigned:
        row = attempt.nodes.columns.row_of(assigned)
        refused = attempt.statuses.get(assigned).reasons
        if board is not None and row >= 0 and not refused and assigned != attempt.node:
            own = _scores_of(attempt, board, np.array([row]))[0]
    if board is None or not attempt.node:
        return PlacementReason("", (), None, (), own, refused) if refused else None
    ranking = attempt.ranking
    if ranking is None:
        ranking = np.array([attempt.nodes.columns.row_of(attempt.node)])
    best = _scores_of(attempt, board, ranking[:MAX_BEST])
    margin = best[0].total - best[1].total if len(best) > 1 else None
    return PlacementReason(attempt.node, best, margin, _deciding(best), own, refused)


def _scores_of(attempt: Attempt, board: ScoreBoard, rows: IntArray) -> tuple[NodeScore, ...]:
    return board.top(rows).by_node(attempt.nodes.columns.node_names())


def _deciding(best: Sequence[NodeScore]) -> tuple[str, ...]:
    """Return the plugins that give the first node more points than the second."""
    if len(best) < 2:
        return ()
    second = {score.plugin: score.weighted for score in best[1].plugins}
    ahead = {score.plugin: score.weighted - second.get(score.plugin, 0) for score in best[0].plugins}
    return tuple(name for name, points in sorted(ahead.items(), key=lambda item: -item[1]) if points > 0)


def _refusals_on(judgement: Judgement, view: NodeView) -> list[dict[str, Any]]:
    return [
        {
            "plugin": verdict.plugin.name,
            "code": status.code.label,
            "reasons": list(status.reasons),
            "details": [_detail_dict(detail) for detail in judgement.details(verdict, view)],
        }
        for verdict, status in judgement.refusing(view)
    ]


def _detail_dict(detail: Detail) -> dict[str, Any]:
    shown = {"subject": detail.subject, "text": detail_text(detail)}
    figures = {"asked": detail.asked, "there": detail.there, "missing": detail.missing}
    return {**shown, **{k: v for k, v in figures.items() if v is not None}, "pods": list(detail.pods)}


def _plain(value: object) -> Any:
    """Return records as dictionaries and lists, as JSON has them."""
    return msgspec.json.decode(msgspec.json.encode(value))


def remedy_dict(remedy: Remedy) -> dict[str, Any]:
    changes = [
        {
            "kind": resource.kind,
            "name": (old or new).key,
            "from": None if old is None else decoding.to_builtins(old),
            "to": None if new is None else decoding.to_builtins(new),
        }
        for resource, old, new in remedy.changes
    ]
    pod = None if remedy.pod is None else decoding.to_builtins(remedy.pod)
    return {
        "text": remedy.text,
        "nodes": remedy.nodes,
        "node": remedy.node,
        "command": remedy.command,
        "pod": pod,
        "changes": changes,
    }
