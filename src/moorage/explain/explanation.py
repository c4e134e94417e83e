"""Explain one pod: why it is pending, or why it is on its node, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.quantity import format_number
from moorage.api.resources import PODS
from moorage.explain.judging import Judge, Judgement, unassigned
from moorage.explain.remedies import SHOWN, Remedy, changed, find_remedies
from moorage.framework.nodes import IntArray, NodeView
from moorage.framework.optional import Detail, Figure
from moorage.framework.status import SUCCESS, PostFilterResult
from moorage.runtime.attempt import Attempt
from moorage.runtime.questions import PluginVerdict
from moorage.runtime.record import NodeScore
from moorage.runtime.score_board import ScoreBoard

MAX_BEST = 5
"""Number of nodes whose scores are shown, and of candidates for preemption."""
MAX_EXAMPLES = 5
"""Number of nodes that are named for a group."""


class RefusalGroup(msgspec.Struct, frozen=True, rename={"only": "onlyReason", "names": "examples"}):
    """The nodes that one plugin refuses for one reason."""

    plugin: str
    reasons: tuple[str, ...]
    codes: Mapping[str, int]
    """Code → number of nodes. Preemption may help on some of them and not on others."""
    nodes: int
    only: int
    """Number of nodes that no other plugin refuses."""
    names: tuple[str, ...]
    """Names of the first of them."""
    details: tuple[str, ...] = ()
    """The figures behind the reason, over all these nodes."""


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
            "remedies": [_remedy_dict(remedy) for remedy in self.remedies],
            "byNode": self.nodes,
            **({} if self.table is None else {"table": self.table}),
        }


async def explain(
    judge: Judge, pod: Pod, *, nodes: Sequence[str] = (), remedies: int = SHOWN, table: bool = False
) -> Explanation:
    """Explain why the pod is pending, or why it is on its node.

    `nodes` are explained one by one as well. `table` adds what every plugin says about every node. A pod that
    has a node is explained as if it were created now, with itself removed from the node."""
    assigned = pod.spec.node_name
    gone = ((PODS, pod, None),) if assigned else ()
    with changed(judge, gone):
        judgement = await judge.ask(unassigned(pod) if assigned else pod)
        found = Explanation(pod, judge.profile.name, len(judgement.nodes), judgement.feasible, judgement.message)
        if judgement.held_back is not None:
            found.held_back = judgement.held_back.reasons
        found.groups = _groups(judgement)
        found.placement = _placement(judge, judgement, assigned)
        if judgement.preemption is not None:
            found.nominated = judgement.preemption.nominated_node or ""
            found.candidates = _candidates(judgement.preemption)
        if nodes:
            views = judgement.nodes.where(judgement.nodes.named(*nodes))
            found.nodes = {view.name: _refusals_on(judgement, view) for view in views}
        if table:
            found.table = _node_table(judgement, judge.scores(judgement.attempt))
        if remedies:
            found.remedies = await find_remedies(judge, judgement, remedies)
    return found


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


def _groups(judgement: Judgement) -> list[RefusalGroup]:
    """RefusalGroup the refusals by plugin and reason, the largest group first."""
    per_row = judgement.refusals_per_row()
    groups = []
    for verdict in judgement.verdicts:
        by_reasons: dict[tuple[str, ...], list[int]] = {}
        for number, status in enumerate(verdict.statuses.verdicts):
            if number and verdict.statuses.counts[number]:
                by_reasons.setdefault(status.reasons, []).append(number)
        groups += [_group(judgement, verdict, numbers, per_row) for numbers in by_reasons.values()]
        if verdict.error:
            groups.append(RefusalGroup(verdict.plugin.name, (verdict.error,), {"Error": 0}, 0, 0, ()))
    return sorted(groups, key=lambda group: -group.nodes)


def _group(judgement: Judgement, verdict: PluginVerdict, numbers: list[int], per_row: IntArray) -> RefusalGroup:
    """RefusalGroup the refusals with these numbers, which differ in their code alone."""
    statuses = verdict.statuses
    hit = judgement.nodes.where(np.isin(judgement.nodes.take(statuses.ids), numbers))
    views = list(hit) if verdict.for_all is SUCCESS else list(hit)[:1]
    return RefusalGroup(
        verdict.plugin.name,
        statuses.verdicts[numbers[0]].reasons,
        {statuses.verdicts[number].code.label: statuses.counts[number] for number in numbers},
        len(hit),
        int(np.count_nonzero(per_row[hit.rows] == 1)),
        tuple(hit.names[:MAX_EXAMPLES]),
        tuple(summary([judgement.details(verdict, view) for view in views])),
    )


def summary(per_node: Sequence[Sequence[Detail]]) -> list[str]:
    """Merge the details of many nodes into a line for each subject, the most common first.

    A line has the number of nodes and the range of what is missing there."""
    by_subject: dict[str, list[Detail]] = {}
    for details in per_node:
        for detail in details:
            by_subject.setdefault(detail.subject, []).append(detail)
    ordered = sorted(by_subject.items(), key=lambda item: -len(item[1]))
    if len(per_node) == 1:
        return [detail_text(same[0]) for _, same in ordered]
    return [_range_text(subject, same) for subject, same in ordered]


def _range_text(subject: str, same: Sequence[Detail]) -> str:
    nodes = f"{len(same)} node" if len(same) == 1 else f"{len(same)} nodes"
    missing = [detail.missing for detail in same if detail.missing is not None]
    if not missing:
        return f"{subject} ({nodes})"
    least, most = (_figure(number, same[0].unit) for number in (min(missing), max(missing)))
    amount = least if least == most else f"{least} to {most}"
    return f"{subject}: {amount} {'over' if _is_limit(same[0]) else 'short'} on {nodes}"


def detail_text(detail: Detail) -> str:
    """Render one detail on one node: `cpu: 2 requested, 500m free (1500m short)`."""
    asked, there = _figure(detail.asked, detail.unit), _figure(detail.there, detail.unit)
    pods = ", ".join(detail.pods)
    missing = "" if detail.missing is None else _figure(detail.missing, detail.unit)
    if _is_limit(detail):
        said = f"{there} conflicting" if detail.asked == 0 else f"limit {asked}, actual {there} ({missing} over)"
    elif isinstance(detail.asked, int) and isinstance(detail.there, int):
        # A resource is named by one word or has a unit; other figures count pods or other objects.
        is_resource = detail.unit or " " not in detail.subject
        words = ("requested", "free") if is_resource else ("required", "available")
        said = f"{asked} {words[0]}, {there} {words[1]} ({missing} short)"
    else:
        found = there if " " in there or not there else f"found {there}"
        said = ", ".join(part for part in (asked and f"{asked} requested", found) if part)
    if not said:
        return f"{detail.subject}: in use by {pods}" if pods else detail.subject
    return f"{detail.subject}: {said} ({pods})" if pods else f"{detail.subject}: {said}"


def _is_limit(detail: Detail) -> bool:
    """Whether `asked` is a limit that is exceeded, and not an amount that the node lacks."""
    asked, there, missing = detail.asked, detail.there, detail.missing
    if not isinstance(asked, int) or not isinstance(there, int) or missing is None:
        return False
    return missing != asked - there


def _figure(number: Figure, unit: str = "") -> str:
    return format_number(number, unit) if isinstance(number, int) else number or ""


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
    return {"text": remedy.text, "nodes": remedy.nodes, "node": remedy.node, "pod": pod, "changes": changes}
