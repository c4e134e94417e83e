"""Queueing hints (KEP-4247): decides whether an event may make an unschedulable pod schedulable.

This module matches events with the registrations of the plugins that rejected a pod, calls each hint once per
pod signature, and turns the answers into a decision. It corresponds to isPodWorthRequeuing in
pkg/scheduler/backend/queue/scheduling_queue.go. `scheduling_queue` chooses the pods and moves them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from moorage.api.failures import is_interruption
from moorage.api.pod import Pod
from moorage.api.problems import without_addresses
from moorage.framework.events import ClusterEvent, QueuedPod, QueueingHint, Registration
from moorage.framework.ports import Clock
from moorage.framework.status import Status
from moorage.queue.inflight import ReceivedEvent
from moorage.queue.unschedulable import GroupKey, RejectedGroup, UnschedulablePods, key_of
from moorage.telemetry import logs

log = logs.get(__name__)

Registrations = Mapping[str, Sequence[Registration]]
MatchingRegistrations = Mapping[str, Sequence[Registration]]
"""Plugin → its registrations that match one event. Plugins without a matching registration are left out."""
OnHint = Callable[[str, str, str, float], None]
"""`on_hint(plugin, event label, "Queue" | "QueueSkip" | "Error", seconds)`, called for metrics."""

HINT_ERROR = "Error"


class QueueHooks(Protocol):
    """The queue's access to the plugins of a pod's profile."""

    def pre_enqueue(self, pod: Pod, first: str = "") -> Status | None:
        """Return the rejection of a PreEnqueue plugin, with `plugin` set, or None.

        `first` names the plugin that gated the pod last time. It is called before the others.
        """
        ...

    def registrations(self, pod: Pod) -> Registrations:
        """Return the events that each plugin registered, including defaults, in the order of the configuration."""
        ...

    def signature(self, pod: Pod) -> Hashable:
        """Return the signature of a pod. Pods with equal signatures share hint results; None is never shared."""
        ...


class QueueingStrategy(enum.IntEnum):
    """How to requeue a pod after an event. If several hints answer, the larger value wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2
    """A plugin that had returned Pending is satisfied. The pod skips backoff, because it was not rejected."""


class QueueingDecision(NamedTuple):
    """A strategy and the plugin whose hint led to it."""

    strategy: QueueingStrategy
    plugin: str = ""


SKIP = QueueingDecision(QueueingStrategy.SKIP)
WANTED = QueueingDecision(QueueingStrategy.AFTER_BACKOFF)
"""The decision for events for which no hint is called, such as wildcard events and errors."""


class HintEvaluator:
    """Finds the registrations that match an event and calls their hints."""

    def __init__(self, hooks: QueueHooks, clock: Clock, on_hint: OnHint | None = None) -> None:
        self._hooks = hooks
        self._clock = clock
        self._on_hint = on_hint
        self._complained: set[tuple[str, str]] = set()
        """Plugins and events whose wrong hint results have been logged."""
        self._known: dict[str, tuple[Registrations, dict[ClusterEvent, MatchingRegistrations]]] = {}

    def matching(self, pod: Pod, event: ClusterEvent) -> MatchingRegistrations:
        """Return the registrations of the pod's profile that match an event.

        The result is cached until a reload replaces the registrations.
        """
        registrations = self._hooks.registrations(pod)
        known = self._known.get(pod.scheduler_name)
        if known is None or known[0] is not registrations:
            known = self._known[pod.scheduler_name] = (registrations, {})
        found = known[1].get(event)
        if found is None:
            found = known[1][event] = _matching(registrations, event)
        return found

    def ask(self, plugin: str, registration: Registration, pod: Pod, about: ReceivedEvent) -> bool:
        """Return whether the hint answers Queue. A registration without a hint always does."""
        if registration.hint is None:
            return True
        start = self._clock.now() if self._on_hint else 0.0
        try:
            answer: object = registration.hint(pod, about.old, about.new)
        except BaseException as error:
            if is_interruption(error):
                raise
            log.error("Queueing hint failed", error, stack=True, plugin=plugin, event=about.event.label, pod=pod)
            answer = None
        else:
            if not isinstance(answer, QueueingHint):
                self._complain(plugin, about.event.label, answer)
        if self._on_hint:
            label = answer.value if isinstance(answer, QueueingHint) else HINT_ERROR
            self._on_hint(plugin, about.event.label, label, self._clock.now() - start)
        # Only a clear Skip leaves the pod in place. A broken hint costs an attempt but never strands a pod.
        return answer is not QueueingHint.SKIP

    def _complain(self, plugin: str, event: str, answer: object) -> None:
        """Log a wrong hint result once per plugin and event, because the hint repeats it with every such event."""
        if (plugin, event) not in self._complained:
            self._complained.add((plugin, event))
            log.error(
                "Queueing hint must return QueueingHint.QUEUE or QueueingHint.SKIP; requeueing the pod",
                plugin=plugin,
                event=event,
                got=without_addresses(repr(answer)),
            )

    def helped(
        self, about: ReceivedEvent, unschedulable: UnschedulablePods
    ) -> Iterator[tuple[QueuedPod, QueueingDecision]]:
        """Yield the unschedulable and gated pods that an event may make schedulable."""
        if about.event.is_wildcard:
            yield from ((info, WANTED) for info in unschedulable if about.concerns(info.pod))
            return
        inquiry = Inquiry(self, about)
        for profile, info in unschedulable.profiles():
            for group in unschedulable.listening(profile, self.matching(info.pod, about.event)):
                yield from inquiry.about_group(group)


