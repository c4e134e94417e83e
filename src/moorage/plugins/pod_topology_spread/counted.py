"""One constraint in one attempt: its topology, the rows that count, and the matching pods there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from moorage.api.node_selectors import RequiredNodeAffinity
from moorage.api.pod import Pod
from moorage.framework.handle import Handle
from moorage.framework.indexes import Bins, PodCounter, PodSelector, Topology, counting
from moorage.framework.nodes import BoolArray, FloatArray, IntArray
from moorage.plugins.pod_topology_spread.constraints import Constraint, admitted_mask, tolerated_mask


class Counted(NamedTuple):
    """The counts that filtering and scoring start from."""

    constraint: Constraint
    topology: Topology
    where: BoolArray | None
    """Rows that count for other reasons than their labels; None for all."""
    counter: PodCounter | None
    """None where no pod can match: an empty selector counts no pod here, and a key that no node has has no domain."""

    @property
    def counts_as(self) -> tuple[int, int, int]:
        """A key that is equal for constraints with equal numbers of pods, as long as both exist: a pod may have
        thousands of constraints, and an array for each would fill the memory."""
        counter = self.counter
        nowhere = counter is None or counter.few() == {}
        return id(self.topology), id(self.where), 0 if nowhere else id(counter)

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
    anywhere = not partial and required.selector is None and required.terms is None
    rows: _CountedRows | None = None
    counter_of = counting(handle.pod_counters, len(constraints))
    found: list[Counted] = []
    for constraint, topology in zip(constraints, topologies, strict=True):
        where: BoolArray | None = None
        if not anywhere or constraint.honors_taints:
            rows = rows or _CountedRows(pod, required, handle, partial)
            where = rows.of(constraint)
        before = found[-1] if found else None
        counter: PodCounter | None
        if not topology.size:
            counter = None  # no node has the key, and any pod can name thousands of these
        elif before is not None and before.constraint.selector is constraint.selector and before.topology.size:
            counter = before.counter
        else:
            counter = _counter(constraint, pod, counter_of)
        found.append(Counted(constraint, topology, where, counter))
    return found


class _CountedRows:
    """The rows that count, for all constraints of a pod: the masks are computed once, and constraints share them."""

    def __init__(self, pod: Pod, required: RequiredNodeAffinity, handle: Handle, partial: Sequence[Topology]) -> None:
        self._pod = pod
        self._required = required
        self._handle = handle
        self._anywhere = required.selector is None and required.terms is None
        self._keys = {topology.key for topology in partial}
        """The required keys that some nodes lack."""
        self._labelled = labelled(partial, lambda topology: topology.bins)
        self._known: dict[tuple[bool, bool, bool], BoolArray | None] = {}

    def of(self, constraint: Constraint) -> BoolArray | None:
        """Return the rows that count for one constraint; None for all.

        A row without the key of the constraint is in none of its domains, so that a mask may leave it out or not.
        """
        alone = self._keys <= {constraint.topology_key}
        key = (constraint.honors_affinity and not self._anywhere, constraint.honors_taints, not alone)
        if not any(key):
            return None
        if key not in self._known:
            self._known[key] = self._combined(*key)
        return self._known[key]

    def _combined(self, affinity: bool, taints: bool, labels: bool) -> BoolArray | None:
        columns = self._handle.nodes.columns
        masks = (
            admitted_mask(columns, self._required) if affinity else None,
            tolerated_mask(columns, self._pod) if taints else None,
            self._labelled if labels else None,
        )
        found = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(found) if len(found) > 1 else found[0] if found else None


def labelled(topologies: Iterable[Topology], bins_of: Callable[[Topology], Bins]) -> BoolArray | None:
    """Return where all of the topologies have a domain; None without topologies. All keys that no node has share one
    array of bins."""
    found: BoolArray | None = None
    for topology in {id(topology.bins): topology for topology in topologies}.values():
        mine: BoolArray = bins_of(topology) > 0
        found = mine if found is None else np.logical_and(found, mine, out=found)
    return found


def _counter(constraint: Constraint, pod: Pod, counter_of: Callable[[PodSelector], PodCounter]) -> PodCounter | None:
    if constraint.selector.empty:
        return None
    wanted = PodSelector(frozenset((pod.metadata.namespace,)), constraint.selector, terminating=False)
    return counter_of(wanted)
