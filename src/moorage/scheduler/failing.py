"""Failed attempts: their messages, and what happens to the pod afterwards.

The messages are exactly those of kube-scheduler (FitError in pkg/scheduler/framework/types.go).
FailureHandler follows handleSchedulingFailure in pkg/scheduler/schedule_one.go: it requeues the pod, emits an
event and updates the pod's status.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from moorage.api.errors import ApiError
from moorage.api.pod import Pod
from moorage.framework.events import QueuedPod
from moorage.framework.handle import Lister, Nominator
from moorage.framework.ports import EventRecorder
from moorage.framework.status import Code, Status
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.runtime import record
from moorage.scheduler.status_writer import SCHEDULER_ERROR, UNSCHEDULABLE, PodStatusWriter, StatusUpdate
from moorage.telemetry import logs

_log = logs.get(__name__)

NO_NODES = "no nodes available to schedule pods"


class AttemptOutcome(enum.Enum):
    """How an attempt ended. Decision records and metrics use the values as results."""

    SCHEDULED = record.SCHEDULED
    UNSCHEDULABLE = record.UNSCHEDULABLE
    ERROR = record.ERROR


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt or its binding ended without a bound pod."""

    outcome: AttemptOutcome
    message: str
    plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = None
    """The node to nominate the pod to. None keeps the current nomination, "" clears it."""
    status: Status | None = None
    """The status of the plugin that caused the failure, if there is a single one."""


def refusal(status: Status) -> Failure:
    """Return the failure for a status of Reserve or Permit.

    A rejection is reported as if the cluster had only the chosen node. An Error is reported unchanged.
    """
    if not status.is_rejected:
        return Failure(AttemptOutcome.ERROR, status.message, nominated_node="", status=status)
    by = frozenset({status.plugin} if status.plugin else ())
    pending = status.code is Code.PENDING
    return Failure(
        AttemptOutcome.UNSCHEDULABLE,
        refused_after_choice(status.reasons),
        frozenset() if pending else by,
        by if pending else frozenset(),
        nominated_node="",
        status=status,
    )


def histogram(counts: Counter[str]) -> str:
    """Return `1 reason a, 2 reason b`, sorted as strings, so "10 x" comes before "2 y"."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def fit_error(nodes: int, *, pre_filter: str = "", reasons: Counter[str] | None = None, post_filter: str = "") -> str:
    """Return the message of the FailedScheduling event."""
    text = f"0/{nodes} nodes are available:"
    if pre_filter:
        text += f" {pre_filter}."
    elif reasons:
        text += f" {histogram(reasons)}."
    return f"{text} {post_filter}" if post_filter else text


def refused_after_choice(reasons: Iterable[str]) -> str:
    """Return the message for a chosen node that Reserve or Permit rejected, as if it were the only node."""
    return fit_error(1, reasons=Counter(reasons))


MAX_RETRY_AFTER_SECONDS = 60.0
"""Upper bound for the Retry-After of the API server, in seconds."""


class FailureHandler:
    """Handles failed attempts, between cycles only. The order is that of kube-scheduler: requeue, nominator,
    event, status."""

    def __init__(
        self,
        queue: SchedulingQueue,
        pods: Lister,
        recorder: EventRecorder,
        writer: PodStatusWriter,
        serves: Callable[[Pod], bool],
    ) -> None:
        self._queue = queue
        self._nominator: Nominator = queue.nominator
        self._pods = pods
        self._recorder = recorder
        self._writer = writer
        self._serves = serves
        """Returns whether one of the profiles schedules the pod."""

    def handle(self, info: QueuedPod, profile: str, failure: Failure) -> None:
        """Requeue the pod with the reason for its failure, unless this scheduler no longer schedules it."""
        pod = info.pod
        _log_failure(pod, failure)
        current = self._pods.get(pod.name, pod.namespace)
        if not isinstance(current, Pod) or current.uid != pod.uid or current.is_assigned:
            _log.info(3, "Pod was deleted, replaced or assigned during the attempt; not requeueing it", pod=pod.key)
            self._queue.done(pod.uid)
            return
        if not self._serves(current):
            self._queue.delete(current)
            self._queue.done(pod.uid)
            self.leave(current)
            return
        info.pod = current
        rejected = failure.outcome is AttemptOutcome.UNSCHEDULABLE
        self._queue.requeue(
            info,
            unschedulable_plugins=failure.plugins if rejected else frozenset(),
            pending_plugins=failure.pending_plugins if rejected else frozenset(),
            retry_after=_retry_after(failure),
        )
        self._nominate(current, failure.nominated_node)
        self._recorder.event(
            current,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=failure.message,
            controller=profile,
        )
        reason = UNSCHEDULABLE if rejected else SCHEDULER_ERROR
        self._writer.submit(StatusUpdate(current, reason, failure.message, failure.nominated_node))

    def leave(self, pod: Pod) -> None:
        """Emit an event that tells users that no profile schedules the pod any more."""
        self._recorder.event(
            pod,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=f'profile "{pod.scheduler_name}" is no longer in the configuration of this scheduler; the '
            "pod waits until a scheduler of that name serves it",
            controller=pod.scheduler_name,
        )

    def _nominate(self, pod: Pod, node: str | None) -> None:
        if node:
            self._nominator.nominate(pod, node)
        elif node == "":
            self._nominator.forget(pod.uid)


def _retry_after(failure: Failure) -> float:
    """Return the Retry-After of the API server in seconds, or 0."""
    cause = failure.status.cause if failure.status is not None else None
    asked = cause.retry_after if isinstance(cause, ApiError) else None
    return min(asked or 0.0, MAX_RETRY_AFTER_SECONDS)


def _log_failure(pod: Pod, failure: Failure) -> None:
    if failure.outcome is AttemptOutcome.UNSCHEDULABLE:
        _log.info(2, "Unable to schedule pod; no fit; waiting", pod=pod.key, err=failure.message)
    else:
        _log.error("Error scheduling pod; retrying", pod=pod.key, err=failure.message)
