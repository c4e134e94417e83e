"""Try a change on the engine's copy of the cluster: which nodes would be feasible then, and what it would violate.

A node that is being deleted never counts as a success: a pod that goes there is lost with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from moorage.api.pod import Pod
from moorage.api.resources import POD_DISRUPTION_BUDGETS, PODS
from moorage.api.selectors import compile_label_selector
from moorage.explain.judging import Judge
from moorage.framework.optional import ObjectChange
from moorage.framework.ports import Change
from moorage.runtime.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change after which the pod can be scheduled."""

    text: str
    nodes: int
    """How many nodes would be feasible; 0 if pods have to be preempted first."""
    node: str
    """The node that the pod would get; empty if that is not what the remedy is about."""
    pod: Pod | None = None
    """The changed pod; None if it stays as it is."""
    changes: tuple[ObjectChange, ...] = ()
    """What would be different in the cluster."""
    cost: int = 0
    command: str = ""
    """What to copy: kubectl commands for the cluster, YAML for the manifest of the pod or of its owner."""


@contextmanager
def changed(judge: Judge, changes: Sequence[ObjectChange]) -> Iterator[None]:
    """Change objects in the engine's cluster while the block runs."""
    for resource, old, new in changes:
        judge.engine.inbox.post(Change(resource, old, new))
    judge.engine.drain()
    try:
        yield
    finally:
        for resource, old, new in reversed(changes):
            judge.engine.inbox.post(Change(resource, new, old))
        judge.engine.drain()


def leaving_nodes(judge: Judge) -> dict[str, str]:
    """Return the nodes that are being deleted, each with the time since when."""
    found = ((view.name, view.node.metadata.deletion_timestamp) for view in judge.nodes)
    return {name: str(since) for name, since in found if since is not None}


def outcome(judge: Judge, attempt: Attempt, leaving: Iterable[str]) -> tuple[int, str]:
    """Return how many nodes that stay are feasible, and the best of them."""
    if not attempt.feasible:
        return 0, ""
    ok = attempt.ok.copy()
    for name in leaving:
        row = attempt.nodes.columns.row_of(name)
        if row >= 0:
            ok[row] = False
    count = int(np.count_nonzero(ok))
    if not count:
        return 0, ""
    if attempt.node and ok[attempt.nodes.columns.row_of(attempt.node)]:
        return count, attempt.node
    rows = np.flatnonzero(ok)
    board = judge.scores(attempt)
    best = rows[0] if board is None else rows[int(np.argmax(board.totals[rows]))]
    return count, attempt.nodes.columns.node_names()[int(best)]


def violated_budgets(judge: Judge, pods: Iterable[Pod]) -> list[str]:
    """Return the disruption budgets that allow no disruption and select one of the pods."""
    exhausted = [
        (budget, compile_label_selector(budget.spec.selector))
        for budget in judge.engine.stores.lister(POD_DISRUPTION_BUDGETS).list()
        if budget.status.disruptions_allowed <= 0
    ]
    found = (
        budget.key
        for pod in pods
        for budget, selector in exhausted
        if budget.namespace == pod.namespace and selector.matches(pod.labels)
    )
    return list(dict.fromkeys(found))


def violation_text(judge: Judge, pods: Iterable[Pod]) -> str:
    """Return which disruption budgets the loss of the pods would violate, as the end of a sentence."""
    found = violated_budgets(judge, pods)
    return f", which violates the disruption budget {', '.join(found)}" if found else ""


def deleted_pods(changes: Iterable[ObjectChange]) -> Iterator[Pod]:
    """Yield the pods that the changes delete."""
    for resource, old, new in changes:
        if resource == PODS and old is not None and new is None:
            yield old
