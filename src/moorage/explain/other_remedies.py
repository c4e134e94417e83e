"""Remedies that belong to no plugin: one more node, another priority, and what ends the state that a pod is in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from typing import Any

from msgspec.structs import replace

from moorage.api.kubectl import kubectl, patch
from moorage.api.node import HOSTNAME, Node
from moorage.api.pod import DEFAULT_SCHEDULER_NAME, Pod
from moorage.api.quantity import format_amount
from moorage.api.requests import CPU, node_allocatable, pod_requests
from moorage.api.resources import NODES
from moorage.explain.commands import pod_yaml
from moorage.explain.judging import Judge, Judgement
from moorage.explain.trying import Remedy, changed, outcome, violation_text
from moorage.framework.optional import ObjectChange
from moorage.framework.status import PostFilterResult

NEVER = "Never"
_SHAPES = 8
_PRIORITIES = 5
_NEW = "one-more-node"
_VICTIMS = 3
"""Victims that a remedy names."""
_IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")


async def other_remedies(judge: Judge, judgement: Judgement, leaving: Collection[str]) -> AsyncIterator[Remedy]:
    """Try remedies that concern no certain node: one more node, a larger one, the right to preempt, a higher
    priority."""
    shapes = _shapes(judgement, leaving)
    for node in shapes:
        if remedy := await _with_node(judge, judgement, node, f"Add one more node like {node.name}", 8):
            yield remedy
            break
    else:
        for node in shapes:
            larger, amounts = _enlarged(node, judgement.pod)
            text = f"Add a node with at least {amounts}"
            if amounts and (remedy := await _with_node(judge, judgement, larger, text, 7)):
                yield remedy
                break
    if judgement.preemption is not None and judgement.preemption.nominated_node:
        return
    async for remedy in _by_preemption(judge, judgement):
        yield remedy


async def _with_node(judge: Judge, judgement: Judgement, node: Node, text: str, cost: int) -> Remedy | None:
    new: ObjectChange = (NODES, None, node_like(node, _NEW))
    with changed(judge, (new,)):
        attempt = await judge.find(judgement.pod)
        feasible, best = outcome(judge, attempt, ())
    return Remedy(text, feasible, best, changes=(new,), cost=cost) if feasible else None


def _shapes(judgement: Judgement, leaving: Collection[str]) -> list[Node]:
    """Return one node of each shape that the same plugins refuse: those that the fewest refuse come first, and among
    them the most common."""
    groups: dict[tuple[Any, ...], list[Node]] = {}
    refused = [verdict.rows for verdict in judgement.verdicts]
    for view in judgement.nodes:
        if view.name not in leaving:
            by = tuple(bool(rows[view.row]) for rows in refused)
            groups.setdefault((sum(by), by, tuple(sorted(view.allocatable.items())), view.taints), []).append(view.node)
    order = sorted(groups, key=lambda shape: (shape[0], -len(groups[shape])))
    return [groups[shape][0] for shape in order[:_SHAPES]]


def node_like(node: Node, name: str) -> Node:
    """Return a copy of the node under another name, not cordoned."""
    labels = {**node.labels, HOSTNAME: name} if HOSTNAME in node.labels else node.labels
    meta = replace(node.metadata, name=name, uid=f"copy/{name}", labels=labels, deletion_timestamp=None)
    return replace(node, metadata=meta, spec=replace(node.spec, unschedulable=False))


def _enlarged(node: Node, pod: Pod) -> tuple[Node, str]:
    """Return the node with everything that it lacks for the pod even when empty, and these amounts as text."""
    offered = node_allocatable(node)
    lacking = {name: ask for name, ask in pod_requests(pod).items() if ask > offered.get(name, 0)}
    amounts = {name: f"{ask}m" if name == CPU else str(ask) for name, ask in lacking.items()}
    status = replace(node.status, allocatable={**node.status.allocatable, **amounts})
    text = " and ".join(f"{format_amount(name, ask)} {name}" for name, ask in sorted(lacking.items()))
    return replace(node, status=status), text


async def _by_preemption(judge: Judge, judgement: Judgement) -> AsyncIterator[Remedy]:
    pod = judgement.pod
    if pod.spec.preemption_policy == NEVER:
        result = await allowed_to_preempt(judge, judgement)
        if result is not None:
            free = _preempting(pod)
            text = f"Drop preemptionPolicy Never, which would preempt {_named(result)}"
            text += violation_text(judge, result.victims)
            yield Remedy(text, 0, result.nominated_node or "", free, cost=6, command=pod_yaml(pod, free))
        return
    for priority in _priorities(judgement):
        higher = replace(pod, spec=replace(pod.spec, priority=priority))
        result, _ = await judge.preempt(await judge.find(higher))
        if result is not None and result.nominated_node:
            text = f"Raise the priority to {priority}, which would preempt {_named(result)}"
            text += violation_text(judge, result.victims)
            yield Remedy(text, 0, result.nominated_node, higher, cost=9, command=_priority_command(priority))
            break


async def allowed_to_preempt(judge: Judge, judgement: Judgement) -> PostFilterResult | None:
    """Return what the pod would preempt if its preemptionPolicy did not forbid it."""
    if judgement.feasible or judgement.pod.spec.preemption_policy != NEVER:
        return None
    result, _ = await judge.preempt(await judge.find(_preempting(judgement.pod)))
    return result if result is not None and result.nominated_node else None


def _preempting(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, preemption_policy=None))


def _named(result: PostFilterResult) -> str:
    victims = ", ".join(victim.key for victim in result.victims[:_VICTIMS])
    more = len(result.victims) - _VICTIMS
    return f"{victims} and {more} more" if more > 0 else victims


def _priority_command(priority: int) -> str:
    """A pod gets its priority from a class; the number alone is not accepted."""
    name = f"priority-{priority}"
    create = f"kubectl create priorityclass {name} --value={priority} --description='Created for one workload'"
    return f"{create}\nspec:\n  priorityClassName: {name}"


def _priorities(judgement: Judgement) -> list[int]:
    """Return priorities just above those of running pods, the lowest first."""
    own = judgement.pod.priority
    seen = {pod.priority + 1 for view in judgement.nodes for pod in view.pods if pod.priority >= own}
    return sorted(seen)[:_PRIORITIES]


def state_remedies(pod: Pod, state: str, feasible: int, node: str) -> Iterator[Remedy]:
    """Yield what ends a state in which feasible nodes do not help."""
    if state == "gated" and pod.spec.scheduling_gates:
        yield _ungated(pod, feasible, node)
    elif state == "otherScheduler":
        spec = {"schedulerName": DEFAULT_SCHEDULER_NAME}
        text = f"Start the scheduler {pod.scheduler_name}, or recreate the pod without schedulerName"
        command = f"spec:\n  schedulerName: {spec['schedulerName']}"
        yield Remedy(text, feasible, node, command=command)
    elif state == "notRunning":
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            waiting = status.state.waiting if status.state is not None else None
            if waiting is not None and waiting.reason in _IMAGE_REASONS:
                text = f"Correct the image of container {status.name}, or the secret that it is pulled with"
                command = kubectl("set image", f"pod/{pod.name}", f"{status.name}=IMAGE", namespace=pod.namespace)
                yield Remedy(text, 0, "", command=command)


def _ungated(pod: Pod, feasible: int, node: str) -> Remedy:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    steps = [
        {"op": "test", "path": f"/spec/schedulingGates/{place}/name", "value": name} for place, name in enumerate(gates)
    ]
    steps.append({"op": "remove", "path": "/spec/schedulingGates"})
    some = "the scheduling gate" if len(gates) == 1 else "the scheduling gates"
    text = f"Remove {some} {', '.join(gates)}, if what set {'it' if len(gates) == 1 else 'them'} does not"
    command = patch(f"pod/{pod.name}", steps, namespace=pod.namespace, kind="json")
    return Remedy(text, feasible, node, command=command)
