"""The scheduling cycle: takes a popped pod and ends with an assumed pod or a failure.

It follows schedulingCycle in pkg/scheduler/schedule_one.go. Cycles run one at a time, up to and including
Permit. The binding cycle then continues in a separate task.
"""

from __future__ import annotations

from dataclasses import dataclass

from moorage.api.failures import failure_text, is_cancellation, is_interruption
from moorage.api.pod import Pod
from moorage.framework.events import QueuedPod
from moorage.framework.handle import Nominator
from moorage.framework.points import PERMIT, POST_FILTER, RESERVE, UNRESERVE
from moorage.framework.ports import Clock, EventRecorder
from moorage.framework.status import SUCCESS, Code, Status
from moorage.runtime.attempt import Attempt
from moorage.runtime.binding import run_permit, run_reserve, run_unreserve
from moorage.runtime.pre_filtering import run_post_filter
from moorage.runtime.profile import Profile
from moorage.runtime.record import SCHEDULED, DecisionRecord
from moorage.runtime.services import HeldPod
from moorage.runtime.stopwatch import AttemptOverdue, AttemptStopwatch
from moorage.scheduler.choosing import EMPTY_CLUSTER, NodeChooser, lap
from moorage.scheduler.failing import AttemptOutcome, Failure, fit_error, refusal
from moorage.scheduler.records import RecordRing, make_record
from moorage.scheduler.slowness import SLOW_SECONDS, SlowAttempts
from moorage.state.cache import ClusterCache
from moorage.telemetry import logs
from moorage.telemetry.metrics import ProfileMeter

_log = logs.get(__name__)


@dataclass(slots=True)
class PodPlacement:
    """A pod that is assumed on a node but not bound yet."""

    attempt: Attempt
    pod: Pod
    """The pod as it was when it was popped."""
    node: str
    held: HeldPod | None
    """Set if a Permit plugin returned Wait."""
    record: DecisionRecord | None = None

    def note_failure(self, failure: Failure) -> None:
        """Store a failure of the binding cycle in the decision record."""
        if self.record is not None:
            self.record.result = failure.outcome.value
            self.record.message = failure.message
            self.record.plugin = failure.status.plugin if failure.status is not None else ""

    @property
    def profile(self) -> Profile:
        """The profile that scheduled the pod."""
        return self.attempt.profile


