"""What could be changed so that a plugin no longer refuses a node: of the pod, or of the cluster.

Proposals only, made from the pod and the node. Whether one of them helps is found out by trying it
(`remedies`); a plugin that is not known here gets none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from moorage.api import quantity
from moorage.api.node import Node
from moorage.api.node_selectors import compile_node_selector_terms
from moorage.api.pod import Affinity, Container, Pod, PodAffinity, PodAntiAffinity, ResourceRequirements
from moorage.api.pod_affinity import compile_pod_terms
from moorage.api.quantity import format_amount as amount
from moorage.api.requests import CPU, pod_requests
from moorage.api.resources import NODES, PODS, Resource
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, tolerates
from moorage.explain.judging import Judgement
from moorage.framework.nodes import NodeView
from moorage.runtime.questions import PluginVerdict

ObjectChange = tuple[Resource, Any, Any]
"""Kind, the object as it is and as it would be; None: it is not there."""

REQUIRED = "required_during_scheduling_ignored_during_execution"


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One thing that could be different."""

    key: str
    """Equal for the same proposal about another node: one of them is shown."""
    text: str
    cost: int
    """How much it asks of the user; the smaller the earlier."""
    relax: Callable[[Pod], Pod] | None = None
    changes: tuple[ObjectChange, ...] = ()
    size: float = 0.0
    """Among proposals with equal keys the least is the best."""


