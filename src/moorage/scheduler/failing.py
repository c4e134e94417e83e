"""What happens to a pod whose attempt or binding failed: back to the queue, an event, its status."""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.errors import ApiError
from moorage.api.pod import Pod
from moorage.framework.events import QueuedPod
from moorage.framework.handle import Lister, Nominator
from moorage.framework.ports import EventRecorder
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.outcome import Failure, Outcome
from moorage.scheduler.status_writer import SCHEDULER_ERROR, UNSCHEDULABLE, StatusUpdate, StatusWriter
from moorage.telemetry import logs

_log = logs.get(__name__)

LONGEST_RETRY_AFTER = 60.0
"""Seconds; a server that asks for more is asked again after this long."""


class FailureHandler:
    """Runs between cycles only. The order is kube-scheduler's: requeue, nominator, event, status."""

    def __init__(
        self,
        queue: SchedulingQueue,
        pods: Lister,
        recorder: EventRecorder,
        writer: StatusWriter,
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
        rejected = failure.outcome is Outcome.UNSCHEDULABLE
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
    return min(asked or 0.0, LONGEST_RETRY_AFTER)


def _log_failure(pod: Pod, failure: Failure) -> None:
    if failure.outcome is Outcome.UNSCHEDULABLE:
        _log.info(2, "Unable to schedule pod; no fit; waiting", pod=pod.key, err=failure.message)
    else:
        _log.error("Error scheduling pod; retrying", pod=pod.key, err=failure.message)