class Inquiry:
    """All hint calls for one event. Results are cached per signature, plugin and registration."""

    def __init__(self, hints: HintEvaluator, about: ReceivedEvent) -> None:
        self._hints = hints
        self._about = about
        self._answers: dict[tuple[Hashable, ...], bool] = {}
        self._splits: dict[tuple[Hashable, ...], tuple[list[_Question], list[_Question]]] = {}

    def about_group(self, group: RejectedGroup) -> Iterator[tuple[QueuedPod, QueueingDecision]]:
        """Yield the pods of a group that the event concerns and may make schedulable."""
        first = next((info for info in group.pods.values() if self._about.concerns(info.pod)), None)
        if first is None:
            return
        shared, single = self._split(group.key, first.pod)
        common = self._judge(group.key, first.pod, shared)
        if common.strategy is QueueingStrategy.SKIP and not single:
            return
        for info in group.pods.values():
            if self._about.concerns(info.pod):
                verdict = self._complete(group.key, info.pod, common, single)
                if verdict.strategy is not QueueingStrategy.SKIP:
                    yield info, verdict

    def about_pod(self, info: QueuedPod) -> QueueingDecision:
        """Decide about one pod, for a change of the pod itself or an event that it missed while in flight."""
        if not self._about.concerns(info.pod):
            return SKIP
        if self._about.event.is_wildcard:
            return WANTED
        key = key_of(info)
        shared, single = self._split(key, info.pod)
        return self._complete(key, info.pod, self._judge(key, info.pod, shared), single)

    def _split(self, key: GroupKey, pod: Pod) -> tuple[list[_Question], list[_Question]]:
        """Return the hints to call once for the whole group, and those to call for each pod."""
        refused_by = (key.profile, key.unschedulable, key.gating)
        if refused_by not in self._splits:
            questions = self._questions(key, self._hints.matching(pod, self._about.event))
            shared = [question for question in questions if not question.registration.per_pod]
            single = [question for question in questions if question.registration.per_pod]
            self._splits[refused_by] = shared, single
        return self._splits[refused_by]

    def _questions(self, key: GroupKey, matching: MatchingRegistrations) -> list[_Question]:
        if key.gating and key.gating not in matching:
            return []
        return [
            _Question(plugin, number, registration)
            for plugin, registrations in matching.items()
            if plugin in key.rejectors
            for number, registration in enumerate(registrations)
        ]

    def _judge(self, key: GroupKey, pod: Pod, questions: Sequence[_Question]) -> QueueingDecision:
        best = SKIP
        for question in questions:
            if not self._answer(key, pod, question):
                continue
            at_once = question.plugin in key.pending
            found = QueueingDecision(
                QueueingStrategy.IMMEDIATELY if at_once else QueueingStrategy.AFTER_BACKOFF, question.plugin
            )
            if found.strategy > best.strategy:
                best = found
            if _is_final(key, best):
                break
        return best

    def _complete(
        self, key: GroupKey, pod: Pod, common: QueueingDecision, single: Sequence[_Question]
    ) -> QueueingDecision:
        """Combine the shared decision with the hints that must be called for this pod."""
        if not single or _is_final(key, common):
            return common
        own = self._judge(key, pod, single)
        return own if own.strategy > common.strategy else common

    def _answer(self, key: GroupKey, pod: Pod, question: _Question) -> bool:
        plugin, number, registration = question
        if registration.per_pod or registration.hint is None:
            return self._hints.ask(plugin, registration, pod, self._about)
        asked = (key.profile, key.signature, plugin, number)
        if asked not in self._answers:
            self._answers[asked] = self._hints.ask(plugin, registration, pod, self._about)
        return self._answers[asked]


class _Question(NamedTuple):
    """A hint to call: the plugin and its registration."""

    plugin: str
    number: int
    registration: Registration


def _matching(registrations: Registrations, event: ClusterEvent) -> MatchingRegistrations:
    found = {
        plugin: tuple(entry for entry in entries if entry.event.matches(event))
        for plugin, entries in registrations.items()
    }
    return {plugin: entries for plugin, entries in found.items() if entries}


def _is_final(key: GroupKey, verdict: QueueingDecision) -> bool:
    """Return whether no other hint can change the decision. After a Queue, only plugins that returned Pending
    matter."""
    return verdict.strategy is QueueingStrategy.IMMEDIATELY or (
        verdict.strategy is not QueueingStrategy.SKIP and not key.pending
    )
