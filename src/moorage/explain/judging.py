"""Ask one profile about one pod: its verdict on every node, plugin by plugin, and the scheduler's message.

The scheduler stops at the first plugin that refuses a node. Here every plugin is asked about all nodes, so
that a node shows everything that keeps the pod off it. The FailedScheduling message stays the scheduler's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from msgspec.structs import replace

from moorage.api.errors import MoorageError
from moorage.api.failures import failure_text, is_interruption
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.app.offline import AnyEngine, QuestionEngine, load
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod
from moorage.framework.nodes import IntArray, Nodes, NodeView
from moorage.framework.optional import Detail, ExplainingPlugin
from moorage.framework.ports import Change, ExtenderError
from moorage.framework.status import Code, PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime import questions
from moorage.runtime.attempt import Attempt
from moorage.runtime.pre_filtering import run_post_filter
from moorage.runtime.profile import Profile
from moorage.runtime.questions import PluginVerdict
from moorage.runtime.score_board import ScoreBoard
from moorage.scheduler.choosing import EMPTY_CLUSTER, NodeChooser
from moorage.scheduler.extending import refusals_of
from moorage.scheduler.failing import fit_error
from moorage.scheduler.queue_hooks import run_pre_enqueue

MAX_DETAILS = 64
"""Details of one refusal that are considered: a tenant may write thousands of labels into a selector, and there are
thousands of nodes."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of one profile about one pod."""

    attempt: Attempt
    """The scheduler's own search, started from nothing."""
    status: Status
    message: str
    """The text of the FailedScheduling event; empty if a node is feasible."""
    held_back: Status | None
    """The refusal of PreEnqueue. The scheduler does not try such a pod at all."""
    verdicts: tuple[PluginVerdict, ...]
    """Of the plugins that refuse a node or failed, in the order of the profile."""
    preemption: PostFilterResult | None = None

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
        """Row → number of plugins that refuse it."""
        width = self.nodes.columns.width
        return sum((verdict.rows.astype(np.int64) for verdict in self.verdicts), np.zeros(width, np.int64))

    def refusing(self, node: NodeView) -> Iterator[tuple[PluginVerdict, Status]]:
        """Return every plugin that refuses one node, with its status."""
        for verdict in self.verdicts:
            number = int(verdict.statuses.ids[node.row])
            if number:
                yield verdict, verdict.statuses.verdicts[number]

    def details(self, verdict: PluginVerdict, node: NodeView) -> Sequence[Detail]:
        """Return the figures behind a refusal. An exception of the plugin becomes a detail."""
        if not isinstance(verdict.plugin, ExplainingPlugin):
            return ()
        try:
            return tuple(islice(verdict.plugin.explain(self.attempt.state, self.pod, node), MAX_DETAILS))
        except BaseException as error:
            if is_interruption(error):
                raise
            return (Detail(f"no details: {failure_text(error)}"),)


