"""The state of a pod in one sentence: the first thing that an operator asks, and what decides the exit code.

Whether nodes are feasible matters only for a pod that a scheduler tries. A pod that is gated, waits for another
scheduler or for victims, or has a node already, is in another state, whatever the plugins say about its nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from moorage.api.node import Node
from moorage.api.pod import ContainerStatus, Pod

MAX_NAMED = 5
"""Number of victims and containers that are named."""


@dataclass(frozen=True, slots=True)
class PodStanding:
    """The state of a pod."""

    state: str
    """`gated`, `otherScheduler`, `terminating`, `nominated`, `placed`, `notRunning`, `pending` or `schedulable`."""
    headline: str
    facts: tuple[str, ...] = ()
    ends_well: bool = False
    """Whether the pod has a node, or gets one as things are."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the state of a pod depends on besides the pod."""

    feasible: int
    total: int
    schedulers: Collection[str]
    """The scheduler names of the configuration; empty if the name in the pod does not count."""
    node: Node | None = None
    """The node that the pod is on or nominated to."""
    node_pods: tuple[Pod, ...] = ()
    """The pods on that node."""
    held_back: tuple[str, ...] = ()
    """Why PreEnqueue keeps the pod out of the queue."""
    signs: str = ""
    """What shows that the pod's scheduler runs, as a sentence."""


def standing(pod: Pod, around: Surroundings) -> PodStanding:
    """Return the state of a pod."""
    if pod.spec.node_name:
        return _assigned(pod, around)
    if pod.is_terminating:
        since = pod.metadata.deletion_timestamp
        return PodStanding("terminating", f"{pod.key} has been terminating since {since}; it will not be scheduled.")
    if around.held_back:
        return _gated(pod, around)
    if around.schedulers and pod.scheduler_name not in around.schedulers:
        return _foreign(pod, around)
    if pod.nominated_node_name:
        return _nominated(pod, around)
    feasible = f"{around.feasible} of {around.total} nodes are feasible"
    if around.feasible:
        return PodStanding("schedulable", f"{pod.key} can be scheduled: {feasible}.", (), ends_well=True)
    return PodStanding("pending", f"{pod.key} is pending: {feasible}.")


def _assigned(pod: Pod, around: Surroundings) -> PodStanding:
    name = pod.spec.node_name
    facts = list(_node_facts(around.node, name))
    if pod.is_terminating:
        since = pod.metadata.deletion_timestamp
        text = f"{pod.key} has been terminating since {since}; it is on {name}."
        return PodStanding("terminating", text, tuple(facts), ends_well=True)
    waiting = list(_waiting(pod))
    if waiting:
        text = f"{pod.key} is placed on {name} and does not run: {waiting[0]}."
        facts = [*(f"{each}." for each in waiting[1:MAX_NAMED]), *facts]
        return PodStanding("notRunning", text, tuple(facts), ends_well=True)
    if pod.status.phase == "Pending":
        text = f"{pod.key} is placed on {name}; its containers do not run yet."
        return PodStanding("notRunning", text, tuple(facts), ends_well=True)
    now = f"If it were created now, {around.feasible} of {around.total} nodes would be feasible."
    return PodStanding("placed", f"{pod.key} runs on {name}. {now}", tuple(facts), ends_well=True)


def _gated(pod: Pod, around: Surroundings) -> PodStanding:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if not gates:
        reasons = "; ".join(around.held_back)
        return PodStanding("gated", f"{pod.key} is gated: {reasons}. The scheduler does not try it until that ends.")
    named = ", ".join(gates)
    one = "the scheduling gate" if len(gates) == 1 else "the scheduling gates"
    text = f"{pod.key} is gated by {one} {named}. The scheduler does not try it until {_it(gates)} removed."
    then = f"Without {_them(gates)}, {around.feasible} of {around.total} nodes would be feasible."
    gate = "the gate" if len(gates) == 1 else "the gates"
    who = f"Who set {gate} is not recorded; a controller or a webhook usually removes {_them(gates)}."
    return PodStanding("gated", text, (then, who))


def _it(gates: list[str]) -> str:
    return "it is" if len(gates) == 1 else "they are"


def _them(gates: list[str]) -> str:
    return "it" if len(gates) == 1 else "them"


def _foreign(pod: Pod, around: Surroundings) -> PodStanding:
    known = ", ".join(sorted(around.schedulers))
    text = f"{pod.key} waits for the scheduler {pod.scheduler_name}; {known} does not schedule it."
    would = f"{around.feasible} of {around.total} nodes would be feasible for the plugins that were asked here."
    return PodStanding("otherScheduler", text, tuple(fact for fact in (around.signs, would) if fact))


def _nominated(pod: Pod, around: Surroundings) -> PodStanding:
    name = pod.nominated_node_name
    leaving = [other for other in around.node_pods if other.is_terminating and other.priority < pod.priority]
    facts = list(_node_facts(around.node, name))
    if not leaving:
        text = f"{pod.key} is nominated to {name}. No victim is left there; the next attempt decides."
        return PodStanding("nominated", text, tuple(facts))
    victims = "1 victim" if len(leaving) == 1 else f"{len(leaving)} victims"
    text = f"{pod.key} is nominated to {name} and waits for {victims} to leave."
    named = [f"{other.key} has been terminating since {other.metadata.deletion_timestamp}." for other in leaving]
    return PodStanding("nominated", text, (*named[:MAX_NAMED], *facts))


def _node_facts(node: Node | None, name: str) -> Iterator[str]:
    if node is None:
        yield f"Node {name} does not exist."
    elif node.metadata.deletion_timestamp is not None:
        yield f"Node {name} has been terminating since {node.metadata.deletion_timestamp}."


def _waiting(pod: Pod) -> Iterator[str]:
    """Yield why containers do not run, as the kubelet reports it."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        why = _reason(status)
        if why:
            yield f"container {status.name}: {why}"


def _reason(status: ContainerStatus) -> str:
    waiting = status.state.waiting if status.state is not None else None
    if waiting is None or waiting.reason in ("", "ContainerCreating", "PodInitializing"):
        return ""
    return f"{waiting.reason}: {waiting.message.rstrip('.')}" if waiting.message else waiting.reason


def pods_on(pods: Iterable[Pod], node: str) -> tuple[Pod, ...]:
    """Return the pods that are bound to a node."""
    return tuple(pod for pod in pods if pod.spec.node_name == node) if node else ()
