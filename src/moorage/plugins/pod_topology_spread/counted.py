"""One constraint in one attempt: its topology, the rows that count, and the matching pods there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from moorage.api.node_selectors import RequiredNodeAffinity
from moorage.api.pod import Pod
from moorage.framework.handle import Handle
from moorage.framework.indexes import PodCounter, PodSelector, Topology, counting
from moorage.framework.nodes import BoolArray, Columns, FloatArray, IntArray
from moorage.plugins.pod_topology_spread.constraints import Constraint, admitted_mask, tolerated_mask


class Counted(NamedTuple):
    """The counts that filtering and scoring start from."""

    constraint: Constraint
    topology: Topology
    where: BoolArray | None
    """Rows that count for other reasons than their labels; None for all."""
    counter: PodCounter | None
    """None where no pod can match: an empty selector counts no pod here."""

    def pods(self) -> FloatArray:
        """Return the number of matching pods per domain."""
        if self.counter is None:
            return np.zeros(self.topology.size)
        return self.counter.sums(self.topology, self.where)

    def domains(self) -> IntArray:
        """Return the domains of the nodes that count."""
        topology, where = self.topology, self.where
        return topology.inhabited_domains if where is None else np.flatnonzero(topology.sums(where))


def count(
    constraints: Sequence[Constraint], pod: Pod, required: RequiredNodeAffinity, handle: Handle, require_all: bool
) -> list[Counted]:
    """Return each constraint with its counter. With `require_all` a node counts only if it has all topology keys."""
    topologies = [handle.topology(c.topology_key) for c in constraints]
    partial = [t for t in topologies if t.unlabelled] if require_all else []
    # Most pods demand nothing of their node, and have several constraints with one selector.
    counter_of = counting(handle.pod_counters, len(constraints))
    anywhere = required.selector is None and required.terms is None
    found: list[Counted] = []
    for constraint, topology in zip(constraints, topologies, strict=True):
        where: BoolArray | None = None
        if partial or constraint.honors_taints or not anywhere:
            where = _where(constraint, pod, required, handle.nodes.columns, partial)
        before = found[-1] if found else None
        if before is not None and before.constraint.selector is constraint.selector:
            counter = before.counter
        else:
            counter = _counter(constraint, pod, counter_of)
        found.append(Counted(constraint, topology, where, counter))
    return found


def _where(
    constraint: Constraint, pod: Pod, required: RequiredNodeAffinity, columns: Columns, partial: Sequence[Topology]
) -> BoolArray | None:
    """Return the rows that count for one constraint; None for all. `partial` are required topologies whose key some
    nodes lack."""
    affinity = admitted_mask(columns, required) if constraint.honors_affinity else None
    taints = tolerated_mask(columns, pod) if constraint.honors_taints else None
    masks = [mask for mask in (affinity, taints) if mask is not None]
    masks += [t.bins > 0 for t in partial if t.key != constraint.topology_key]
    return np.logical_and.reduce(masks) if len(masks) > 1 else masks[0] if masks else None


def _counter(constraint: Constraint, pod: Pod, counter_of: Callable[[PodSelector], PodCounter]) -> PodCounter | None:
    if constraint.selector.empty:
        return None
    wanted = PodSelector(frozenset((pod.metadata.namespace,)), constraint.selector, terminating=False)
    return counter_of(wanted)
