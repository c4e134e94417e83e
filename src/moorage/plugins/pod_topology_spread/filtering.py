"""Filter nodes by the skew that the pod would cause, per constraint and domain.

    skew = matching pods in the node's domain + 1 if the pod matches itself - the minimum over all domains

Follows pkg/scheduler/framework/plugins/podtopologyspread/filtering.go. Only the domains of nodes that count are
considered. If there are fewer than minDomains, the minimum is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from moorage.api.node_selectors import RequiredNodeAffinity
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.framework.indexes import DomainCounts
from moorage.framework.nodes import FloatArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import NO_LABEL, Detail, Proposal
from moorage.framework.status import Code, Status
from moorage.plugins.pod_topology_spread.constraints import SCHEDULE_ANYWAY, Admission, Constraint
from moorage.plugins.pod_topology_spread.counted import Counted

REASON = "node(s) didn't match pod topology spread constraints"
REASON_NO_LABEL = REASON + " (missing required label)"

_VIOLATED, _NO_LABEL = 1, 2
_NO_DOMAIN = 2**31 - 1
"""The minimum over no domains at all, as upstream."""
ALONE = (0, 0, 0)
"""The key of the counts of a pod with one constraint."""
_LOWEST = 32
"""Domains with the fewest pods that are remembered, to find the minimum of a dry run."""


class Floor:
    """The existing domains and the lowest counts among them. All clones of one attempt share it."""

    __slots__ = ("_cluster", "_domains", "_lowest", "count", "minimum")

    def __init__(self, cluster: FloatArray, domains: IntArray) -> None:
        self._cluster = cluster
        self._domains = domains
        self._lowest: list[int] | None = None
        self.count = len(self._domains)
        if self.count < len(cluster):
            cluster = cluster[domains]
        self.minimum = int(cluster.min()) if self.count else _NO_DOMAIN

    def minimum_of(self, counts: DomainCounts) -> int:
        """Return the minimum after a dry run has changed some domains."""
        changes = counts.changes
        if not changes:
            return self.minimum
        changed = [counts.at(domain) for domain in changes]
        unchanged = next((domain for domain in self._lowest_domains() if domain not in changes), None)
        if unchanged is None and self.count > len(changes):
            return int(counts.now()[self._domains].min())
        return min(changed) if unchanged is None else min(int(self._cluster[unchanged]), *changed)

    def _lowest_domains(self) -> list[int]:
        if self._lowest is None:
            counts = self._cluster[self._domains]
            first = np.argsort(counts, kind="stable")[:_LOWEST]
            self._lowest = self._domains[first].tolist()
        return self._lowest


class Spread:
    """One constraint during an attempt."""

    __slots__ = ("constraint", "counts", "floor", "self_match")

    def __init__(self, constraint: Constraint, counts: DomainCounts, floor: Floor, self_match: int) -> None:
        self.constraint = constraint
        self.counts = counts
        self.floor = floor
        self.self_match = self_match

    @classmethod
    def of_all(cls, counted: Sequence[Counted], pod: Pod) -> list[Spread]:
        """Return the spreads of all constraints. Those with equal counts share them."""
        known: dict[tuple[int, int, int], tuple[FloatArray, Floor]] = {}
        spreads: list[Spread] = []
        for found in counted:
            key = found.counts_as if len(counted) > 1 else ALONE
            if key not in known:
                pods = found.pods()
                known[key] = pods, Floor(pods, found.domains())
            pods, floor = known[key]
            matches = found.constraint.selector.matches(pod.labels)
            spreads.append(cls(found.constraint, DomainCounts(found.topology, pods), floor, int(matches)))
        return spreads

    def clone(self) -> Spread:
        return Spread(self.constraint, self.counts.clone(), self.floor, self.self_match)

    def most(self) -> int:
        """Return the highest count at which a domain still accepts one more pod."""
        constraint, floor = self.constraint, self.floor
        minimum = floor.minimum_of(self.counts) if floor.count >= constraint.min_domains else 0
        return constraint.max_skew + minimum - self.self_match


class SpreadState:
    """The result of PreFilter, used by Filter, AddPod and RemovePod."""

    __slots__ = ("required", "spreads")

    def __init__(self, spreads: Sequence[Spread], required: RequiredNodeAffinity) -> None:
        self.spreads = spreads
        self.required = required
        """What the pod demands of its node."""

    def clone(self) -> SpreadState:
        return SpreadState([spread.clone() for spread in self.spreads], self.required)

    def update(self, pod: Pod, other: Pod, node: NodeView, number: int) -> None:
        """Count that `other` was added to the node or removed from it."""
        if other.namespace != pod.namespace:
            return
        domains = [spread.counts.topology.domain(node.labels) for spread in self.spreads]
        if min(domains) < 0:
            return
        admits = Admission(pod, self.required, node)
        for spread, domain in zip(self.spreads, domains, strict=True):
            constraint = spread.constraint
            if constraint.selector.matches(other.labels) and admits.counts_for(constraint):
                spread.counts.add(domain, number)


def filter_node(state: SpreadState, node: NodeView) -> Status | None:
    """Check the constraints in order; the first one that the node fails decides."""
    for spread in state.spreads:
        domain = spread.counts.topology.domain(node.labels)
        if domain < 0:
            return Status.unresolvable(REASON_NO_LABEL)
        if spread.counts.at(domain) > spread.most():
            return Status.unschedulable(REASON)
    return None


def explain_node(state: SpreadState, node: NodeView) -> Iterator[Detail]:
    """Return every constraint that the node fails, with the skew that the pod would cause."""
    for spread in state.spreads:
        constraint, domain = spread.constraint, spread.counts.topology.domain(node.labels)
        key, most = constraint.topology_key, constraint.max_skew
        too_many = spread.counts.at(domain) - spread.most()
        if domain < 0:
            yield Detail(f"label {key}", there=NO_LABEL)
        elif too_many > 0:
            subject = f"{key}={node.labels[key]} spread of {constraint.selector}, maxSkew {most}"
            yield Detail(subject, asked=most, there=most + too_many, missing=too_many)


def proposals(state: SpreadState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
    """Propose a larger maxSkew, or soft constraints; the default constraints are not the pod's to change."""
    hard = [each for each in pod.spec.topology_spread_constraints if _is_hard(each)]
    if not hard:
        return
    keys = " and ".join(sorted({constraint.topology_key for constraint in hard}))
    needed = max((detail.missing or 0 for detail in explain_node(state, node)), default=0)
    if needed:
        skews = " and ".join(str(constraint.max_skew + needed) for constraint in hard)
        yield Proposal(
            f"maxSkew {keys}",
            f"allow a maxSkew of {skews} over {keys}",
            3,
            lambda pod: _changed(pod, lambda hard: replace(hard, max_skew=hard.max_skew + needed)),
            size=needed,
        )
    soft = f"spread over {keys} with ScheduleAnyway"
    yield Proposal(f"soft {keys}", soft, 5, lambda pod: _changed(pod, _softened))


