"""The steps of preemption, from a pod that fits nowhere to a nominated node, extenders included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.api.resources import POD_DISRUPTION_BUDGETS, PODS
from moorage.framework.access import LISTED, Access
from moorage.framework.cycle_state import CycleState
from moorage.framework.extending import Extender, ExtenderError, Victims
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes
from moorage.framework.preemption.budgets import Budgets
from moorage.framework.preemption.candidates import Candidate, Candidates
from moorage.framework.preemption.executor import Executor
from moorage.framework.preemption.policy import PreemptionPolicy
from moorage.framework.preemption.search import CandidateSearch, Found
from moorage.framework.status import Code, PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses
from moorage.telemetry import logs

_log = logs.get(__name__)

NEEDS = (
    Access(PODS, ("get", "list", "watch", "delete")),
    Access(PODS, ("patch",), "status"),
    Access(POD_DISRUPTION_BUDGETS, LISTED),
)
"""What a plugin that preempts has to declare."""

Answer = tuple[PostFilterResult | None, Status | None]


class Preemption:
    """Preemption for one plugin of one profile. The plugin hands its PostFilter and PreEnqueue on to this."""

    def __init__(self, plugin: str, handle: Handle, policy: PreemptionPolicy) -> None:
        self._handle = handle
        self._policy = policy
        self._executor = Executor(plugin, handle)
        self._budgets = Budgets(())

    def is_running(self, pod: Pod) -> bool:
        """Whether victims of this pod are being sent away: it should not be tried before that is done."""
        return self._executor.is_preempting(pod.uid)

    async def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> Answer:
        """What PostFilter answers, all its messages with "preemption: " in front."""
        result, status = await self.preempt(state, pod, statuses)
        if status.is_success or not status.message:
            return result, status
        return result, Status(status.code, (f"preemption: {status.message}",), cause=status.cause)

    async def preempt(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """Find a node, and start to send its victims away. Success nominates it. Unschedulable with a result
        clears the nomination, without one leaves it alone."""
        pod = self._newest(pod)
        reason = self._policy.ineligible(pod, statuses, self._handle)
        if reason:
            return None, Status.unschedulable(reason)
        found = self._search(state, pod, statuses)
        candidates = found.candidates
        if not candidates:
            if found.errors:
                return None, Status.error(_joined(found.errors))
            message = found.message(len(statuses.nodes))
            return PostFilterResult(""), Status.unschedulable(message)
        return await self._take_best(pod, candidates)

    def _newest(self, pod: Pod) -> Pod:
        """The pod as the informer has it now."""
        current = self._handle.lister(PODS).get(pod.name, pod.namespace)
        return current if isinstance(current, Pod) and current.uid == pod.uid else pod

    def _search(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> Found:
        """All candidates among the nodes on which removing pods may help, or as many as are enough, from a
        random one on."""
        rows = statuses.rows_with(Code.UNSCHEDULABLE)
        wanted = self._policy.number_of_candidates(len(rows))
        if not len(rows):
            return Found(0)
        if wanted < len(rows):
            rows = np.roll(rows, -self._handle.random.randrange(len(rows)))
        search = CandidateSearch(self._handle.dry_run(), pod, state, self.budgets())
        nodes = Nodes(statuses.nodes.columns, rows)
        return search.run(
            nodes,
            wanted,
            lambda block: self._policy.victims_on(pod, block),
            lambda names: self._policy.without_victims(pod, names),
        )

    def budgets(self) -> Budgets:
        """Those of now. One object until a budget changes, so that what was found out about pods stays
        known."""
        listed = tuple(self._handle.lister(POD_DISRUPTION_BUDGETS).list())
        known = self._budgets.all
        if len(listed) != len(known) or any(a is not b for a, b in zip(listed, known, strict=True)):
            self._budgets = Budgets(listed)
        return self._budgets

    async def _take_best(self, pod: Pod, candidates: Candidates) -> tuple[PostFilterResult | None, Status]:
        try:
            candidates = await narrowed(self._handle.extenders, pod, candidates)
        except ExtenderError as error:
            return None, Status.error(str(error), cause=error)
        if not candidates:
            return None, Status.unschedulable("no candidate node for preemption")
        best = self._policy.choose(pod, candidates)
        _log.info(2, "The target node for the preemption is determined", node=best.node_name, pod=pod.key)
        self._executor.start(pod, best)
        return PostFilterResult(best.node_name, tuple(best.victims), candidates), Status.success()


def _joined(errors: list[str]) -> str:
    """Several errors in one line, each text once."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


async def narrowed(extenders: Sequence[Extender], pod: Pod, candidates: Candidates) -> Candidates:
    """The candidates that all interested extenders leave, one after the other. An ExtenderError of one that
    is not ignorable passes through."""
    for extender in extenders:
        if not candidates:
            break
        if not (extender.preempts and extender.is_interested(pod)):
            continue
        try:
            candidates = await _ask(extender, pod, candidates)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            extender.warn(error)
    return candidates


async def _ask(extender: Extender, pod: Pod, candidates: Candidates) -> Candidates:
    asked = {c.node_name: Victims(c.victims, c.pdb_violations) for c in candidates}
    answer = await extender.preempt(pod, asked)
    unknown = sorted(set(answer) - set(asked))
    if unknown:
        raise ExtenderError(
            f'extender {extender.name!r} claims a node "{unknown[0]}" that it was not asked about'
        )
    return Candidates.of(kept for c in candidates if (kept := _kept(extender, c, answer)) is not None)


def _kept(extender: Extender, candidate: Candidate, answer: Mapping[str, Victims]) -> Candidate | None:
    kept = answer.get(candidate.node_name)
    if kept is None:
        return None
    if not kept.pods:
        if extender.ignorable:
            _log.info(2, "Ignored node without victims", extender=extender.name, node=candidate.node_name)
            return None
        raise ExtenderError(f'expected at least one victim pod on node "{candidate.node_name}"')
    return Candidate(candidate.node_name, kept.pods, kept.pdb_violations, candidate.reprieved)