def alternatives(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> list[Relaxation]:
    """Ways to get past one plugin on one node, the mildest first."""
    propose = _PROPOSALS.get(verdict.plugin.name)
    return list(propose(judgement, verdict, node)) if propose is not None else []


Proposals = Iterator[Relaxation]


def _taints(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> Proposals:
    tolerations = judgement.pod.spec.tolerations
    hard = [taint for taint in node.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    bad = [taint for taint in hard if not any(tolerates(each, taint) for each in tolerations)]
    if not bad:
        return
    names = " and ".join(map(str, bad))

    def tolerate(pod: Pod) -> Pod:
        added = tuple(_toleration(taint) for taint in bad)
        return _with_spec(pod, tolerations=(*pod.spec.tolerations, *added))

    yield Relaxation(f"tolerate {names}", f"tolerate the taint {names}", 2 * len(bad), tolerate)
    freed = replace(node.node.spec, taints=tuple(each for each in node.taints if each not in bad))
    change = (NODES, node.node, replace(node.node, spec=freed))
    yield Relaxation(
        f"untaint {names}", f"remove the taint {names} from the node {node.name}", 6, changes=(change,)
    )


def _toleration(taint: Taint) -> Toleration:
    operator = "Equal" if taint.value else "Exists"
    return Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)


def _cordon(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> Proposals:
    freed = replace(
        node.node.spec,
        unschedulable=False,
        taints=tuple(each for each in node.taints if each.key != "node.kubernetes.io/unschedulable"),
    )
    change = (NODES, node.node, replace(node.node, spec=freed))
    yield Relaxation("uncordon", f"uncordon the node {node.name}", 1, changes=(change,))


def _node_affinity(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> Proposals:
    pod = judgement.pod
    wrong = {key: value for key, value in pod.spec.node_selector.items() if node.labels.get(key) != value}
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = getattr(affinity, REQUIRED, None)
    fails = required is not None and not compile_node_selector_terms(required.node_selector_terms).matches(
        node.labels, node.name
    )
    parts = [f"{key}={value}" for key, value in sorted(wrong.items())]
    dropped = [f"the node selector {' and '.join(parts)}"] if parts else []
    dropped += ["the required node affinity"] if fails else []
    if not dropped:
        return

    def drop(given: Pod) -> Pod:
        kept = {key: value for key, value in given.spec.node_selector.items() if key not in wrong}
        relaxed = _with_spec(given, node_selector=kept)
        affinity = relaxed.spec.affinity
        if fails and affinity is not None and affinity.node_affinity is not None:
            free = replace(affinity.node_affinity, **{REQUIRED: None})
            relaxed = _with_spec(relaxed, affinity=replace(affinity, node_affinity=free))
        return relaxed

    text = " and ".join(dropped)
    yield Relaxation(f"drop {text}", f"drop {text}", 4 * len(dropped), drop)
    if wrong and not fails:
        labels = {**node.labels, **wrong}
        change = (NODES, node.node, _labelled(node.node, labels))
        yield Relaxation(
            f"label {parts}", f"label the node {node.name} with {' and '.join(parts)}", 3, changes=(change,)
        )


def _labelled(node: Node, labels: Mapping[str, str]) -> Node:
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _resources(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> Proposals:
    asked = pod_requests(judgement.pod)
    missing = {name: ask - node.free(name) for name, ask in asked.items() if 0 < ask > node.free(name)}
    full = node.free("pods") < 1
    if missing and not full:
        parts = [f"{amount(name, less)} less {name}" for name, less in missing.items()]
        if all(less < asked[name] for name, less in missing.items()):
            share = max(less / asked[name] for name, less in missing.items())
            yield Relaxation(
                f"request less {' and '.join(missing)}",
                f"request {' and '.join(parts)}",
                3 * len(missing),
                lambda pod: _with_less(pod, missing),
                size=share,
            )
    yield from _removals(judgement, node, missing, full)


def _removals(judgement: Judgement, node: NodeView, missing: Mapping[str, int], full: bool) -> Proposals:
    """Without one of the pods there, the least important and then smallest one that frees enough."""
    enough = []
    for other in node.pods:
        holds = pod_requests(other)
        if all(holds.get(name, 0) >= less for name, less in missing.items()) and (missing or full):
            enough.append((other.priority, sum(holds.get(name, 0) for name in missing), other.key, other))
    for _, size, _, other in sorted(enough, key=lambda each: each[:3])[:1]:
        yield _deletion(other, node, size)


def _deletion(other: Pod, node: NodeView, size: int = 0) -> Relaxation:
    """Of a pod that is in the way; a less important one is less to ask for, then a smaller one."""
    text = f"delete the pod {other.key} on the node {node.name}"
    weight = other.priority * 1e12 + size
    return Relaxation("delete a pod", text, 7, changes=((PODS, other, None),), size=weight)


def _with_less(given: Pod, missing: Mapping[str, int]) -> Pod:
    pod = given
    for name, less in missing.items():
        containers = list(pod.spec.containers)
        level = pod.spec.resources
        if level is not None and name in level.requests:
            level = _reduced(level, name, less)[0]
            pod = _with_spec(pod, resources=level)
            # A pod may not ask for less than its containers together.
            remaining = _counted(name, level.requests[name])
            together = pod_requests(_with_spec(pod, resources=None, overhead={})).get(name, 0)
            less = max(0, together - remaining)
        order = sorted(range(len(containers)), key=lambda i: -_asks(containers[i], name))
        for index in order:
            if not less:
                break
            resources, less = _reduced(containers[index].resources, name, less)
            containers[index] = replace(containers[index], resources=resources)
        if less:
            return given  # init containers ask for too much
        pod = _with_spec(pod, containers=tuple(containers))
    return pod


def _asks(container: Container, name: str) -> int:
    return _counted(name, container.resources.requests.get(name, 0))


def _counted(name: str, written: quantity.Quantity) -> int:
    return quantity.milli_value(written) if name == CPU else quantity.value(written)


def _reduced(resources: ResourceRequirements, name: str, less: int) -> tuple[ResourceRequirements, int]:
    """With less of one resource, and how much could not be taken here. Limits come down with requests of
    extended resources, which must be equal."""
    asked = _counted(name, resources.requests.get(name, 0))
    taken = min(asked, less)
    kept = f"{asked - taken}m" if name == CPU else str(asked - taken)
    limits = dict(resources.limits)
    if "/" in name and name in limits:
        limits[name] = kept
    changed = replace(resources, requests={**resources.requests, name: kept}, limits=limits)
    return (changed if taken else resources), less - taken


def _spread(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> Proposals:
    details = [each for each in judgement.details(verdict, node) if each.missing]
    needed = max((int(each.missing or 0) for each in details), default=0)
    hard = [each for each in judgement.pod.spec.topology_spread_constraints if _is_hard(each)]
    if not hard:
        return
    keys = " and ".join(sorted({constraint.topology_key for constraint in hard}))
    if needed:

        def widen(pod: Pod) -> Pod:
            return _with_constraints(
                pod, lambda c: replace(c, max_skew=c.max_skew + needed) if _is_hard(c) else c
            )

        skews = " and ".join(str(constraint.max_skew + needed) for constraint in hard)
        yield Relaxation(f"maxSkew {keys}", f"allow a maxSkew of {skews} over {keys}", 3, widen, size=needed)

    def soften(pod: Pod) -> Pod:
        return _with_constraints(
            pod, lambda c: replace(c, when_unsatisfiable="ScheduleAnyway") if _is_hard(c) else c
        )

    yield Relaxation(f"soft {keys}", f"spread over {keys} with ScheduleAnyway", 5, soften)


def _is_hard(constraint: Any) -> bool:
    return bool(constraint.when_unsatisfiable != "ScheduleAnyway")


def _with_constraints(pod: Pod, change: Callable[[Any], Any]) -> Pod:
    return _with_spec(
        pod, topology_spread_constraints=tuple(map(change, pod.spec.topology_spread_constraints))
    )


def _inter_pod(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> Proposals:
    pod, reasons = judgement.pod, " ".join(verdict.statuses.get(node.name).reasons)
    own = compile_pod_terms(pod)
    in_the_way = _named(judgement, verdict, node)
    if "existing pods" not in reasons:
        anti = "anti-affinity" in reasons
        terms = own.anti_affinity if anti else own.affinity
        if terms:
            name = "pod_anti_affinity" if anti else "pod_affinity"
            what = "required pod anti-affinity" if anti else "required pod affinity"
            yield Relaxation(f"drop {what}", f"drop the {what}", 5, lambda given: _without_terms(given, name))
    others = [other for other in node.pods if other.key in in_the_way]
    if len(in_the_way) == 1 and others and "affinity rules" in reasons:
        yield _deletion(others[0], node)


def _without_terms(pod: Pod, name: str) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    group: PodAffinity | PodAntiAffinity | None = getattr(affinity, name)
    if group is None:
        return pod
    return _with_spec(pod, affinity=replace(affinity, **{name: replace(group, **{REQUIRED: ()})}))


def _ports(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> Proposals:
    def closed(container: Container) -> Container:
        return replace(container, ports=tuple(replace(port, host_port=0) for port in container.ports))

    def close(pod: Pod) -> Pod:
        spec = pod.spec
        return _with_spec(
            pod,
            containers=tuple(map(closed, spec.containers)),
            init_containers=tuple(map(closed, spec.init_containers)),
        )

    if not judgement.pod.spec.host_network:
        yield Relaxation("host ports", "do without host ports", 4, close)
    others = [other for other in node.pods if other.key in _named(judgement, verdict, node)]
    if len(others) == 1:
        yield _deletion(others[0], node)


def _named(judgement: Judgement, verdict: PluginVerdict, node: NodeView) -> set[str]:
    """The pods that the plugin says are in the way."""
    return {name for each in judgement.details(verdict, node) for name in each.pods}


def _with_spec(pod: Pod, **changes: Any) -> Pod:
    return replace(pod, spec=replace(pod.spec, **changes))


_PROPOSALS: dict[str, Callable[[Judgement, PluginVerdict, NodeView], Proposals]] = {
    "TaintToleration": _taints,
    "NodeUnschedulable": _cordon,
    "NodeAffinity": _node_affinity,
    "NodeResourcesFit": _resources,
    "PodTopologySpread": _spread,
    "InterPodAffinity": _inter_pod,
    "NodePorts": _ports,
}
