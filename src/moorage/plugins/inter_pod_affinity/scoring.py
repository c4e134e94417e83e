"""Score by the preferences of the pod for other pods, and of other pods for it, added up per domain.

Follows pkg/scheduler/framework/plugins/interpodaffinity/scoring.go. Each running pod adds to its domain the weight of
every preferred term of the incoming pod that it matches (negative for anti-affinity), and the weight of each of its own
preferred terms that select the incoming pod. A required affinity term of a running pod that selects the incoming pod
adds hardPodAffinityWeight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from moorage.api.pod_affinity import AffinityTerm
from moorage.framework.handle import Handle
from moorage.framework.indexes import HeldTerm, TermKind, Topology, counting
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes
from moorage.framework.status import MAX_NODE_SCORE
from moorage.plugins.inter_pod_affinity.terms import RowSums, wanted

Table = tuple[Topology, FloatArray]
"""Score per domain."""


def tables(
    preferences: Sequence[tuple[AffinityTerm, int]], held: Iterable[HeldTerm], hard_weight: int, handle: Handle
) -> list[Table]:
    """Return one table per topology key for which a running pod adds a weight. `preferences` are the incoming pod's
    terms with their signed weights."""
    sums = RowSums(handle.topology)
    count = counting(handle.pod_counters, len(preferences))
    for term, weight in preferences:
        sums.add(term.topology_key, count(wanted(term)), weight)
    for other in held:
        weight = hard_weight if other.kind is TermKind.AFFINITY else other.weight
        sums.add(other.term.topology_key, other, weight)
    return sums.tables()


def score_nodes(state: list[Table], nodes: Nodes) -> IntArray:
    total: IntArray = np.zeros(len(nodes), dtype=np.int64)
    for topology, table in state:
        total += topology.gather(table.astype(np.int64), 0, nodes)
    return total


def normalize(scores: IntArray, counted: BoolArray | None = None) -> IntArray:
    """Scale the lowest score to 0 and the highest to 100; all to 0 if they are equal. Only counted nodes determine the
    lowest and the highest score."""
    seen = scores if counted is None else scores[counted]
    lowest, highest = (int(seen.min()), int(seen.max())) if len(seen) else (0, 0)
    if lowest == highest:
        return np.zeros_like(scores)
    scaled = (scores - lowest) / float(highest - lowest)
    scaled *= MAX_NODE_SCORE
    return scaled.astype(np.int64)
