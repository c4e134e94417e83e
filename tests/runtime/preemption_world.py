"""A small world for tests of preemption: four plugins with every kind of dependence, and the same rules again
as plain loops over plain lists."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from moorage.api import resources as kinds
from moorage.api.node import ZONE
from moorage.api.pod import Pod
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration, configure
from moorage.app.offline import NoApi, NoEvents
from moorage.framework import ReusablePlugin
from moorage.framework.access import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import HeadroomFilterPlugin
from moorage.framework.points import FilterPlugin, Plugin, PreFilterPlugin
from moorage.framework.ports import Change
from moorage.framework.status import Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.filtering import run_filters
from moorage.runtime.pre_filtering import run_pre_filter
from moorage.scheduler.assembly import assemble
from moorage.scheduler.generation import Ports
from moorage.testing import make_node, make_pod

CPU = "example.com/slots"
"""A resource of the tests' own, so that no default plugin has a say in it."""
LIMIT = 1
"""How many pods of one app a zone may have beside the incoming one."""


def asks(pod: Pod) -> int:
    return int(pod.spec.containers[0].resources.requests.get(CPU, 0))


class Headroom(HeadroomFilterPlugin, ReusablePlugin):
    """Sums of requests, with `headroom`."""

    name = "Headroom"

    def filter(self, state, pod, node):
        return None if asks(pod) <= node.free(CPU) else Status.unschedulable("no room")

    def filter_nodes(self, state, pod, nodes):
        return nodes.refuse(nodes.free(CPU) < asks(pod), "no room")

    def headroom(self, state, pod, nodes):
        return {CPU: nodes.free(CPU) - asks(pod)}

    def reads(self, pod):
        return (Reads.NODE, Reads.ROW)


class PortLabels(PreFilterPlugin, FilterPlugin, ReusablePlugin):
    """No two pods with the same port label on a node: reads the pods of the node."""

    name = "PortLabels"

    def pre_filter(self, state, pod, nodes):
        return None if "port" in pod.labels else Status.skip()

    def filter(self, state, pod, node):
        taken = {other.labels.get("port") for other in node.pods}
        return Status.unschedulable("port taken") if pod.labels["port"] in taken else None

    def reads(self, pod):
        return (Reads.ROW,)


class Counts(dict[str, int]):
    """Zone → number of pods of one app."""

    def clone(self):
        return Counts(self)


class Apart(PreFilterPlugin, FilterPlugin, ReusablePlugin):
    """At most `LIMIT` other pods of the same app in a zone: counts over the cluster, followed in dry runs."""

    name = "Apart"

    def pre_filter(self, state, pod, nodes):
        if "app" not in pod.labels:
            return Status.skip()
        counts = Counts()
        for node in nodes:
            zone = node.labels[ZONE]
            counts[zone] = counts.get(zone, 0) + sum(_alike(pod, other) for other in node.pods)
        state.write(self.name, counts)
        return None

    def add_pod(self, state, pod, added, node):
        if _alike(pod, added):
            state.own(self.name)[node.labels[ZONE]] += 1

    def remove_pod(self, state, pod, removed, node):
        if _alike(pod, removed):
            state.own(self.name)[node.labels[ZONE]] -= 1

    def concerns(self, state, pod, other):
        return _alike(pod, other)

    def filter(self, state, pod, node):
        crowded = state.read(self.name)[node.labels[ZONE]] > LIMIT
        return Status.unschedulable("zone is crowded") if crowded else None

    def reads(self, pod):
        return (Reads.NODE, Reads.PODS)


class East(FilterPlugin, ReusablePlugin):
    """Pods with a side want a node of that side."""

    name = "East"

    def filter(self, state, pod, node):
        side = pod.labels.get("side")
        return Status.unresolvable("wrong side") if side and node.labels.get("side") != side else None

    def reads(self, pod):
        return (Reads.NODE,)


def _alike(pod: Pod, other: Pod) -> bool:
    return other.labels.get("app") == pod.labels["app"]


class HeadroomAsked(Headroom):
    """A Headroom that declares neither the headroom nor what it reads."""

    name = "HeadroomAsked"

    def headroom(self, state, pod, nodes):
        return None

    def reads(self, pod):
        return None


@dataclass
class Scene:
    """One cluster and a pod that wants in, as Hypothesis draws it."""

    nodes: list[dict[str, Any]]
    pods: list[dict[str, Any]]
    """`node` is an index; `at` the order of starting."""
    pod: dict[str, Any]
    budgets: list[Any] = field(default_factory=list)
    nominated: list[dict[str, Any]] = field(default_factory=list)

    def node_objects(self):
        return [
            make_node(f"n{i}", zone=spec["zone"], labels={"side": spec["side"]}, extended={CPU: spec["cpu"]})
            for i, spec in enumerate(self.nodes)
        ]

    def pod_objects(self):
        return [
            _pod(f"p{i}", spec, node=f"n{spec['node']}", start_time=f"2026-01-01T00:{spec['at'] + i:02d}:00Z")
            for i, spec in enumerate(self.pods)
        ]

    def incoming(self):
        return _pod("incoming", self.pod)

    def nominations(self):
        return [(_pod(f"w{i}", spec), f"n{spec['node']}") for i, spec in enumerate(self.nominated)]


