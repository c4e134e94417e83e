"""Whether a whole group fits: all its members are put on nodes in one dry run, before the first of them is
assumed.

Members are taken one after the other and packed: each goes to a node that took the one before, if it can. One
that finds no node is tried again as the first, since it may be the largest or the most particular; that is a
heuristic, and a group that fits in one certain order only may be refused. Nothing here is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from mooring.api.pod import Pod
from mooring.framework.handle import DryRun, Trial
from mooring.framework.nodes import Nodes
from mooring.framework.status import Code
from mooring.framework.statuses import NodeStatuses

_FIRST_LOOK = 4
"""Nodes that are tried one by one before all are judged together."""
_REMEMBERED = 64
"""Of the nodes that were found fitting together, so many are remembered for the next member."""
_RESTARTS = 3
_PREEMPTION_CANDIDATES = 100
"""Nodes on which the removal of victims is tried for one member; as many as preemption itself looks at."""


class Misfit(NamedTuple):
    """The group does not fit: how many members have a node, which one has none, and why."""

    placed: int
    pod: Pod
    why: str


Placements = list[tuple[Pod, str]]


def plan(
    dry_run: Callable[[], DryRun], members: Sequence[Pod], reserved: Iterable[tuple[Pod, str]]
) -> Placements | Misfit:
    """A node for each member, beside pods that are `reserved` a node. Where preemption may help, the pods
    that it could remove do not count: whom it removes is decided later, member by member."""
    kept = [*reserved]
    found = _in_some_order(dry_run, members, kept, preempt=False)
    if isinstance(found, Misfit) and any(map(_preempts, members)):
        with_victims = _in_some_order(dry_run, members, kept, preempt=True)
        return found if isinstance(with_victims, Misfit) else with_victims
    return found


def _in_some_order(
    dry_run: Callable[[], DryRun], members: Sequence[Pod], reserved: Placements, *, preempt: bool
) -> Placements | Misfit:
    order = [*members]
    for _ in range(_RESTARTS):
        session = dry_run()
        for pod, node in reserved:
            session.add_pod(node, pod)
        found = _Packing(session, preempt).pack(order)
        if not isinstance(found, Misfit) or _alike(found.pod, order[0]):
            return found
        order.remove(found.pod)
        order.insert(0, found.pod)
    return found


def _alike(a: Pod, b: Pod) -> bool:
    """Whether it makes no difference which of them goes first."""
    one, other = a.spec, b.spec
    return a is b or (
        [c.resources for c in one.containers] == [c.resources for c in other.containers]
        and (one.node_selector, one.affinity, one.tolerations)
        == (other.node_selector, other.affinity, other.tolerations)
    )


def _preempts(pod: Pod) -> bool:
    return pod.spec.preemption_policy != "Never"


class _Packing:
    """One dry run."""

    def __init__(self, session: DryRun, preempt: bool) -> None:
        self._session = session
        self._preempt = preempt
        self._likely: list[str] = []
        """Nodes that took a member, or would have, the last one first."""

    def pack(self, members: Sequence[Pod]) -> Placements | Misfit:
        found: Placements = []
        for pod in members:
            trial = self._session.trial(pod)
            if not trial.status.is_success:
                return Misfit(len(found), pod, ", ".join(trial.status.reasons))
            node = self._first_fit(trial, pod)
            if isinstance(node, NodeStatuses):
                return Misfit(len(found), pod, _summary(node))
            self._session.add_pod(node, pod)
            found.append((pod, node))
        return found

    def _first_fit(self, trial: Trial, pod: Pod) -> str | NodeStatuses:
        """A node for the pod, or what all nodes said."""
        nominated = pod.nominated_node_name
        if nominated and (trial.filter(nominated).is_success or self._fits_alone(trial, pod, nominated)):
            return nominated
        for tried, node in enumerate(self._likely[:_FIRST_LOOK]):
            if trial.filter(node).is_success:
                del self._likely[:tried]  # those before it are full
                return node
        statuses = trial.filter_all()
        fitting = statuses.rows_with(Code.SUCCESS)[:_REMEMBERED]
        self._likely = Nodes(statuses.nodes.columns, fitting).names
        if self._likely:
            return self._likely[0]
        candidates = islice(self._with_lower(pod, statuses), _PREEMPTION_CANDIDATES)
        return next((node for node in candidates if self._fits_alone(trial, pod, node)), statuses)

    def _with_lower(self, pod: Pod, statuses: NodeStatuses) -> Iterator[str]:
        """Nodes that preemption may help on: with pods of lower priority."""
        if self._preempt and _preempts(pod):
            rows, columns = statuses.rows_with(Code.UNSCHEDULABLE).tolist(), statuses.nodes.columns
            lower = columns.lower_pods_on(rows, pod.priority)
            yield from (columns.view(row).name for row, pods in zip(rows, lower, strict=True) if pods)

    def _fits_alone(self, trial: Trial, pod: Pod, node: str) -> bool:
        """Whether preemption may help on the node: the pod fits without the pods of lower priority. If so,
        they are gone for all members."""
        if not self._preempt or not _preempts(pod):
            return False
        without = trial.fork()
        victims = list(without.node(node).ranked.below(pod.priority))
        for victim in victims:
            without.remove_pod(node, victim)
        if not without.filter(node).is_success:
            return False
        for victim in victims:
            self._session.remove_pod(node, victim)
        return True


def _summary(statuses: NodeStatuses) -> str:
    """The reasons of all nodes, in the form of kube-scheduler's event."""
    reasons = sorted(f"{count} {reason}" for reason, count in statuses.histogram().items())
    return f"0/{len(statuses.nodes)} nodes are available: {', '.join(reasons)}"
