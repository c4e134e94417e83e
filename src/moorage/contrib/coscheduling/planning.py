"""Check whether a whole group fits: place all members in one dry run before the first of them is assumed.

Members are packed one after the other: each goes to the node of the previous member if it fits there. If a member finds
no node, it and similar members go first in another try, since they may be the largest or the most constrained. This is
a heuristic: a group that fits in one particular order only may be rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from msgspec import structs

from moorage.api.pod import Pod, Volume
from moorage.contrib.coscheduling.groups import group_of
from moorage.framework.handle import Handle, Trial
from moorage.framework.nodes import Nodes
from moorage.framework.status import Code
from moorage.framework.statuses import NodeStatuses

_INDEXES = frozenset(
    ("apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index", "statefulset.kubernetes.io/pod-name")
)
"""Labels that number the pods of one owner: no selector that matters here looks at them."""
_FIRST_LOOK = 4
"""Nodes that are tried one by one before all are judged together."""
_REMEMBERED = 64
"""The number of feasible nodes that are remembered for the next member."""
_RESTARTS = 3
"""Orders of the members that are tried."""
_PREEMPTION_CANDIDATES = 100
"""Nodes on which the removal of victims is tried for one member; as many as preemption itself looks at."""


class Misfit(NamedTuple):
    """The group does not fit: how many members have a node, which one has none, and why."""

    placed: int
    pod: Pod
    why: str


Placements = list[tuple[Pod, str]]
P = TypeVar("P", bound="Packing")


class Planner:
    """Makes plans for one profile. It remembers only where members went last: with free capacity the next group fits
    there too, and not all nodes have to be checked."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._likely: list[str] = []

    def plan(self, members: Sequence[Pod], reserved: Iterable[tuple[Pod, str]]) -> Placements | Misfit:
        """Return a node for each member, beside pods that are `reserved` a node. If preemption may help, its potential
        victims do not count; which pods are preempted is decided later, member by member."""
        kept = [*reserved]
        found = self._in_some_order(members, kept, preempt=False)
        if isinstance(found, Misfit) and any(map(preempts, members)):
            with_victims = self._in_some_order(members, kept, preempt=True)
            return found if isinstance(with_victims, Misfit) else with_victims
        return found

    def _in_some_order(self, members: Sequence[Pod], reserved: Placements, *, preempt: bool) -> Placements | Misfit:
        found, packing = in_some_order(members, lambda: Packing(self._handle, reserved, self._likely, preempt=preempt))
        if not isinstance(found, Misfit):
            self._likely = packing.likely
        return found


def in_some_order(members: Sequence[Pod], start: Callable[[], P]) -> tuple[Placements | Misfit, P]:
    """Pack the members, in another order if one finds no node, and return the last dry run. Members that never preempt
    go first, so that no pod has to make way for them."""
    order = sorted(members, key=preempts)
    for _ in range(_RESTARTS):
        packing = start()
        found = packing.pack(order)
        if not isinstance(found, Misfit):
            break
        first = {pod.uid for pod in order if _alike(pod, found.pod)}
        if all(pod.uid in first for pod in order[: len(first)]):
            break  # no others were in its way
        order.sort(key=lambda pod: (preempts(pod), pod.uid not in first))
    return found, packing


def _alike(a: Pod, b: Pod) -> bool:
    """Return whether the order of these pods does not matter."""
    one, other = a.spec, b.spec
    return a is b or (
        [c.resources for c in one.containers] == [c.resources for c in other.containers]
        and (one.node_selector, one.affinity, one.tolerations)
        == (other.node_selector, other.affinity, other.tolerations)
    )


def interchangeable(a: Pod, b: Pod) -> bool:
    """Return whether filters treat both pods alike, as for the pods of most jobs."""
    if a.nominated_node_name or _labels(a) != _labels(b):
        return False
    if any(volume != Volume(name=volume.name) for volume in (*a.spec.volumes, *b.spec.volumes)):
        return False  # it has a source that a scheduler reads
    return structs.replace(a.spec, volumes=()) == structs.replace(b.spec, volumes=())