class Judge:
    """One profile of an engine that nothing else uses."""

    def __init__(self, engine: AnyEngine, profile: Profile) -> None:
        self.engine = engine
        self.profile = profile

    @classmethod
    def of(cls, engine: AnyEngine, pod: Pod, profile: str = "") -> Judge:
        """Choose a profile: the named one, the one that the pod asks for, or else the first."""
        profiles = engine.profiles
        name = profile or (pod.scheduler_name if pod.scheduler_name in profiles else next(iter(profiles)))
        if name not in profiles:
            raise MoorageError(f"profile {name!r} does not exist; the profiles are {', '.join(profiles)}")
        return cls(engine, profiles[name])

    @property
    def nodes(self) -> Nodes:
        return self.engine.services.nodes()

    async def find(self, pod: Pod) -> Attempt:
        """Run the scheduler's search alone: which nodes are feasible, and which is the best."""
        return (await self.choose(pod))[0]

    async def choose(self, pod: Pod) -> tuple[Attempt, Status]:
        attempt = Attempt(QueuedPod(pod, 0.0), self.profile, self.nodes)
        status = await NodeChooser().choose(attempt)
        if status.code is Code.ERROR:
            attempt.feasible = 0
        return attempt, status

    async def ask(self, pod: Pod) -> Judgement:
        """Ask everything, including what preemption would do."""
        attempt, status = await self.choose(pod)
        held_back = run_pre_enqueue(self.profile, pod)
        if status is EMPTY_CLUSTER or status.code is Code.ERROR:
            return Judgement(attempt, status, status.message, held_back, ())
        state = CycleState()
        each = [*questions.ask_each(self.profile, state, pod, self.nodes), *await self._extender_verdicts(pod)]
        verdicts = tuple(verdict for verdict in each if verdict.refuses)
        if attempt.feasible:
            return Judgement(attempt, status, "", held_back, verdicts)
        result, message = await self.fail(attempt, status)
        # Details are asked of a state in which every PreFilter has run, also after one that refuses.
        attempt.state = state
        return Judgement(attempt, status, message, held_back, verdicts, result)

    async def fail(self, attempt: Attempt, status: Status) -> tuple[PostFilterResult | None, str]:
        """Return what preemption does for a pod without a feasible node, and the message of its FailedScheduling
        event."""
        if status is EMPTY_CLUSTER:
            return None, status.message
        result, after = await self.preempt(attempt)
        message = fit_error(
            len(attempt.nodes),
            pre_filter=attempt.pre_filter_message,
            reasons=attempt.statuses.histogram(),
            post_filter=after.message,
        )
        return result, message

    async def _extender_verdicts(self, pod: Pod) -> list[PluginVerdict]:
        """Ask every filtering extender about all nodes, as the plugins are."""
        found = []
        for extender in self.engine.services.extenders:
            if extender.filters and extender.is_interested(pod):
                statuses, error = NodeStatuses(self.nodes), ""
                try:
                    for status, rows in refusals_of(self.nodes, await extender.filter(pod, self.nodes)):
                        statuses.set_rows(np.array(rows), status)
                except ExtenderError as problem:
                    error = str(problem)
                found.append(PluginVerdict(extender, statuses, error=error))
        return found

    async def preempt(self, attempt: Attempt) -> tuple[PostFilterResult | None, Status]:
        """Return what PostFilter would do. No victim is deleted and no nomination changes.

        Preemption reads the newest version of the pod from the store; a changed pod is there meanwhile."""
        engine, pod, nominator = self.engine, attempt.pod, self.engine.services.nominator
        stored = engine.stores.lister(PODS).get(pod.name, pod.namespace)
        is_changed = stored is not None and stored is not pod
        nominated = [(other, node) for node in nominator.nodes() for other in nominator.nominated_on(node)]
        if is_changed:
            load(engine, [Change(PODS, stored, pod)])
        answer = await run_post_filter(self.profile, attempt.state, pod, attempt.statuses)
        if isinstance(engine, QuestionEngine):
            await asyncio.sleep(0)  # its writes go nowhere; a task that has started cleans up when cancelled
        await engine.tasks.stop()
        if is_changed:
            load(engine, [Change(PODS, pod, stored)])
        for other, node in nominated:
            nominator.nominate(other, node)
        return answer

    def scores(self, attempt: Attempt) -> ScoreBoard | None:
        """Return the scores of the feasible nodes; None if there are none."""
        return questions.score_feasible(attempt)[0]


def find_pod(engine: AnyEngine, name: str, namespace: str) -> Pod:
    """Return a pod by name. The MoorageError for a missing one names pods of that name elsewhere."""
    pods = engine.stores.lister(PODS)
    pod: Pod | None = pods.get(name, namespace)
    if pod is not None:
        return pod
    elsewhere = [other.key for other in pods.list() if other.name == name][:3]
    hint = f"; found {' and '.join(elsewhere)}: select the namespace with -n" if elsewhere else ""
    raise MoorageError(f"pod {name!r} does not exist in namespace {namespace!r}{hint}")


def unassigned(pod: Pod) -> Pod:
    """Return the pod as it was before it got a node."""
    status = replace(pod.status, nominated_node_name="", phase="Pending", start_time=None)
    return replace(pod, spec=replace(pod.spec, node_name=""), status=status)