def _is_hard(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable != SCHEDULE_ANYWAY


def _softened(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
    return replace(constraint, when_unsatisfiable=SCHEDULE_ANYWAY)


def _changed(pod: Pod, change: Callable[[TopologySpreadConstraint], TopologySpreadConstraint]) -> Pod:
    """Return the pod with its hard constraints changed."""
    constraints = (change(each) if _is_hard(each) else each for each in pod.spec.topology_spread_constraints)
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=tuple(constraints)))


def filter_nodes(state: SpreadState, nodes: Nodes) -> Refusals | None:
    """Filter all nodes: compute one verdict per domain and spread it to the nodes."""
    if len(state.spreads) == 1 and not state.spreads[0].counts.topology.unlabelled:
        return _filter_by_one(state.spreads[0], nodes)
    verdicts = None
    for spread in state.spreads:
        violated = spread.counts.now() > spread.most()
        topology = spread.counts.topology
        if not topology.unlabelled and not violated.any():
            continue
        mine = topology.gather(violated.view(np.int8), _NO_LABEL, nodes)
        # The first constraint that a node fails decides, also about the reason.
        verdicts = mine if verdicts is None else np.where(verdicts == 0, mine, verdicts)
        if verdicts.all():
            break
    if verdicts is None:
        return None
    refusals = nodes.refusals()
    if any(spread.counts.topology.unlabelled for spread in state.spreads):
        refusals.add(verdicts == _NO_LABEL, REASON_NO_LABEL, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    return refusals.add(verdicts == _VIOLATED, REASON)


def _filter_by_one(spread: Spread, nodes: Nodes) -> Refusals | None:
    """Handle the most common case: one constraint, and every node is in a domain."""
    violated = spread.counts.now() > spread.most()
    if not violated.any():
        return None
    return nodes.refuse(spread.counts.topology.gather(violated, False, nodes), REASON)
