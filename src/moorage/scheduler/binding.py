"""The binding cycle: one task per pod, from waiting on Permit to PostBind.

    wait on Permit ─▶ (queue done) ─▶ PreBind ─▶ Bind ─▶ PostBind
          │                              │         │ no response or a conflict: get the pod from the API
          └──────────────────────────────┴─────────┴─▶ Unreserve, forget, requeue this pod and others

It follows bindingCycle in pkg/scheduler/schedule_one.go, with two differences. State changes only through the inbox,
between cycles. A bind request that was sent is shielded from cancellation, so its outcome is always determined.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Coroutine
from typing import Any

from moorage.api.errors import Conflict, MoorageError, NotFound, OutcomeUnknown, ServerError, ServiceUnavailable
from moorage.api.failures import failure_text, is_being_cancelled, is_cancellation, is_interruption
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.api.taints import NO_SCHEDULE, TAINT_UNSCHEDULABLE, Taint, tolerates
from moorage.framework.points import BIND, POST_BIND, PRE_BIND, PRE_FLIGHT
from moorage.framework.ports import ApiClient, Clock, EventRecorder, ExtenderError
from moorage.framework.status import SUCCESS, Status
from moorage.runtime.binding import Flight, cancelled_itself, pre_flight, run_bind, run_post_bind, run_pre_bind
from moorage.runtime.profile import Profile
from moorage.runtime.services import NOT_LEADING, HeldPod, MayWrite, WaitingPods, always
from moorage.scheduler.cycle import PodPlacement
from moorage.scheduler.failing import AttemptOutcome, Failure, refusal
from moorage.scheduler.placements import BindingEvent, Bound, Dropped, Failed, Permitted
from moorage.scheduler.status_writer import PodStatusWriter
from moorage.telemetry import logs

_log = logs.get(__name__)


class BindOutcome(enum.Enum):
    """The state of a pod whose bind is in doubt, according to the API server. The values are metric labels."""

    BOUND_HERE = "bound_here"
    BOUND_ELSEWHERE = "bound_elsewhere"
    GONE = "gone"
    """The pod was deleted, is terminating, or was replaced by another pod with the same name."""
    UNBOUND = "unbound"


class BindingCycle:
    """Runs binding cycles and keeps track of those in progress."""

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        recorder: EventRecorder,
        writer: PodStatusWriter,
        waiting: WaitingPods,
        post: Callable[[BindingEvent], None],
        may_bind: MayWrite = always,
    ) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._writer = writer
        self._waiting = waiting
        self._post = post
        """Posts the result of a binding cycle to the inbox."""
        self._may_bind = may_bind
        self._pre_binding: dict[str, asyncio.Task[Status] | None] = {}
        """UID → the PreBind in progress, which preemption may cancel; None while it is announced."""
        self._stopped: dict[str, str] = {}
        """UID → the reason, for pods whose PreBind preemption has cancelled."""
        self._sent: set[asyncio.Task[None]] = set()
        """Binds whose outcome is not known yet."""
        self.stopping = False
        """Whether the engine stops and cancels binding cycles. Before that, only a plugin can have cancelled one."""

    async def drain(self, seconds: float) -> bool:
        """Wait until the outcome of every bind is known. Return False if `seconds` pass first.

        Remaining tasks are then cancelled, and their pods stay as the API server has them.
        """
        over = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            while self._sent and not over.done():
                await asyncio.wait({over, *self._sent}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
        unknown = set(self._sent)
        for task in unknown:
            task.cancel()
        await asyncio.gather(over, *unknown, return_exceptions=True)
        return not unknown

    async def run(self, placement: PodPlacement) -> None:
        """Bind the pod, or undo everything that the scheduling cycle reserved for it."""
        try:
            failure = await self._prepare(placement)
        except BaseException as error:
            self._survive(error, placement)
            failure = _error(Status.error(f"binding cycle: {failure_text(error)}"))
        if failure is not None:
            return self._post(Failed(placement, failure))
        # From here on, cancellation must not lose the outcome of a request that may have been sent.
        sent = self._shielded(self._bind(placement))
        try:
            await asyncio.shield(sent)
        except asyncio.CancelledError:
            if is_being_cancelled() or not sent.cancelled():
                raise
            # A Bind plugin has cancelled the task that called it, perhaps after it sent its request.
            await asyncio.shield(self._shielded(self._conclude(placement, CANCELLED_BIND)))

    def _shielded(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start work that `drain` waits for."""
        sent = asyncio.ensure_future(work)
        self._sent.add(sent)
        sent.add_done_callback(self._sent.discard)
        return sent

    async def _prepare(self, placement: PodPlacement) -> Failure | None:
        """Wait on Permit and run PreBind. Return the failure that ends the binding cycle, or None."""
        try:
            flight, status = await self._announce(placement)
            if status.is_success and placement.held is not None:
                status = await self._wait(placement, placement.held)
        finally:
            self._waiting.release(placement.pod.uid)
        if not status.is_success:
            return refusal(status)
        self._post(Permitted(placement))
        status = await self._pre_bind(placement, flight)
        return None if status.is_success else _error(status)

    def _survive(self, error: BaseException, placement: PodPlacement) -> None:
        """Continue after an exception, so that no pod stays assumed for ever: a plugin that cancels the task that
        calls it must not end the binding cycle. Raises the exception if the engine or the process ends."""
        if self.stopping or is_interruption(error) or (isinstance(error, GeneratorExit) and is_cancellation(error)):
            raise error
        _log.error("A binding cycle was cancelled or failed", error=error, stack=True, pod=placement.pod.key)
        task = asyncio.current_task()
        while task is not None and task.cancelling():
            task.uncancel()

    async def _wait(self, placement: PodPlacement, held: HeldPod) -> Status:
        """Wait until the Permit plugins have allowed or rejected the pod."""
        began = self._clock.now()
        status = await held.outcome()
        if (meter := placement.profile.meter) is not None:
            meter.metrics.permit_seconds.observe(self._clock.now() - began, status.code.label)
        return status

    async def _announce(self, placement: PodPlacement) -> tuple[Flight, Status]:
        """Run PreBindPreFlight, and set nominatedNodeName if PreBind has work to do or the pod waits on
        Permit (KEP-5278)."""
        began = self._clock.now()
        flight, status = pre_flight(placement.profile, placement.attempt.state, placement.pod, placement.node)
        _observe(placement, PRE_FLIGHT, began, SKIPPED if status.is_success and not flight.groups else status)
        if not status.is_success or not (flight.groups or placement.held is not None):
            return flight, status
        uid = placement.pod.uid
        if flight.groups:
            self._pre_binding[uid] = None
        try:
            await self._writer.announce(placement.pod, placement.node)
        finally:
            self._pre_binding.pop(uid, None)
            reason = self._stopped.pop(uid, None)
        return flight, status if reason is None else Status.error(reason)

    async def _pre_bind(self, placement: PodPlacement, flight: Flight) -> Status:
        if not flight.groups:
            if (meter := placement.profile.meter) is not None:
                meter.empty(PRE_BIND)
            return SUCCESS
        uid, began = placement.pod.uid, self._clock.now()
        task = asyncio.ensure_future(run_pre_bind(flight, placement.attempt.state, placement.pod, placement.node))
        self._pre_binding[uid] = task
        status = SUCCESS
        try:
            status = await task
        except asyncio.CancelledError:
            if not task.cancelled() or is_being_cancelled():
                raise
            if uid not in self._stopped:
                status = cancelled_itself(flight.alone, placement.pod, placement.node)
        finally:
            del self._pre_binding[uid]
            reason = self._stopped.pop(uid, None)
            _observe(placement, PRE_BIND, began, status)
        # However PreBind reacted to the cancellation, the pod's space is given to another pod.
        return status if reason is None else Status.error(reason)

    def stop_pre_bind(self, uid: str, reason: str) -> bool:
        """Cancel the PreBind of a pod for preemption, also if it is about to begin. Return False if the pod is in
        neither state."""
        if uid not in self._pre_binding:
            return False
        task = self._pre_binding[uid]
        if task is not None:
            if task.done():
                return False
            task.cancel()
        self._stopped[uid] = reason
        return True

    async def _bind(self, placement: PodPlacement) -> None:
        began = self._clock.now()
        try:
            status = await self._send(placement)
            _observe(placement, BIND, began, status)
        except OutcomeUnknown as error:
            _observe(placement, BIND, began, UNKNOWN)
            await self._conclude(placement, Status.error(str(error), cause=error))
            return
        outcome = BindOutcome.BOUND_HERE if status.is_success else BindOutcome.UNBOUND
        if is_in_doubt(status.cause):
            outcome = await self._settle(placement)
        await self._finish(placement, outcome, status)

    async def _conclude(self, placement: PodPlacement, status: Status) -> None:
        """End a bind whose outcome is unknown; `status` applies if the pod is not bound."""
        _log.warning(
            "No response to bind; getting the pod from the API server",
            pod=placement.pod.key,
            node=placement.node,
            err=status.message,
        )
        await self._finish(placement, await self._settle(placement), status)

    async def _finish(self, placement: PodPlacement, outcome: BindOutcome, status: Status) -> None:
        match outcome:
            case BindOutcome.BOUND_HERE:
                await self._bound(placement)
            case BindOutcome.UNBOUND:
                self._post(Failed(placement, _error(status)))
            case _:
                _log.info(
                    2,
                    "Pod was deleted or bound by another scheduler; not binding it",
                    pod=placement.pod.key,
                    outcome=outcome.value,
                )
                self._post(Dropped(placement))

    async def _send(self, placement: PodPlacement) -> Status:
        """Bind by the first interested extender that binds, or else by the Bind plugins."""
        profile, pod = placement.profile, placement.pod
        if not self._may_bind():
            return Status.error(NOT_LEADING)
        if reason := objection(profile, pod, placement.node):
            return Status.error(reason)
        for extender in profile.services.extenders:
            if extender.binds and extender.is_interested(pod):
                try:
                    await extender.bind(pod, placement.node)
                    return SUCCESS
                except Exception as error:
                    if not extender.ignorable:
                        if isinstance(error, OutcomeUnknown):
                            raise
                        known = isinstance(error, ExtenderError)
                        message = str(error) if known else f"{type(error).__name__}: {error}"
                        return Status.error(message, cause=error)
                    extender.warn(error)
        return await run_bind(profile, placement.attempt.state, pod, placement.node)

    async def _settle(self, placement: PodPlacement) -> BindOutcome:
        """Get the pod from the API server, with retries, until the outcome is known. The pod stays assumed."""
        pod, delay = placement.pod, 0.5
        while True:
            try:
                outcome = judge(await self._client.get(PODS, pod.name, pod.namespace), placement)
            except NotFound:
                outcome = BindOutcome.GONE
            except MoorageError as error:
                _log.warning(
                    "Cannot get the pod to learn the outcome of its bind; retrying", pod=pod.key, err=str(error)
                )
                await self._clock.sleep(delay)
                delay = min(delay * 2, 10.0)
                continue
            if (meter := placement.profile.meter) is not None:
                meter.metrics.unknown_binds.inc(outcome.value)
            return outcome

    async def _bound(self, placement: PodPlacement) -> None:
        attempt, pod = placement.attempt, placement.pod
        _log.info(
            2,
            "Successfully bound pod to node",
            pod=pod.key,
            node=placement.node,
            evaluatedNodes=attempt.evaluated,
            feasibleNodes=attempt.feasible,
        )
        self._recorder.event(
            pod,
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {pod.key} to {placement.node}",
            controller=placement.profile.name,
        )
        self._post(Bound(placement, self._clock.now()))
        began = self._clock.now()
        try:
            await run_post_bind(placement.profile, attempt.state, pod, placement.node)
        except asyncio.CancelledError:
            if not self.stopping:
                _log.error("PostBind was cancelled by one of its plugins", pod=pod.key, node=placement.node)
        _observe(placement, POST_BIND, began, SUCCESS)


