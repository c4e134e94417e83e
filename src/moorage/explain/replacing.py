"""Which running pods another configuration would place elsewhere."""

from __future__ import annotations

from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.explain.judging import unassigned
from moorage.explain.loaded import LoadedCluster
from moorage.explain.remedies import changed


async def placed_elsewhere(loaded: LoadedCluster) -> list[dict[str, Any]]:
    """Each running pod as if it came now, with itself taken away: those that would go to another node, or to
    none, with what decides that. Nodes with equal scores count as one."""
    running = [pod for pod in loaded.engine.stores.lister(PODS).list() if pod.is_assigned]
    answers = [await _placed(loaded, pod) for pod in running]
    return [answer for answer in answers if answer is not None]


async def _placed(loaded: LoadedCluster, pod: Pod) -> dict[str, Any] | None:
    judge, here = loaded.judge(pod), pod.spec.node_name
    with changed(judge, ((PODS, pod, None),)):
        attempt = await judge.find(unassigned(pod))
        if attempt.node == here:
            return None
        row = attempt.nodes.columns.row_of(here)
        board = attempt.board
        if attempt.feasible and attempt.ok[row] and board is not None:
            best = attempt.nodes.columns.row_of(attempt.node)
            if board.totals[best] == board.totals[row]:
                return None
            ahead = [c.step.name for c in board.columns if c.weighted(best) > c.weighted(row)]
        else:
            ahead = list(attempt.statuses.get(here).reasons)
    return {"pod": pod.key, "from": here, "to": attempt.node, "decidedBy": ahead}
