"""Every node with what every plugin says of it, in columns: for tables of thousands of nodes."""

from __future__ import annotations

from typing import Any

from moorage.explain.judging import Judgement
from moorage.runtime.score_board import ScoreBoard


def node_table(judgement: Judgement, board: ScoreBoard | None) -> dict[str, Any]:
    """`nodes` are names; each of `plugins` that refuses one has its `reasons`, and in `verdicts` a number for
    each node: 0 where it does not refuse, else the place of the reason, counted from 1. `scores` are totals,
    None where the node is not feasible."""
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
