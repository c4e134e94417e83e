"""The extension points of NodeResourceTopologyMatch. The plugin runs for every pod without reuse: available resources
change with every published object and every reserved pod, and processing all nodes in arrays is cheaper than asking
every other plugin again."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.api.requests import is_scalar_resource
from moorage.api.resources import PODS
from moorage.contrib.topology_match import scoring
from moorage.contrib.topology_match.aligning import Misaligned, Stock, fitting_one_zone, lacking, misaligned
from moorage.contrib.topology_match.args import ENABLED, LEAST_NUMA_NODES, NodeResourceTopologyMatchArgs
from moorage.contrib.topology_match.caching import DiscardReserved, Notes, TopologyCache
from moorage.contrib.topology_match.columns import NOT_REPORTED, remaining
from moorage.contrib.topology_match.demands import NumaDemand, ZoneRequest, demand_of
from moorage.contrib.topology_match.over_reserve import OverReserve
from moorage.contrib.topology_match.topology import DEFINITION, NODE_RESOURCE_TOPOLOGIES
from moorage.framework.access import LISTED, Access, Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, ActionType, ClusterEvent, EventResource, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin, WholeTableScorePlugin
from moorage.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin
from moorage.framework.points import PostBindPlugin, PreFilterPlugin, ReservePlugin
from moorage.framework.status import Status

STATE, VICTIMS = "NodeResourceTopologyMatch", "NodeResourceTopologyMatch.victims"
TOPOLOGIES = EventResource("NodeResourceTopologyMatch")
"""The data of a node has changed; `new` is its name."""
INVALID = "invalid node topology data"
NOTE_PERIOD = 60.0
"""Seconds between two looks at what an operator should know, where no period is configured."""

Victims = Mapping[str, Mapping[str, Pod]]
"""Node → UID → pod that a dry run has removed from it."""


class NodeResourceTopologyMatch(
    PreFilterPlugin,
    WholeTableFilterPlugin,
    WholeTableScorePlugin,
    ReservePlugin,
    PostBindPlugin,
    ReusablePlugin,
    ExplainingPlugin,
):
    name = "NodeResourceTopologyMatch"
    Args = NodeResourceTopologyMatchArgs
    needs = (Access(NODE_RESOURCE_TOPOLOGIES, LISTED), Access(PODS, LISTED))
    definitions = (DEFINITION,)

    def __init__(self, args: NodeResourceTopologyMatchArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        kept = msgspec.structs.replace(args, scoring_strategy=type(args)().scoring_strategy)
        self.cache: TopologyCache = handle.shared((self.name, msgspec.json.encode(kept)), lambda: _cache(args))
        if isinstance(self.cache, OverReserve):
            self.cache.profiles.add(handle.profile_name)
            handle.on_change(PODS, self.cache.pod_changed)
        handle.on_change(NODE_RESOURCE_TOPOLOGIES, self.cache.object_changed)
        self._weights = {each.name: max(each.weight, 1) for each in args.scoring_strategy.resources}

    async def run(self) -> None:
        """Compare published objects with the pods of nodes, and report missing objects."""
        if not self.handle.lister(NODE_RESOURCE_TOPOLOGIES).known:
            raise MoorageError(
                "NodeResourceTopologyMatch: the API server does not serve "
                "noderesourcetopologies.topology.node.k8s.io, so no node is refused: apply the definition "
                "that `moorage manifests` prints, and run what publishes the objects"
            )
        notes, period = Notes(self.cache, self.handle), float(self.args.cache_resync_period_seconds)
        self.cache.listeners.append(self._changed)
        try:
            async with self.cache.turn:
                while True:
                    await self.cache.resync(self.handle)
                    await self.handle.clock.sleep(period if period > 0 else NOTE_PERIOD)
                    notes.check()  # not at once: what publishes objects may start at the same time
        finally:
            self.cache.listeners.remove(self._changed)

    def _changed(self, node_name: str) -> None:
        self.handle.wake(TOPOLOGIES, new=node_name)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        demand = demand_of(pod)
        if demand is None:
            return Status.skip()
        state.write(STATE, demand)
        state.write(VICTIMS, {})
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        victims = state.own(VICTIMS)
        there = {uid: other for uid, other in victims.get(node.name, {}).items() if uid != added.uid}
        victims[node.name] = there

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        victims = state.own(VICTIMS)
        victims[node.name] = {**victims.get(node.name, {}), removed.uid: removed}

    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        # Without the zones of pods, removing one changes nothing here.
        return bool(self.args.preemption_mode == ENABLED)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        demand = asked(state, pod)
        return self._refusals(demand, nodes, state.read(VICTIMS, {})) if demand is not None else None

    def _refusals(self, demand: NumaDemand, nodes: Nodes, victims: Victims) -> Refusals:
        columns, answer = self.cache.columns, nodes.refusals()
        places = columns.places(nodes)
        invalid = columns.fact("invalid")[places]
        if invalid.any():
            answer.add(invalid, INVALID)
        for rows, found, _ in self._misaligned(demand, nodes, victims):
            mask = np.zeros(len(nodes), dtype=np.bool_)
            mask[rows[found.mask]] = True
            answer.add(mask, f"cannot align {found.what}")
            columns.fact("refused")[places[mask]] = True
        return answer

    def _misaligned(
        self, demand: NumaDemand, nodes: Nodes, victims: Victims
    ) -> Iterator[tuple[IntArray, Misaligned, Stock]]:
        """Yield rows, those of them without a zone for a request, and the available amounts at that moment."""
        columns = self.cache.columns
        places = columns.places(nodes)
        judged = columns.fact("aligned")[places] & ~columns.fact("invalid")[places]
        for rows, requests in self._by_scope(demand, places, judged):
            stock = self._stock(requests, places[rows])
            for name in victims:
                self._release(stock, rows, nodes, name, victims[name])
            known = {name: nodes.allocatable(name)[rows] > 0 for name in stock if is_scalar_resource(name)}
            for found in misaligned(demand, requests, stock, known):
                yield rows, found, stock

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        demand, nodes = asked(state, pod), node.alone()
        if self.cache.columns.fact("invalid")[self.cache.columns.places(nodes)].any():
            yield Detail("NodeResourceTopology", there="does not count all pods of the node yet")
        elif demand is not None:
            for _, found, stock in self._misaligned(demand, nodes, state.read(VICTIMS, {})):
                yield from lacking(demand, found, stock, node)

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        """Propose to request no more than one NUMA zone has, for the first container that fits no zone."""
        demand = asked(state, pod)
        if demand is None:
            return
        for _, found, stock in self._misaligned(demand, node.alone(), state.read(VICTIMS, {})):
            yield from fitting_one_zone(demand, found, stock, pod)
            return

    def _by_scope(
        self, demand: NumaDemand, places: IntArray, judged: BoolArray
    ) -> Iterator[tuple[IntArray, Sequence[ZoneRequest]]]:
        """Yield rows and the requests that are aligned there."""
        by_pod = self.cache.columns.fact("by_pod")[places]
        for mask, requests in ((judged & by_pod, (demand.pod,)), (judged & ~by_pod, demand.containers)):
            rows = np.flatnonzero(mask)
            if len(rows) and any(request.amounts for request in requests):
                yield rows, requests

    def _stock(self, requests: Sequence[ZoneRequest], places: IntArray) -> Stock:
        names = {name for request in requests for name, _ in request.amounts}
        return {name: self.cache.columns.available(name, places) for name in sorted(names)}

    def _release(self, stock: Stock, rows: IntArray, nodes: Nodes, name: str, victims: Mapping[str, Pod]) -> None:
        """Return the zones of a node without these pods."""
        found = np.flatnonzero(nodes.named(name)[rows])
        if not len(found) or not victims:
            return
        there_now = nodes[int(rows[found[0]])].pods
        topology, missing = self.cache.without(victims, name, (*there_now, *victims.values()))
        for position, zone in enumerate(topology.zones):
            there = remaining(zone, missing)
            for resource, available in stock.items():
                available[position][found] = there.get(resource, NOT_REPORTED)

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> int | None:
        demand = asked(state, pod)
        if demand is None or not demand.guaranteed:
            return scoring.BEST
        columns = self.cache.columns
        places, strategy = columns.places(nodes), self.args.scoring_strategy.type
        wanted = "known" if strategy == LEAST_NUMA_NODES else "aligned"
        judged = columns.fact(wanted)[places] & ~columns.fact("invalid")[places]
        out[:] = np.where(judged, scoring.BEST, 0)
        for rows, requests in self._by_scope(demand, places, judged):
            mine = places[rows]
            stock = self._stock(requests, mine)
            if strategy == LEAST_NUMA_NODES:
                out[rows] = scoring.least_numa_scores(columns, mine, requests, stock)
            else:
                points, zones = scoring.STRATEGIES[strategy], columns.fact("zones")[mine]
                out[rows] = scoring.node_scores(points, requests, stock, zones, self._weights)
        return None

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.cache.reserve(pod, node_name)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.cache.unreserve(pod, node_name)

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.cache.bound(pod, node_name)

    def events_to_register(self) -> Sequence[Registration]:
        nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        return [
            Registration(nodes, lambda pod, old, new: self._fits(pod, new.name)),
            Registration(ClusterEvent(TOPOLOGIES, ActionType.UPDATE), lambda pod, old, new: self._fits(pod, new)),
        ]

    def _fits(self, pod: Pod, node_name: str) -> QueueingHint:
        """Return whether the plugin would admit the pod to this node now."""
        node, demand = self.handle.node(node_name), demand_of(pod)
        if node is None or demand is None:
            return QueueingHint.SKIP
        refused = self._refusals(demand, node.alone(), {}).entries
        return QueueingHint.SKIP if any(entry.mask.any() for entry in refused) else QueueingHint.QUEUE

    def sign(self, pod: Pod) -> Hashable:
        return (demand_of(pod),)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return () if demand_of(pod) is None else (Reads.PODS,)


def asked(state: CycleState, pod: Pod) -> NumaDemand | None:
    """Return the demand that PreFilter found, if the profile enables it there."""
    demand: NumaDemand | None = state.read(STATE, None)
    return demand or demand_of(pod)


def _cache(args: NodeResourceTopologyMatchArgs) -> TopologyCache:
    if args.discard_reserved_nodes:
        return DiscardReserved()
    return OverReserve(args.cache) if args.cache_resync_period_seconds > 0 else TopologyCache()
