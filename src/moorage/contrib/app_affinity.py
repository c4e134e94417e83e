"""AppAffinity: limit the pods of an application per node, rack or zone, and prefer or avoid domains with pods of other
applications.

A label of the pod names its application; pods of all namespaces count. The affinity terms of the pods themselves are
handled by InterPodAffinity."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from moorage.api.meta import Int32, Record
from moorage.api.node import HOSTNAME
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid, required
from moorage.api.selectors import selector_from_labels
from moorage.contrib.normalizing import min_max
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import ASSIGNED_POD, NODE, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.indexes import DomainCounts, PodCounter, PodSelector
from moorage.framework.nodes import IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import (
    NO_LABEL,
    Detail,
    ExplainingPlugin,
    ReusablePlugin,
    VectorFilterPlugin,
    VectorScorePlugin,
)
from moorage.framework.points import PreFilterPlugin, PreScorePlugin
from moorage.framework.status import Code, Status

STATE = "AppAffinity"


class Limit(Record):
    """The maximum number of pods of one application in a domain."""

    topology_key: str = HOSTNAME
    max_pods: Int32 = 0
    applications: tuple[str, ...] = ()
    """The ones that it holds for; empty: all."""


class Preference(Record):
    """How strongly pods of one application prefer or avoid a domain that has pods of another one."""

    application: str = ""
    other: str = ""
    topology_key: str = HOSTNAME
    weight: Int32 = 0
    """Above 0 to be near, below 0 to be away."""


class AppAffinityArgs(PluginArgs):
    """The application label, the limits and the preferences."""

    label: str = "AppID"
    limits: tuple[Limit, ...] = ()
    preferences: tuple[Preference, ...] = ()

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if not self.label:
            yield required(child(path, "label"), "the label of pods that names their application")
        for index, limit in enumerate(self.limits):
            where = child(path, "limits", index)
            if limit.max_pods < 1:
                yield invalid(child(where, "maxPods"), limit.max_pods, "must be at least 1")
            if not limit.topology_key:
                yield required(child(where, "topologyKey"), "a label of nodes")
        for index, preference in enumerate(self.preferences):
            where = child(path, "preferences", index)
            for name in ("application", "other"):
                if not getattr(preference, name):
                    yield required(child(where, name), f"a value of the label {self.label}")
            if not -100 <= preference.weight <= 100 or not preference.weight:
                text = "must be from -100 to 100, and not 0"
                yield invalid(child(where, "weight"), preference.weight, text)
            if not preference.topology_key:
                yield required(child(where, "topologyKey"), "a label of nodes")


class AppLimits(NamedTuple):
    """The limits that apply to one attempt, each with the pods per domain, which a dry run changes."""

    counts: tuple[tuple[Limit, DomainCounts], ...]

    def clone(self) -> AppLimits:
        return AppLimits(tuple((limit, counts.clone()) for limit, counts in self.counts))

    def change(self, node: NodeView, number: int) -> None:
        for _, counts in self.counts:
            counts.add(counts.topology.domain(node.labels), number)


class AppAffinity(
    PreFilterPlugin, VectorFilterPlugin, PreScorePlugin, VectorScorePlugin, ReusablePlugin, ExplainingPlugin
):
    name = "AppAffinity"
    Args = AppAffinityArgs

    def __init__(self, args: AppAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._counters = handle.pod_counters

    def application(self, pod: Pod) -> str:
        return pod.labels.get(self.args.label, "")

    def _counter(self, application: str) -> PodCounter:
        return self._counters.get(PodSelector(None, selector_from_labels({self.args.label: application})))

    def _limits(self, pod: Pod) -> list[Limit]:
        application = self.application(pod)
        found = (limit for limit in self.args.limits if application in (limit.applications or (application,)))
        return list(found) if application else []

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        limits = self._limits(pod)
        if not limits:
            return Status.skip()
        counter = self._counter(self.application(pod))
        topologies = ((limit, self.handle.topology(limit.topology_key)) for limit in limits)
        state.write(STATE, AppLimits(tuple((limit, DomainCounts(t, counter.sums(t))) for limit, t in topologies)))
        return None

    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        return self.application(other) == self.application(pod)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        if self.concerns(state, pod, added):
            state.own(STATE).change(node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        if self.concerns(state, pod, removed):
            state.own(STATE).change(node, -1)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        answer = nodes.refusals()
        for limit, counts in state.read(STATE).counts:
            key = limit.topology_key
            lacking = ~nodes.has_label(key)
            if lacking.any():
                text = f"node(s) didn't have the label {key} that an application limit needs"
                answer.add(lacking, text, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
            full = counts.topology.gather(counts.now() >= limit.max_pods, False, nodes)
            text = f"node(s) had {limit.max_pods} pods of application {self.application(pod)} per {key}"
            answer.add(full, text)
        return answer

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        return None if self._preferences(pod) else Status.skip()

    def _preferences(self, pod: Pod) -> list[Preference]:
        return [found for found in self.args.preferences if found.application == self.application(pod)]

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        """Return the sum of the weights of all applications that have pods in the node's domain."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for preference in self._preferences(pod):
            topology = self.handle.topology(preference.topology_key)
            there = self._counter(preference.other).sums(topology) > 0
            total += preference.weight * topology.gather(there, False, nodes)
        return total

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        return min_max(scores)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        for limit, counts in state.read(STATE).counts:
            key, most, domain = limit.topology_key, limit.max_pods, counts.topology.domain(node.labels)
            if domain < 0:
                yield Detail(f"label {key}", there=NO_LABEL)
            elif (there := counts.at(domain)) >= most:
                subject = f"pods of application {self.application(pod)} per {key}={node.labels[key]}"
                yield Detail(subject, asked=most, there=there, missing=there + 1 - most)

    def events_to_register(self) -> Sequence[Registration]:
        pods = ClusterEvent(ASSIGNED_POD, ActionType.DELETE | ActionType.UPDATE_POD_LABEL)
        nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [
            Registration(pods, self._after_pod_change), Registration(nodes, self._after_node_change),
        ]  # fmt: skip

    def _after_pod_change(self, pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
        """Queue if a pod of the application was deleted or now belongs to another application."""
        mine = self.application(pod)
        went = self.application(old) == mine and (new is None or self.application(new) != mine)
        return QueueingHint.QUEUE if went else QueueingHint.SKIP

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """Queue if a node was added to a domain of a limit."""
        keys = [limit.topology_key for limit in self._limits(pod)]
        before = old.labels if old is not None else {}
        moved = any(new.labels.get(key) not in (None, before.get(key)) for key in keys)
        return QueueingHint.QUEUE if moved else QueueingHint.SKIP

    def sign(self, pod: Pod) -> Hashable:
        return self.application(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.PODS) if self.application(pod) else ()
