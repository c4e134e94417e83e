"""The whole answer about one pod, in the form in which it is shown: groups of refusals, scores, remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.explain.judging import Judge, Judgement, PluginVerdict, unassigned
from moorage.explain.remedies import SHOWN, Remedy, changed, find_remedies
from moorage.explain.showing import detail_text
from moorage.explain.table import node_table
from moorage.framework.nodes import IntArray, NodeView
from moorage.framework.optional import Detail, figure
from moorage.framework.status import SUCCESS, PostFilterResult
from moorage.runtime.attempt import Attempt
from moorage.runtime.record import NodeScore
from moorage.runtime.score_board import ScoreBoard

BEST = 5
"""Nodes whose scores are shown, and candidates for preemption."""
_EXAMPLES = 5
"""Nodes that are named for a group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that one plugin refuses for one reason."""

    plugin: str
    reasons: tuple[str, ...]
    codes: Mapping[str, int]
    """Code → nodes: some may be of use after preemption, others not."""
    nodes: int
    only: int
    """How many of these nothing else refuses."""
    names: tuple[str, ...]
    """A few of them."""
    details: tuple[str, ...] = ()
    """What the plugin adds, over all these nodes."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "plugin": self.plugin,
            "reasons": list(self.reasons),
            "codes": dict(self.codes),
            "nodes": self.nodes,
            "onlyReason": self.only,
            "examples": list(self.names),
            "details": list(self.details),
        }


@dataclass(frozen=True, slots=True)
class Placement:
    """Why a node is, or would be, the one."""

    node: str
    best: tuple[NodeScore, ...]
    """The best nodes, the winner first."""
    margin: int | None
    """Points between the first and the second; None without a second."""
    decided_by: tuple[str, ...]
    """The plugins that put the winner before the second, the weightiest first."""
    own: NodeScore | None = None
    """The node that the pod runs on, where that is another one."""
    own_refused: tuple[str, ...] = ()
    """Why that node would not be taken now."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "margin": self.margin,
            "decidedBy": list(self.decided_by),
            "scores": [_score_dict(each) for each in self.best],
            "own": None if self.own is None else _score_dict(self.own),
            "ownRefused": list(self.own_refused),
        }


@dataclass(frozen=True, slots=True)
class Victims:
    """What preemption on one node would cost."""

    node: str
    victims: tuple[str, ...]
    reprieved: tuple[str, ...]
    """Pods of lower priority that can stay."""
    pdb_violations: int
    """Victims whose loss violates a disruption budget."""
    highest_priority: int
    """Of the victims."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "victims": list(self.victims),
            "reprieved": list(self.reprieved),
            "pdbViolations": self.pdb_violations,
            "highestPriority": self.highest_priority,
        }


@dataclass(slots=True)
class Explanation:
    """Why a pod waits, or is where it is."""

    pod: Pod
    profile: str
    total: int
    feasible: int
    message: str
    """As the FailedScheduling event has it; empty where a node is feasible."""
    held_back: tuple[str, ...] = ()
    """Why PreEnqueue keeps it out of the queue."""
    groups: list[Group] = field(default_factory=list)
    placement: Placement | None = None
    nominated: str = ""
    candidates: list[Victims] = field(default_factory=list)
    """The best nodes for preemption, the nominated one first."""
    remedies: list[Remedy] = field(default_factory=list)
    nodes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Node → everything that is in the way there; for the nodes that were asked about."""
    table: dict[str, Any] | None = None
    """What every plugin says of every node, where that was asked for."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "pod": self.pod.key,
            "profile": self.profile,
            "assignedTo": self.pod.spec.node_name,
            "nodes": {"total": self.total, "feasible": self.feasible},
            "message": self.message,
            "heldBack": list(self.held_back),
            "refusals": [group.to_dict() for group in self.groups],
            "placement": None if self.placement is None else self.placement.to_dict(),
            "preemption": {
                "nominatedNode": self.nominated,
                "victims": list(self.candidates[0].victims) if self.candidates else [],
                "candidates": [candidate.to_dict() for candidate in self.candidates],
            },
            "remedies": [_remedy_dict(remedy) for remedy in self.remedies],
            "byNode": self.nodes,
            **({} if self.table is None else {"table": self.table}),
        }


async def explain(
    judge: Judge, pod: Pod, *, nodes: Sequence[str] = (), remedies: int = SHOWN, table: bool = False
) -> Explanation:
    """Why the pod waits, or why it is where it is; `nodes` are looked at one by one as well. With `table`,
    what every plugin says of every node is kept.

    A pod that has a node is judged as if it came now, with itself taken away."""
    assigned = pod.spec.node_name
    gone = ((PODS, pod, None),) if assigned else ()
    with changed(judge, gone):
        judgement = await judge.ask(unassigned(pod) if assigned else pod)
        found = Explanation(
            pod, judge.profile.name, len(judgement.nodes), judgement.feasible, judgement.message
        )
        if judgement.held_back is not None:
            found.held_back = judgement.held_back.reasons
        found.groups = _groups(judgement)
        found.placement = _placement(judge, judgement, assigned)
        if judgement.preemption is not None:
            found.nominated = judgement.preemption.nominated_node or ""
            found.candidates = _candidates(judgement.preemption)
        found.nodes = (
            {
                view.name: _in_the_way(judgement, view)
                for view in judgement.nodes.where(judgement.nodes.named(*nodes))
            }
            if nodes
            else {}
        )
        if table:
            found.table = node_table(judgement, judge.scores(judgement.attempt))
        if remedies:
            found.remedies = await find_remedies(judge, judgement, remedies)
    return found


