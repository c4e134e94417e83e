"""What happens to a pod whose attempt or binding failed: back to the queue, an event, its status."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from moorage.api.errors import ApiError
from moorage.api.pod import Pod
from moorage.framework import record
from moorage.framework.events import QueuedPod
from moorage.framework.handle import Lister, Nominator
from moorage.framework.ports import EventRecorder
from moorage.framework.status import Code, Status
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.status_writer import SCHEDULER_ERROR, UNSCHEDULABLE, PodStatusWriter, StatusUpdate
from moorage.telemetry import logs

_log = logs.get(__name__)

NO_NODES = "no nodes available to schedule pods"


class AttemptOutcome(enum.Enum):
    """How an attempt ended; the values are the results that records and metrics use."""

    SCHEDULED = record.SCHEDULED
    UNSCHEDULABLE = record.UNSCHEDULABLE
    ERROR = record.ERROR


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt, or its binding, ended without a bound pod."""

    outcome: AttemptOutcome
    message: str
    plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = None
    """None leaves the pod's nomination alone, "" clears it."""
    status: Status | None = None
    """The plugin's answer behind it, where a single one decided."""


def refusal(status: Status) -> Failure:
    """Reserve or Permit said no: a rejection is reported as by a cluster of one node, an Error as it is."""
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
    """`1 reason a, 2 reason b`, sorted as strings: "10 x" stands before "2 y"."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def fit_error(
    nodes: int, *, pre_filter: str = "", reasons: Counter[str] | None = None, post_filter: str = ""
) -> str:
    """The FailedScheduling message."""
    text = f"0/{nodes} nodes are available:"
    if pre_filter:
        text += f" {pre_filter}."
    elif reasons:
        text += f" {histogram(reasons)}."
    return f"{text} {post_filter}" if post_filter else text


def refused_after_choice(reasons: Iterable[str]) -> str:
    """Reserve or Permit refused the chosen node: reported as if the cluster had only that one."""
    return fit_error(1, reasons=Counter(reasons))


MAX_RETRY_AFTER_SECONDS = 60.0
"""Seconds; a server that asks for more is asked again after this long."""


class FailureHandler:
    """Runs between cycles only. The order is kube-scheduler's: requeue, nominator, event, status."""

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
        """Whether one of the profiles schedules the pod."""

    def handle(self, info: QueuedPod, profile: str, failure: Failure) -> None:
        """Requeue the pod with the reason, unless it is no longer ours to schedule."""
        pod = info.pod
        _log_failure(pod, failure)
        current = self._pods.get(pod.name, pod.namespace)
        if not isinstance(current, Pod) or current.uid != pod.uid or current.is_assigned:
            _log.info(3, "Pod is gone, replaced or assigned meanwhile; not requeued", pod=pod.key)
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
        """Tell a pod's owner that no profile schedules it any more."""
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
    """How long the API server has asked to be left alone; 0 when it has not."""
    cause = failure.status.cause if failure.status is not None else None
    asked = cause.retry_after if isinstance(cause, ApiError) else None
    return min(asked or 0.0, MAX_RETRY_AFTER_SECONDS)


def _log_failure(pod: Pod, failure: Failure) -> None:
    if failure.outcome is AttemptOutcome.UNSCHEDULABLE:
        _log.info(2, "Unable to schedule pod; no fit; waiting", pod=pod.key, err=failure.message)
    else:
        _log.error("Error scheduling pod; retrying", pod=pod.key, err=failure.message)