UNKNOWN = Status.error("no response")
CANCELLED_BIND = Status.error("a Bind plugin cancelled the task that called it")
SKIPPED = Status.skip()
"""The status if no plugin has work to do in PreBind."""


def _observe(placement: PodPlacement, point: str, began: float, status: Status) -> None:
    if (meter := placement.profile.meter) is not None:
        if status is SUCCESS:
            meter.observe(point, began)
        else:
            meter.observe(point, began, status.code.label)


def is_in_doubt(error: object) -> bool:
    """Return whether a bind may have succeeded although the API server returned this error.

    An earlier try of ours may have bound the pod, another scheduler may have, or the server may have failed
    after binding it.
    """
    if isinstance(error, ServerError):
        return not isinstance(error, ServiceUnavailable)
    return isinstance(error, Conflict | NotFound)


def judge(current: Pod, placement: PodPlacement) -> BindOutcome:
    """Derive the outcome of our bind from a pod that was just read from the API server."""
    if current.uid != placement.pod.uid:
        return BindOutcome.GONE
    if current.spec.node_name == placement.node:
        return BindOutcome.BOUND_HERE
    if current.spec.node_name:
        return BindOutcome.BOUND_ELSEWHERE
    return BindOutcome.GONE if current.is_terminating else BindOutcome.UNBOUND


def _error(status: Status) -> Failure:
    """Return an error, as every failure after Permit is one: the pod is retried after backoff."""
    return Failure(AttemptOutcome.ERROR, status.message, nominated_node="", status=status)


CORDON = Taint(key=TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)
HEEDS_CORDONS = "NodeUnschedulable"
"""A profile without this plugin places pods on cordoned nodes on purpose."""


def objection(profile: Profile, pod: Pod, name: str) -> str:
    """Return why the pod must no longer be bound to the node, or an empty string.

    Permit and PreBind may take minutes, and the API server checks neither whether the node still exists nor
    whether it is cordoned. Other changes are left to the kubelet, which admits a pod before it starts it.
    """
    node = profile.services.lister(NODES).get(name)
    if not isinstance(node, Node):
        return f'node "{name}" is gone'
    if not node.spec.unschedulable or HEEDS_CORDONS not in profile.plugins:
        return ""
    if any(tolerates(toleration, CORDON) for toleration in pod.spec.tolerations):
        return ""
    return f'node "{name}" was cordoned before the pod was bound'