def _candidates(preemption: PostFilterResult) -> list[Victims]:
    """Those that cost least. A plugin that names no candidates has its victims, on any nodes."""
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
    )[:BEST]


def _victims(node: str, gone: Sequence[Pod], kept: Sequence[Pod] = (), violations: int = 0) -> Victims:
    top = max(pod.priority for pod in gone)
    return Victims(node, tuple(pod.key for pod in gone), tuple(pod.key for pod in kept), violations, top)


def _groups(judgement: Judgement) -> list[Group]:
    """The largest first."""
    per_row = judgement.refusals_per_row()
    groups = []
    for verdict in judgement.verdicts:
        by_reasons: dict[tuple[str, ...], list[int]] = {}
        for number, status in enumerate(verdict.statuses.verdicts):
            if number and verdict.statuses.counts[number]:
                by_reasons.setdefault(status.reasons, []).append(number)
        groups += [_group(judgement, verdict, numbers, per_row) for numbers in by_reasons.values()]
        if verdict.error:
            groups.append(Group(verdict.plugin.name, (verdict.error,), {"Error": 0}, 0, 0, ()))
    return sorted(groups, key=lambda group: -group.nodes)


def _group(judgement: Judgement, verdict: PluginVerdict, numbers: list[int], per_row: IntArray) -> Group:
    """The refusals with these numbers, which differ in their code alone."""
    statuses = verdict.statuses
    hit = judgement.nodes.where(np.isin(judgement.nodes.take(statuses.ids), numbers))
    views = list(hit) if verdict.for_all is SUCCESS else list(hit)[:1]
    return Group(
        verdict.plugin.name,
        statuses.verdicts[numbers[0]].reasons,
        {statuses.verdicts[number].code.label: statuses.counts[number] for number in numbers},
        len(hit),
        int(np.count_nonzero(per_row[hit.rows] == 1)),
        tuple(hit.names[:_EXAMPLES]),
        tuple(summary([judgement.details(verdict, view) for view in views])),
    )


def summary(per_node: Sequence[Sequence[Detail]]) -> list[str]:
    """Details of many nodes: a line for each subject, with how many nodes have it and what is missing there.
    The most common first."""
    found: dict[str, list[Detail]] = {}
    for details in per_node:
        for detail in details:
            found.setdefault(detail.subject, []).append(detail)
    lines = []
    for subject, same in sorted(found.items(), key=lambda item: -len(item[1])):
        if len(per_node) == 1:
            lines.append(detail_text(same[0]))
            continue
        missing = [detail.missing for detail in same if detail.missing is not None]
        least, most = (min(missing), max(missing)) if missing else (None, None)
        unit = same[0].unit
        short = f", {figure(least, unit)} short" if missing else ""
        short += f" to {figure(most, unit)}" if least != most else ""
        lines.append(f"{subject}: {len(same)} nodes{short}")
    return lines


def _placement(judge: Judge, judgement: Judgement, assigned: str) -> Placement | None:
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
        return Placement("", (), None, (), own, refused) if refused else None
    ranking = attempt.ranking
    if ranking is None:
        ranking = np.array([attempt.nodes.columns.row_of(attempt.node)])
    best = _scores_of(attempt, board, ranking[:BEST])
    margin = best[0].total - best[1].total if len(best) > 1 else None
    return Placement(attempt.node, best, margin, _deciding(best), own, refused)


def _scores_of(attempt: Attempt, board: ScoreBoard, rows: IntArray) -> tuple[NodeScore, ...]:
    return board.top(rows).by_node(attempt.nodes.columns.node_names())


def _deciding(best: Sequence[NodeScore]) -> tuple[str, ...]:
    """Those whose points put the first before the second; none where only their order does."""
    if len(best) < 2:
        return ()
    second = {score.plugin: score.weighted for score in best[1].plugins}
    ahead = {score.plugin: score.weighted - second.get(score.plugin, 0) for score in best[0].plugins}
    return tuple(name for name, points in sorted(ahead.items(), key=lambda item: -item[1]) if points > 0)


def _in_the_way(judgement: Judgement, view: NodeView) -> list[dict[str, Any]]:
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


def _score_dict(score: NodeScore) -> dict[str, Any]:
    plugins = [
        {"plugin": each.plugin, "raw": each.raw, "normalized": each.normalized, "weighted": each.weighted}
        for each in score.plugins
    ]
    return {"node": score.node, "total": score.total, "plugins": plugins}


def _remedy_dict(remedy: Remedy) -> dict[str, Any]:
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
        "pod": pod,
        "changes": changes,
    }
