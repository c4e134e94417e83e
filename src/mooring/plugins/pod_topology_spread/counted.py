"""One constraint in one attempt: its topology, the rows that count, and the pods there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.api.node_selectors import RequiredNodeAffinity
from mooring.api.pod import Pod
from mooring.framework.counting import PodCounter, PodSelector
from mooring.framework.handle import Handle
from mooring.framework.nodes import BoolArray, Columns, FloatArray
from mooring.framework.topology import Topology
from mooring.plugins.pod_topology_spread.constraints import Constraint
from mooring.plugins.pod_topology_spread.inclusion import admitted_mask, tolerated_mask


@dataclass(frozen=True, slots=True)
class Counted:
    """What both filtering and scoring start from."""

    constraint: Constraint
    topology: Topology
    where: BoolArray | None
    """Rows that count, as far as their labels do not say so already; None for all."""
    counter: PodCounter | None
    """None where no pod can match: an empty selector counts nobody here."""

    def pods(self) -> FloatArray:
        """Matching pods per domain."""
        if self.counter is None:
            return np.zeros(self.topology.size)
        return self.counter.sums(self.topology, self.where)

    def nodes(self) -> FloatArray:
        """Nodes that count, per domain."""
        return self.topology.nodes if self.where is None else self.topology.sums(self.where)


def count(
    constraints: Sequence[Constraint],
    pod: Pod,
    required: RequiredNodeAffinity,
    handle: Handle,
    require_all: bool,
) -> list[Counted]:
    """Each constraint with its counter. With `require_all` a node counts only if it has all topology keys."""
    topologies = {c.topology_key: handle.topology(c.topology_key) for c in constraints}
    columns = handle.nodes.columns
    partial = [t for t in topologies.values() if t.unlabelled] if require_all else []
    found = []
    for constraint in constraints:
        masks = _policies(constraint, pod, required, columns)
        masks += [t.bins > 0 for t in partial if t.key != constraint.topology_key]
        where = np.logical_and.reduce(masks) if len(masks) > 1 else masks[0] if masks else None
        found.append(
            Counted(constraint, topologies[constraint.topology_key], where, _counter(constraint, pod, handle))
        )
    return found


def _policies(
    constraint: Constraint, pod: Pod, required: RequiredNodeAffinity, columns: Columns
) -> list[BoolArray]:
    affinity = admitted_mask(columns, required) if constraint.honors_affinity else None
    taints = tolerated_mask(columns, pod) if constraint.honors_taints else None
    return [mask for mask in (affinity, taints) if mask is not None]


def _counter(constraint: Constraint, pod: Pod, handle: Handle) -> PodCounter | None:
    if constraint.selector.empty:
        return None
    wanted = PodSelector(frozenset((pod.namespace,)), constraint.selector, terminating=False)
    return handle.pod_counters.get(wanted)
