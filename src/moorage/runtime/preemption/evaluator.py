"""The steps of preemption, from a pod that fits nowhere to a nominated node. Follows Evaluator.Preempt in
pkg/scheduler/framework/preemption/preemption.go, including the extenders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.api.resources import POD_DISRUPTION_BUDGETS, PODS
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes
from moorage.framework.ports import Extender, ExtenderError, Victims
from moorage.framework.preemption import Candidate, Candidates, PreemptionPolicy
from moorage.framework.status import Code, PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.preemption.budgets import ClusterBudgets
from moorage.runtime.preemption.executor import Evictor
from moorage.runtime.preemption.search import CandidateSearch, Found, RemoveVictims
from moorage.telemetry import logs

_log = logs.get(__name__)

Answer = tuple[PostFilterResult | None, Status | None]


class PreemptionEvaluator:
    """Implements `framework.preemption.Preemption` for one plugin of one profile."""

    def __init__(
        self, plugin: str, handle: Handle, policy: PreemptionPolicy, dry_run: Callable[[], RemoveVictims]
    ) -> None:
        """`dry_run` starts a session, and returns its way to judge nodes without their victims."""
        self._handle = handle
        self._dry_run = dry_run
        self._policy = policy
        self._evictor = Evictor(plugin, handle)
        self._budgets = ClusterBudgets((), handle.behaviour)
        self.is_running = self._evictor.is_running

    async def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> Answer:
        """See `framework.preemption.Preemption`."""
        result, status = await self.preempt(state, pod, statuses)
        if not status.message:
            return result, status
        return result, Status(status.code, (f"preemption: {status.message}",), cause=status.cause)

    async def preempt(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """See `framework.preemption.Preemption`."""
        pod = self._newest(pod)
        reason = self._policy.ineligible(pod, statuses)
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
        """Return the pod as the informer has it now."""
        current = self._handle.lister(PODS).get(pod.name, pod.namespace)
        return current if isinstance(current, Pod) and current.uid == pod.uid else pod

    def _search(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> Found:
        """Search the nodes on which removing pods may help, starting at a random one, until there are enough
        candidates."""
        rows = statuses.rows_with(Code.UNSCHEDULABLE)
        wanted = self._policy.number_of_candidates(len(rows))
        if not len(rows):
            return Found(0)
        if wanted < len(rows):
            rows = np.roll(rows, -self._handle.random.randrange(len(rows)))
        search = CandidateSearch(self._dry_run(), pod, state, self.budgets())
        nodes = Nodes(statuses.nodes.columns, rows)
        return search.run(
            nodes,
            wanted,
            lambda block: self._policy.victims_on(pod, block),
            lambda names: self._policy.without_victims(pod, names),
        )

    def budgets(self) -> ClusterBudgets:
        """Return the current budgets. It is one object until a budget changes, so that its caches stay valid."""
        listed = tuple(self._handle.lister(POD_DISRUPTION_BUDGETS).list())
        known = self._budgets.all
        if len(listed) != len(known) or any(a is not b for a, b in zip(listed, known, strict=True)):
            self._budgets = ClusterBudgets(listed, self._handle.behaviour)
        return self._budgets

    def evict(self, pod: Pod, *candidates: Candidate, siblings: Sequence[Pod] = ()) -> None:
        """See `framework.preemption.Preemption`."""
        self._evictor.start(pod, *candidates, siblings=siblings)

    async def nominate(self, nominations: Iterable[tuple[Pod, str]]) -> None:
        """See `framework.preemption.Preemption`."""
        await self._evictor.nominate(nominations)

    async def _take_best(self, pod: Pod, candidates: Candidates) -> tuple[PostFilterResult | None, Status]:
        try:
            candidates = await narrowed(self._handle.extenders, pod, candidates)
        except ExtenderError as error:
            return None, Status.error(str(error), cause=error)
        if not candidates:
            return None, Status.unschedulable("no candidate node for preemption")
        best = self._policy.choose(pod, candidates)
        _log.info(2, "The target node for the preemption is determined", node=best.node_name, pod=pod.key)
        self.evict(pod, best)
        return PostFilterResult(best.node_name, tuple(best.victims), candidates), self._success(best)

    def _success(self, best: Candidate) -> Status:
        if not self._handle.behaviour.reports_preemption:
            return Status.success()
        text = f"found a potential placement for pod on node {best.node_name}, preempting {len(best.victims)} victims"
        return Status(Code.SUCCESS, (text,))


def _joined(errors: list[str]) -> str:
    """Join several errors in one line, each text once."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


async def narrowed(extenders: Sequence[Extender], pod: Pod, candidates: Candidates) -> Candidates:
    """Return the candidates that all interested extenders keep, one after the other. Raises the ExtenderError
    of an extender that is not ignorable."""
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
        raise ExtenderError(f'extender {extender.name!r} claims a node "{unknown[0]}" that was not in the request')
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