def _pod(name: str, spec: dict[str, Any], **options: Any) -> Pod:
    labels = {key: spec[key] for key in ("app", "port", "side") if spec.get(key)}
    return make_pod(name, requests={CPU: spec["cpu"]}, priority=spec["priority"], labels=labels, **options)


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [%s]
"""


CONFIGURATIONS: dict[str, Configuration] = {}


def configuration(headroom: type[Headroom]) -> Configuration:
    """Made once per room: building one takes longer than a scene."""
    if headroom.name not in CONFIGURATIONS:
        CONFIGURATIONS[headroom.name] = make_configuration(headroom)
    return CONFIGURATIONS[headroom.name]


def make_configuration(headroom: type[Headroom]) -> Configuration:
    plugins: list[type[Plugin]] = [East, PortLabels, headroom, Apart]
    names = ["PrioritySort", *(p.name for p in plugins), "DefaultPreemption", "DefaultBinder"]
    listed = ", ".join(f"{{name: {name}}}" for name in names)
    return configure(CONFIG % listed, plugins=plugins, discover=False)


class World:
    """The scene in a real engine, with PreFilter and Filter done for the incoming pod."""

    def __init__(self, scene: Scene, headroom: type[Headroom] = Headroom) -> None:
        made = configuration(headroom)
        ports = Ports(NoApi(), SystemClock(), random.Random(0), NoEvents())
        self.engine = assemble(made.config, made.profiles, made.registry, ports)
        for resource, objects in (
            (kinds.NODES, scene.node_objects()),
            (kinds.PODS, scene.pod_objects()),
            (kinds.POD_DISRUPTION_BUDGETS, scene.budgets),
        ):
            for obj in objects:
                self.engine.inbox.post(Change(resource, None, obj))
        self.engine.drain()
        for pod, node in scene.nominations():
            self.engine.queue.nominator.nominate(pod, node)
        self.pod = scene.incoming()
        self.profile = self.engine.profiles["default-scheduler"]
        self.nodes = self.engine.services.nodes()
        self.state = CycleState()
        self.statuses = NodeStatuses(self.nodes)
        run_pre_filter(self.profile, self.state, self.pod, self.nodes)
        self.feasible, self.error = run_filters(self.profile, self.state, self.pod, self.nodes, self.statuses)


class Plain:
    """The rules once more: no state, no columns, everything counted anew each time."""

    def __init__(self, scene: Scene) -> None:
        self.nodes = {node.name: node for node in scene.node_objects()}
        self.on: dict[str, list[Pod]] = {name: [] for name in self.nodes}
        for pod in scene.pod_objects():
            self.on[pod.spec.node_name].append(pod)
        self.pod = scene.incoming()
        self.budgets = scene.budgets
        self.nominated: dict[str, list[Pod]] = {name: [] for name in self.nodes}
        for pod, node in scene.nominations():
            if pod.priority >= self.pod.priority:
                self.nominated[node].append(pod)

    def refusal(self, name: str, there: list[Pod]) -> str:
        """Why the pod cannot run on the node with these pods there; empty when it can."""
        beside = self._refusal(name, there + self.nominated[name]) if self.nominated[name] else ""
        return beside or self._refusal(name, there)

    def _refusal(self, name: str, there: list[Pod]) -> str:
        pod, node = self.pod, self.nodes[name]
        side, port, app = (pod.labels.get(key) for key in ("side", "port", "app"))
        if side and node.labels.get("side") != side:
            return "wrong side"
        if port and any(other.labels.get("port") == port for other in there):
            return "port taken"
        if asks(pod) > int(node.status.allocatable[CPU]) - sum(map(asks, there)):
            return "no room"
        if app:
            zone = node.labels[ZONE]
            alike = sum(
                other.labels.get("app") == app
                for other_name, pods in self.on.items()
                if self.nodes[other_name].labels[ZONE] == zone
                for other in (there if other_name == name else pods)
            )
            if alike > LIMIT:
                return "zone is crowded"
        return ""

    def victims(self, name: str) -> tuple[str, list[str], int]:
        """(why not, names of the victims in order of importance, violated budgets)."""
        lower = sorted(
            (other for other in self.on[name] if other.priority < self.pod.priority),
            key=lambda other: (-other.priority, other.status.start_time),
        )
        kept = [other for other in self.on[name] if other not in lower]
        if not lower:
            return "No preemption victims found for incoming pod", [], 0
        refusal = self.refusal(name, kept)
        if refusal:
            return refusal, [], 0
        violating = self._violating(lower)
        gone, violations = [], 0
        for other in [v for v in lower if v in violating] + [v for v in lower if v not in violating]:
            if self.refusal(name, [*kept, other]):
                gone.append(other)
                violations += other in violating
            else:
                kept.append(other)
        return "", [other.name for other in lower if other in gone], violations

    def _violating(self, pods: list[Pod]) -> list[Pod]:
        remaining = {budget.name: budget.status.disruptions_allowed for budget in self.budgets}
        found = []
        for pod in pods:
            hit = False
            for budget in self.budgets:
                wanted = budget.spec.selector.match_labels
                matches = wanted and all(pod.labels.get(key) == value for key, value in wanted.items())
                if matches and pod.name not in budget.status.disrupted_pods:
                    remaining[budget.name] -= 1
                    hit = hit or remaining[budget.name] < 0
            if hit:
                found.append(pod)
        return found

    def choice(self, candidates: dict[str, tuple[list[str], int]]) -> set[str]:
        """The names of the nodes that are equally good."""
        by_name = {pod.name: pod for pods in self.on.values() for pod in pods}

        def cost(name: str) -> tuple[Any, ...]:
            victims = [by_name[victim] for victim in candidates[name][0]]
            top = max(pod.priority for pod in victims)
            first = min(pod.status.start_time or "" for pod in victims if pod.priority == top)
            total = sum(pod.priority + 2**31 for pod in victims)
            return candidates[name][1], top, total, len(victims), [-ord(letter) for letter in first]

        best = min(map(cost, candidates))
        return {name for name in candidates if cost(name) == best}

    def message(self, refusals: dict[str, str]) -> str:
        counts = Counter(refusals.values())
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return f"preemption: 0/{len(refusals)} nodes are available: {reasons}."