def _labels(pod: Pod) -> dict[str, str]:
    return {name: value for name, value in pod.labels.items() if name not in _INDEXES}


def preempts(pod: Pod) -> bool:
    return pod.spec.preemption_policy != "Never"


class Packing:
    """One dry run."""

    def __init__(self, handle: Handle, reserved: Placements, likely: Sequence[str], *, preempt: bool) -> None:
        self.handle = handle
        self.session = handle.dry_run()
        for pod, node in reserved:
            if handle.node(node) is not None:
                self.session.add_pod(node, pod)
        self._preempt = preempt
        self.likely = [*likely]
        """Nodes that took a member, or would have, the last one first."""

    def pack(self, members: Sequence[Pod]) -> Placements | Misfit:
        found: Placements = []
        trial: Trial | None = None
        for pod in members:
            if trial is not None and interchangeable(pod, found[-1][0]):
                trial.add_pod(found[-1][1], found[-1][0])  # what it says of the one holds for the other
            else:
                trial = self.session.trial(pod)
            if not trial.status.is_success:
                return Misfit(len(found), pod, ", ".join(trial.status.reasons))
            node = self.first_fit(trial, pod)
            if isinstance(node, NodeStatuses):
                return Misfit(len(found), pod, _summary(node))
            self.session.add_pod(node, pod)
            found.append((pod, node))
        return found

    def first_fit(self, trial: Trial, pod: Pod) -> str | NodeStatuses:
        """Return a node for the pod, or the reasons of all nodes."""
        nominated = pod.nominated_node_name
        if self._fits(trial, nominated) or self._fits_alone(trial, pod, nominated):
            return nominated
        for tried, node in enumerate(self.likely[:_FIRST_LOOK]):
            if self._fits(trial, node):
                del self.likely[:tried]  # those before it are full
                return node
        statuses = trial.filter_all()
        fitting = statuses.rows_with(Code.SUCCESS)[:_REMEMBERED]
        self.likely = Nodes(statuses.nodes.columns, fitting).names
        if self.likely:
            return self.likely[0]
        candidates = islice(self._with_lower(pod, statuses), _PREEMPTION_CANDIDATES)
        return next((node for node in candidates if self._fits_alone(trial, pod, node)), statuses)

    def _fits(self, trial: Trial, node: str) -> bool:
        return self.handle.node(node) is not None and trial.filter(node).is_success

    def _with_lower(self, pod: Pod, statuses: NodeStatuses) -> Iterator[str]:
        """Return the nodes on which preemption may help: those with pods of lower priority."""
        if self._preempt and preempts(pod):
            rows, columns = statuses.rows_with(Code.UNSCHEDULABLE).tolist(), statuses.nodes.columns
            for start in range(0, len(rows), _PREEMPTION_CANDIDATES):  # as a rule the first ones will do
                block = rows[start : start + _PREEMPTION_CANDIDATES]
                lower = columns.lower_pods_on(block, pod.priority)
                yield from (columns.view(row).name for row, pods in zip(block, lower, strict=True) if pods)

    def _fits_alone(self, trial: Trial, pod: Pod, node: str) -> bool:
        """Return whether the pod fits the node without the pods of lower priority. If so, they are removed for all
        members."""
        if not self._preempt or not preempts(pod) or self.handle.node(node) is None:
            return False
        without = trial.fork()
        lower = without.node(node).ranked.below(pod.priority)
        victims = [other for other in lower if group_of(other) != group_of(pod)]
        for victim in victims:
            without.remove_pod(node, victim)
        if not without.filter(node).is_success:
            return False
        for victim in victims:
            trial.remove_pod(node, victim)
            self.session.remove_pod(node, victim)
        return True


def _summary(statuses: NodeStatuses) -> str:
    """Return the reasons of all nodes in the format of kube-scheduler's event."""
    reasons = sorted(f"{count} {reason}" for reason, count in statuses.histogram().items())
    return f"0/{len(statuses.nodes)} nodes are available: {', '.join(reasons)}"
