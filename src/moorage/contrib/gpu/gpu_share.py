"""GpuShare: account for GPUs card by card. It rejects nodes where a pod does not fit on single cards, assigns cards,
and writes them to the pod before it is bound.

Score plugins choose the node. One of them may also choose the card by writing a `Choice` to the cycle state; otherwise
a part of a card goes to the card that has the least left afterwards."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import partial

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.contrib.gpu.cards import Cards, Choice, given
from moorage.contrib.gpu.requests import (
    GPU_COUNT,
    GPU_INDEX,
    GPU_MODEL,
    WHOLE,
    accepting,
    asking,
    card_text,
    cards_of,
    gpu_request,
    read_request,
)
from moorage.framework.access import LISTED, Access, Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE,
    UNSCHEDULED_POD,
    ActionType,
    ClusterEvent,
    QueueingHint,
    Registration,
)
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import Nodes, NodeView, Refusals
from moorage.framework.optional import NO_LABEL, Detail, ExplainingPlugin, Proposal, ReusablePlugin, a_few, deletion
from moorage.framework.points import PreBindPlugin, PreFilterPlugin, ReservePlugin
from moorage.framework.status import Code, PreBindPreFlight, Status

CHOICE = "GpuShare.choice"
"""Where in the cycle state a Score plugin leaves a `Choice`."""


class GpuShare(PreFilterPlugin, WholeTableFilterPlugin, ReservePlugin, PreBindPlugin, ReusablePlugin, ExplainingPlugin):
    name = "GpuShare"
    needs = (Access(PODS, (*LISTED, "patch")),)

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self.cards = Cards.of(handle)
        handle.on_change(PODS, self._pod_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Forget the reservation once the assigned pod names its cards itself."""
        pod = new or old
        if pod is not None and (new is None or new.is_terminal or (new.is_assigned and cards_of(new))):
            self.cards.booked.pop(pod.uid, None)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        request, problem = read_request(pod)
        if problem:
            return Status.unresolvable(problem)
        return None if request.cards else Status.skip()

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        count, milli, models = gpu_request(pod)
        few = nodes.allocatable(GPU_COUNT) < count
        full = ~few & ((self.cards.free(nodes) >= milli).sum(axis=1) < count)
        answer = nodes.refusals()
        answer.add(few, "node(s) had too few GPUs", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        if models:
            other = ~few & ~nodes.label_equals(GPU_MODEL, *models)
            answer.add(other, "node(s) had another GPU model", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
            full &= ~other
        return answer.add(full, f"node(s) had too few GPUs with {milli} of {WHOLE} milli free")

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        request, node = gpu_request(pod), self.handle.node(node_name)
        if not request.cards:
            return None
        if node is None:
            return Status.unschedulable(f"node {node_name} is gone")
        free, _ = self.cards.on(node, without=pod.uid)
        choice: Choice | None = state.read(CHOICE, None)
        cards = given(request, free, (lambda: choice(pod, request, node, free)) if choice else None)
        if not cards:
            return Status.unschedulable(f"node {node_name} no longer had the GPUs free that the pod asks for")
        self.cards.booked[pod.uid] = cards
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.cards.booked.pop(pod.uid, None)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreBindPreFlight | Status | None:
        if pod.uid not in self.cards.booked:
            return Status.skip()
        return PreBindPreFlight(allow_parallel=True)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        text = card_text(self.cards.booked[pod.uid])
        # With the UID, so that a new pod of the same name does not get the cards of the old one.
        patch = {"metadata": {"uid": pod.uid, "annotations": {GPU_INDEX: text}}}
        await self.handle.client.patch(PODS, pod.name, patch, namespace=pod.namespace)
        return None

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        request, cards = gpu_request(pod), node.allocatable.get(GPU_COUNT, 0)
        if request.models and (model := node.labels.get(GPU_MODEL, NO_LABEL)) not in request.models:
            yield Detail(f"GPU model {'|'.join(request.models)}", there=model)
        if cards < request.cards:
            yield Detail("GPUs", asked=request.cards, there=cards, missing=request.cards - cards)
            return
        free, _ = self.cards.on(node)
        if sum(amount >= request.milli for amount in free) < request.cards:
            subject, asked, there = "idle GPUs", request.cards, free.count(WHOLE)
            if request.is_part:
                subject, asked, there = f"free of one GPU, of {WHOLE} milli", request.milli, max(free)
            holders = a_few(other for other in node.pods if gpu_request(other).cards)
            yield Detail(subject, asked=asked, there=there, missing=asked - there, pods=holders)

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        """Propose what the node has: another model, fewer cards, a smaller part of a card; or to delete one pod."""
        request = gpu_request(pod)
        free, _ = self.cards.on(node)
        model = node.labels.get(GPU_MODEL, "")
        if request.models and model and model not in request.models:
            text = f"accept the GPU model {model}"
            yield Proposal(text, text, 4, partial(accepting, model=model))
            return
        fitting = sum(amount >= request.milli for amount in free)
        if fitting >= request.cards:
            return
        if request.is_part and (most := max(free)):
            text = f"ask for at most {most} milli of a GPU"
            yield Proposal("ask for less of a GPU", text, 3, partial(asking, cards=1, milli=most), size=-most)
        elif fitting and not request.is_part:
            text = f"ask for at most {fitting} GPUs" if fitting > 1 else "ask for 1 GPU"
            changed = partial(asking, cards=fitting, milli=request.milli)
            yield Proposal("ask for fewer GPUs", text, 3, changed, size=-fitting)
        for other in sorted(node.pods, key=lambda each: (each.priority, each.key)):
            if gpu_request(other).cards:
                remaining, _ = self.cards.on(node, without=other.uid)
                if sum(amount >= request.milli for amount in remaining) >= request.cards:
                    yield deletion(other, node)
                    return

    def events_to_register(self) -> Sequence[Registration]:
        actions = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
        return [
            Registration(ClusterEvent(NODE, actions)),
            Registration(ASSIGNED_POD_DELETE, gives_gpus_back),
            Registration(ClusterEvent(UNSCHEDULED_POD, ActionType.UPDATE_OTHER), asks_for_other_gpus, per_pod=True),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return read_request(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW)


def gives_gpus_back(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    return QueueingHint.QUEUE if gpu_request(old).cards else QueueingHint.SKIP


def asks_for_other_gpus(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    changed = new.uid == pod.uid and read_request(old) != read_request(new)
    return QueueingHint.QUEUE if changed else QueueingHint.SKIP
