"""What every plugin of a profile says of every node for one pod.

The scheduler stops at the first plugin that refuses a node. Here each is asked about all nodes, so that a
node shows everything that is in the way; the FailedScheduling message is the scheduler's all the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod
from moorage.framework.explaining import Detail, ExplainingPlugin
from moorage.framework.nodes import BoolArray, IntArray, Nodes, NodeView
from moorage.framework.points import Plugin
from moorage.framework.status import SUCCESS, Code, PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.attempt import Attempt
from moorage.runtime.filtering import filter_rows
from moorage.runtime.pre_filtering import outside, run_post_filter, run_pre_filter
from moorage.runtime.profile import Profile
from moorage.runtime.score_board import ScoreBoard
from moorage.runtime.scoring import Scoring, run_pre_score, run_scores
from moorage.scheduler.choosing import EMPTY_CLUSTER, NodeChooser
from moorage.scheduler.engine import Engine
from moorage.scheduler.failing import fit_error
from moorage.scheduler.queue_hooks import run_pre_enqueue


@dataclass(frozen=True, slots=True)
class PluginVerdict:
    """What one plugin says of all nodes, as if it were alone."""

    plugin: Plugin
    statuses: NodeStatuses
    for_all: Status = SUCCESS
    """Its refusal of the pod as a whole, by PreFilter."""
    error: str = ""
    """Why it could not be asked."""

    @property
    def rows(self) -> BoolArray:
        """Row → refused."""
        refused: BoolArray = self.statuses.ids > 0
        return refused


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer about one pod."""

    attempt: Attempt
    """The scheduler's own search, with nothing remembered."""
    status: Status
    message: str
    """As the FailedScheduling event has it; empty where a node is feasible."""
    held_back: Status | None
    """PreEnqueue's refusal: such a pod is not tried at all."""
    verdicts: tuple[PluginVerdict, ...]
    """Of the plugins that refuse a node, in the order of the profile."""
    preemption: PostFilterResult | None = None
    preemption_message: str = ""

    @property
    def pod(self) -> Pod:
        return self.attempt.pod

    @property
    def nodes(self) -> Nodes:
        return self.attempt.nodes

    @property
    def feasible(self) -> int:
        return self.attempt.feasible

    def refusals_per_row(self) -> IntArray:
        """Row → how many plugins refuse it."""
        width = self.nodes.columns.width
        return sum((verdict.rows.astype(np.int64) for verdict in self.verdicts), np.zeros(width, np.int64))

    def refusing(self, node: NodeView) -> Iterator[tuple[PluginVerdict, Status]]:
        """Everything that is in the way on one node."""
        for verdict in self.verdicts:
            found = int(verdict.statuses.ids[node.row])
            if found:
                yield verdict, verdict.statuses.verdicts[found]

    def details(self, verdict: PluginVerdict, node: NodeView) -> Sequence[Detail]:
        """What the plugin knows beyond its reason. What it raises becomes a detail."""
        if not isinstance(verdict.plugin, ExplainingPlugin):
            return ()
        try:
            return tuple(verdict.plugin.explain(self.attempt.state, self.pod, node))
        except Exception as error:
            return (Detail(f"no details: {type(error).__name__}: {error}"),)


class Judge:
    """Asks one profile of an engine that nothing else uses."""

    def __init__(self, engine: Engine, profile: Profile) -> None:
        self.engine = engine
        self.profile = profile

    @property
    def nodes(self) -> Nodes:
        return self.engine.services.nodes()

    async def find(self, pod: Pod) -> Attempt:
        """The scheduler's search alone: which nodes are feasible, and which is the best."""
        return (await self._choose(pod))[0]

    async def _choose(self, pod: Pod) -> tuple[Attempt, Status]:
        attempt = Attempt(QueuedPod(pod, 0.0), self.profile, self.nodes)
        status = await NodeChooser().choose(attempt)
        if status.code is Code.ERROR:
            attempt.feasible = 0
        return attempt, status

    async def ask(self, pod: Pod) -> Judgement:
        """Everything, preemption included."""
        attempt, status = await self._choose(pod)
        held_back = run_pre_enqueue(self.profile, pod)
        if status is EMPTY_CLUSTER or status.code is Code.ERROR:
            return Judgement(attempt, status, status.message, held_back, ())
        verdicts, state = self._by_plugin(pod)
        if attempt.feasible:
            return Judgement(attempt, status, "", held_back, verdicts)
        result, after = await self.preempt(attempt)
        # The details are asked of a state in which every PreFilter has run, also behind one that refuses.
        attempt.state = state
        message = fit_error(
            len(attempt.nodes),
            pre_filter=attempt.pre_filter_message,
            reasons=attempt.statuses.histogram(),
            post_filter=after,
        )
        return Judgement(attempt, status, message, held_back, verdicts, result, after)

    async def preempt(self, attempt: Attempt) -> tuple[PostFilterResult | None, str]:
        """What PostFilter would do, and what it says where it can do nothing."""
        if not self.profile.post_filter:
            return None, ""
        result, status = await run_post_filter(self.profile, attempt.state, attempt.pod, attempt.statuses)
        await self.engine.tasks.stop()  # victims are not deleted here
        return result, "" if status.is_success else status.message

    def _by_plugin(self, pod: Pod) -> tuple[tuple[PluginVerdict, ...], CycleState]:
        nodes, state = self.nodes, CycleState()
        verdicts: dict[str, PluginVerdict] = {}
        every = nodes.columns.every_row()
        for plugin in self.profile.pre_filter:
            pre = run_pre_filter(self.profile, state, pod, nodes, [plugin])
            statuses = NodeStatuses(nodes)
            if not pre.status.is_success:
                statuses.set_where(every.alive, pre.status)
                verdicts[plugin.name] = PluginVerdict(plugin, statuses, for_all=pre.status)
            elif pre.node_names is not None:
                statuses.set_where(every.alive & ~every.nodes.named(*pre.node_names), outside((plugin.name,)))
                verdicts[plugin.name] = PluginVerdict(plugin, statuses)
        for judging in self.profile.filter:
            before = verdicts.get(judging.name)
            if before is not None and before.for_all is not SUCCESS:
                continue  # its Filter relies on what its PreFilter would have prepared
            statuses = before.statuses if before is not None else NodeStatuses(nodes)
            ok = every.alive & ~(statuses.ids[: len(every.alive)] > 0)
            status = filter_rows([judging], state, pod, every, statuses, ok)
            if len(statuses) or not status.is_success:
                error = "" if status.is_success else status.message
                verdicts[judging.name] = PluginVerdict(judging, statuses, error=error)
        return tuple(verdicts.values()), state

    def scores(self, attempt: Attempt) -> ScoreBoard | None:
        """All scores of the feasible nodes, also where the scheduler asks no plugin: a single feasible node
        is taken without them. None where no node is feasible."""
        if attempt.board is not None or not attempt.feasible:
            return attempt.board
        feasible = attempt.every.dense(attempt.ok)
        status = run_pre_score(self.profile.pre_score, attempt.state, attempt.pod, lambda: feasible)
        if not status.is_success:
            return None
        scoring = Scoring(attempt.state, attempt.pod, attempt.every, attempt.ok)
        board, status = run_scores(self.profile, scoring)
        return board if status.is_success else None


def unassigned(pod: Pod) -> Pod:
    """The pod as it was before it got a node."""
    status = replace(pod.status, nominated_node_name="", phase="Pending", start_time=None)
    return replace(pod, spec=replace(pod.spec, node_name=""), status=status)