class SchedulingCycle:
    """Runs scheduling cycles and stores their decision records."""

    def __init__(
        self,
        cache: ClusterCache,
        nominator: Nominator,
        clock: Clock,
        recorder: EventRecorder,
        records: RecordRing,
        chooser: NodeChooser,
    ) -> None:
        self._cache = cache
        self._listing = cache.table.listing
        self._nominator = nominator
        self._clock = clock
        self._recorder = recorder
        self._records = records
        self.chooser = chooser
        self._stopwatch = AttemptStopwatch(clock.now)
        self._slow = SlowAttempts(recorder, self._stopwatch)
        self._verbose = False
        """Whether every attempt is logged."""
        self._ask_verbosity = float("-inf")

    def must_skip(self, pod: Pod, profile: Profile) -> bool:
        """Return whether to skip a popped pod because it is terminating or already assumed."""
        if pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._recorder.event(
                pod, type="Warning", reason="FailedScheduling", action="Scheduling", note=note, controller=profile.name
            )
            _log.info(3, "Skip schedule deleting pod", pod=pod.key)
            return True
        return self._cache.is_assumed(pod.uid)

    async def run(self, info: QueuedPod, profile: Profile) -> PodPlacement | Failure:
        """Run one scheduling cycle for a popped pod.

        Returns a PodPlacement if the pod was assumed and reserved on a node; the binding cycle takes over
        from there. Returns a Failure otherwise; everything that the cycle changed has been rolled back, and
        only the decision record remains.
        """
        pod = info.pod
        started, wall = self._clock.now(), self._clock.wall()
        # once a second; asking for every pod would cost as much as a plugin
        if started >= self._ask_verbosity:
            self._verbose, self._ask_verbosity = _log.enabled(3), started + 1.0
            self.chooser.look_at_verbosity()
        if self._verbose:
            _log.info(3, "Attempting to schedule pod", pod=pod)
        every = self._listing.every_row()
        attempt = Attempt(info, profile, every.listed, started, every)
        attempt.stopwatch = self._stopwatch
        meter = profile.meter
        if meter is not None:
            meter.begin(started)
        result: PodPlacement | Failure
        try:
            status = await self.chooser.choose(attempt)
            if meter is not None and status is not EMPTY_CLUSTER:
                meter.chose(started, attempt.baseline.by_template)
            result = self._commit(attempt) if status is SUCCESS else await self._refused(attempt, status)
        except AttemptOverdue as late:
            attempt.node = ""
            status = Status(Code.ERROR, (str(late),), late.plugin)
            result = Failure(AttemptOutcome.ERROR, str(late), nominated_node="", status=status)
        except BaseException as error:
            if is_interruption(error) or is_cancellation(error):
                raise
            _log.error("Scheduling cycle failed", error=error, stack=True, pod=pod.key)
            attempt.node = ""
            text = f"scheduling cycle: {failure_text(error)}"
            result = Failure(AttemptOutcome.ERROR, text, nominated_node="")
        self._stopwatch.end()
        duration = self._clock.now() - started
        if duration > SLOW_SECONDS or info.slow_attempts:
            self._slow.judge(attempt, duration, placed=isinstance(result, PodPlacement))
        if meter is not None:
            _measure(meter, attempt, result, duration)
        try:
            record = make_record(attempt, wall, duration, self._listing.epoch)
            if isinstance(result, PodPlacement):
                record.result = SCHEDULED
                result.record = record
            else:
                _record_failure(record, result)
            self._records.add(record)
        except Exception as error:  # failing to make a record must not lose an assumed pod
            _log.error("Cannot make a decision record", error=error, stack=True, pod=pod.key)
        return result

    async def _refused(self, attempt: Attempt, status: Status) -> Failure:
        """Return why no node was chosen. If no node fits, run PostFilter."""
        if status is EMPTY_CLUSTER:
            return Failure(AttemptOutcome.UNSCHEDULABLE, status.message, nominated_node="")
        if status.code is Code.ERROR:
            attempt.node = ""
            return Failure(AttemptOutcome.ERROR, status.message, nominated_node="", status=status)
        return await self._post_filter(attempt)

    async def _post_filter(self, attempt: Attempt) -> Failure:
        """Run PostFilter, which may preempt pods. The attempt ends as unschedulable in every case."""
        profile = attempt.profile
        refused, pending = attempt.rejectors()
        nominated: str | None = ""
        if profile.post_filter:
            if profile.meter is not None:
                profile.meter.skip()
                profile.meter.metrics.preemptions.inc()
            result, status = await run_post_filter(profile, attempt.state, attempt.pod, attempt.statuses)
            lap(attempt, POST_FILTER, status)
            nominated = result.nominated_node if result is not None else None
            attempt.victims = result.victims if result is not None else ()
            attempt.post_filter_message = status.message
        message = fit_error(
            len(attempt.nodes),
            pre_filter=attempt.pre_filter_message,
            reasons=attempt.statuses.histogram(),
            post_filter=attempt.post_filter_message,
        )
        return Failure(AttemptOutcome.UNSCHEDULABLE, message, refused, pending, nominated)

    def _commit(self, attempt: Attempt) -> PodPlacement | Failure:
        """Assume the pod and run Reserve and Permit. If one of them rejects it, undo everything."""
        pod, node, profile = attempt.pod, attempt.node, attempt.profile
        self._cache.assume(pod, node)
        self._nominator.forget(pod.metadata.uid)  # the nomination is no longer needed
        held: HeldPod | None = None
        status = run_reserve(profile, attempt.state, pod, node)
        meter = profile.meter
        if meter is not None:
            lap(attempt, RESERVE, status)
        if status is SUCCESS and profile.permit:
            status, held = run_permit(profile, attempt.state, pod, node)
            lap(attempt, PERMIT, status)
        elif status is SUCCESS and meter is not None:
            meter.empty(PERMIT)
        if status is SUCCESS or status.is_wait:
            return PodPlacement(attempt, pod, node, held)
        run_unreserve(profile, attempt.state, pod, node)
        lap(attempt, UNRESERVE, SUCCESS)
        self._cache.forget(pod.uid)
        return refusal(status)


def _measure(meter: ProfileMeter, attempt: Attempt, result: PodPlacement | Failure, seconds: float) -> None:
    """Record the metrics of a cycle. A placement is counted when it is bound."""
    if isinstance(result, Failure):
        meter.attempted(result.outcome.value, seconds)
        if attempt.victims:
            meter.metrics.victims.observe(len(attempt.victims))
    if not attempt.baseline.by_template:
        # Plugins whose results the baseline of a node set holds count as called.
        state, shared = attempt.state, attempt.baseline.state
        scored = state.skip_score | shared.skip_score if attempt.board is not None else None
        meter.evaluated(state.skip_filter | shared.skip_filter, scored)


def _record_failure(record: DecisionRecord, result: Failure) -> None:
    record.result = result.outcome.value
    record.message = result.message
    record.nominated_node = result.nominated_node or ""
    if result.status is not None:
        record.plugin = result.status.plugin
