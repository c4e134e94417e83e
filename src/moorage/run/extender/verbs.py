"""ExtenderVerbs: the questions of kube-scheduler answered by the plugins of a profile. No HTTP.

Every verb but bind is one plain call on the loop of the engine, begun by taking in what the informers have
delivered, so the cluster does not change while it runs. The engine has to follow the cluster without
scheduling: see `Scheduler.follow`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moorage.api.errors import OutcomeUnknown
from moorage.api.pod import Pod
from moorage.api.resources import PODS, Resource
from moorage.extender.server_wire import Filtered
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import BoolArray
from moorage.framework.ports import Clock
from moorage.framework.status import MAX_NODE_SCORE, SUCCESS, Code, Status
from moorage.runtime import questions
from moorage.runtime.attempt import Attempt
from moorage.runtime.binding import run_bind
from moorage.runtime.dry_run import Session
from moorage.runtime.pre_filtering import PreFiltered
from moorage.runtime.profile import Profile
from moorage.scheduler.assembly import needed_resources
from moorage.scheduler.engine import Engine
from moorage.scheduler.extending import MAX_EXTENDER_SCORE
from moorage.scheduler.handlers import Handlers
from moorage.scheduler.sampling import beside_nominated

UNKNOWN_NODE = "the extender does not know this node yet"


@dataclass(frozen=True, slots=True)
class _Begun:
    """An attempt whose PreFilter plugins have run, and the cluster that they saw."""

    attempt: Attempt
    pre: PreFiltered
    version: tuple[int, ...]


class ExtenderVerbs:
    """Answers from the only profile of an engine. Of the values that verbs return, the answer means something
    only where the status is Success; any other status is an Error."""

    def __init__(self, engine: Engine, verbs: Collection[str]) -> None:
        self.served = tuple(verbs)
        """The verbs to offer."""
        self._engine = engine
        self._begun: _Begun | None = None
        self._known: Profile | None = None
        self._kinds: Sequence[Resource] = ()
        """The kinds that the plugins of the profile `_known` read."""
        # Pods that kube-scheduler binds are no other scheduler's here, so nothing is to be reported of them.
        serves = engine.profiles.__contains__
        engine.handlers = Handlers(
            engine.stores, engine.cache, engine.services.waiting, lambda pod: serves(pod.scheduler_name)
        )

    @property
    def clock(self) -> Clock:
        return self._engine.clock

    @property
    def _profile(self) -> Profile:
        """The only profile; a reload replaces it."""
        (profile,) = self._engine.profiles.values()
        return profile

    def start_plugins(self) -> None:
        """Start the background work of the plugins."""
        self._engine.run_plugins()

    # The verbs.

    def filter(self, pod: Pod, names: Sequence[str]) -> tuple[Filtered, Status]:
        """PreFilter, then Filter on the named nodes. A refusal of the pod as a whole is one of each node."""
        self._engine.drain()
        begun = self._begun = self._begin(pod)
        attempt, pre = begun.attempt, begun.pre
        if pre.status.code is Code.ERROR:
            return Filtered(), pre.status
        rows = self._rows(attempt, names)
        attempt.ok &= _mask(attempt, rows)
        questions.narrow(attempt, pre)
        status = SUCCESS
        if pre.status.is_success:
            status = beside_nominated(attempt, attempt.every.nodes, attempt.ok)
        if pre.status.is_success and status.is_success:
            status = questions.filter_attempt(attempt)
        return _filtered(attempt, names, rows), status

    def prioritize(self, pod: Pod, names: Sequence[str]) -> tuple[list[int], Status]:
        """A score from 0 to 10 for each of the named nodes: the weighted mean of what plugins give. An
        unknown node has 0."""
        begun, self._begun = self._begin_or_go_on(pod), None
        attempt = begun.attempt
        if begun.pre.status.code is Code.ERROR:
            return [], begun.pre.status
        rows = self._rows(attempt, names)
        named = _mask(attempt, rows)
        if not named.any():
            return [0] * len(names), SUCCESS
        board, status = questions.score_rows(attempt, named)
        if board is None:
            return [], status
        most = MAX_NODE_SCORE * sum(step.weight for step in self._profile.score_steps)
        scaled = (board.totals * (2 * MAX_EXTENDER_SCORE) + most) // (2 * most)  # rounded half up
        listed = scaled.tolist()
        return [listed[row] if row >= 0 else 0 for row in rows], status

    def preempt(self, pod: Pod, victims: Mapping[str, Iterable[str]]) -> tuple[list[str], Status]:
        """Which of the nodes pass the Filter plugins without the victims, which are given by UID. Nodes with
        a victim that is not known there do not."""
        begun = self._begin_or_go_on(pod)
        attempt, pre = begun.attempt, begun.pre
        if pre.status.code is Code.ERROR:
            return [], pre.status
        known: dict[str, list[Pod]] = {}
        for name, uids in victims.items():
            if pre.status.is_success and (pre.node_names is None or name in pre.node_names):
                pods = self._victims(attempt, name, uids)
                if pods is not None:
                    known[name] = pods
        if not known:
            return [], SUCCESS
        trial = Session(self._profile).remove_victims(pod, attempt.state, known)
        passed = [trial.names[number] for number in trial.fitting.tolist()]
        broken = [status for status, _ in trial.statuses.count_by_verdict() if status.code is Code.ERROR]
        return passed, broken[0] if broken and not passed else SUCCESS

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> Status:
        """The Bind plugins, with a cycle state of their own: what other points wrote is not there."""
        self._engine.drain()
        pod = self._engine.stores[PODS].get(name, namespace)
        if pod is None or pod.uid != uid:
            return Status.error(f'pod "{namespace}/{name}" with UID "{uid}" is not known to the extender yet')
        try:
            return await run_bind(self._profile, CycleState(), pod, node)
        except OutcomeUnknown as error:
            return Status.error(f"the pod may be bound or not: {error}", cause=error)

    # What they have in common.

    def _begin_or_go_on(self, pod: Pod) -> _Begun:
        """The attempt of the last filter, if it was for this pod and nothing has changed; else a new one."""
        self._engine.drain()
        begun, profile = self._begun, self._profile
        if begun is None or begun.attempt.pod is not pod or begun.attempt.profile is not profile:
            return self._begin(pod)
        return begun if begun.version == self._version(profile) else self._begin(pod)

    def _begin(self, pod: Pod) -> _Begun:
        profile = self._profile
        attempt, pre = questions.begin(profile, pod, self._engine.services.nodes())
        return _Begun(attempt, pre, self._version(profile))

    def _version(self, profile: Profile) -> tuple[int, ...]:
        """Grows with every change of what plugins see of the cluster."""
        if profile is not self._known:
            self._known = profile
            self._kinds = needed_resources(map(type, profile.plugins.values()))
        return tuple(self._engine.stores[kind].version for kind in self._kinds)

    @staticmethod
    def _rows(attempt: Attempt, names: Iterable[str]) -> list[int]:
        """The row of each node, -1 where there is none."""
        row_of = attempt.nodes.columns.row_of
        return [row_of(name) for name in names]

    def _victims(self, attempt: Attempt, node: str, uids: Iterable[str]) -> list[Pod] | None:
        """The pods with these UIDs, each once; None if one of them is not on the node."""
        if attempt.nodes.columns.row_of(node) < 0:
            return None
        cached = [self._engine.cache.get(uid) for uid in dict.fromkeys(uids)]
        pods = [entry.pod for entry in cached if entry is not None and entry.pod.spec.node_name == node]
        return pods if len(pods) == len(cached) else None


def _mask(attempt: Attempt, rows: Iterable[int]) -> BoolArray:
    mask = np.zeros(len(attempt.every.alive), dtype=np.bool_)
    mask[[row for row in rows if row >= 0]] = True
    return mask


def _filtered(attempt: Attempt, names: Iterable[str], rows: Iterable[int]) -> Filtered:
    """The named nodes by their verdicts."""
    found = Filtered()
    ok, ids = attempt.ok.tobytes(), attempt.statuses.ids
    verdicts = attempt.statuses.verdicts  # nodes share them, so each is put into words once
    final = [status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in verdicts]
    texts = [text_of(status) for status in verdicts]
    for name, row in zip(names, rows, strict=True):
        if row < 0:
            found.failed[name] = UNKNOWN_NODE
        elif ok[row]:
            found.passed.append(name)
        else:
            number = ids[row]
            (found.unresolvable if final[number] else found.failed)[name] = texts[number]
    return found


def text_of(status: Status) -> str:
    """`Plugin: reasons`."""
    return f"{status.plugin}: {status.message}" if status.plugin else status.message
