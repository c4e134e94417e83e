"""Reserve, Unreserve, Permit, PreBind, Bind, PostBind: the steps after a node has been chosen.

Reserve and Permit end the scheduling cycle; the others run in the pod's own task. Follows
pkg/scheduler/framework/runtime/framework.go."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from moorage.api.errors import OutcomeUnknown
from moorage.api.failures import is_cancellation
from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import PERMIT, RESERVE, PreBindPlugin
from moorage.framework.status import SUCCESS, Code, PreBindPreFlight, Status
from moorage.runtime.calling import call_async, checked, failed, maybe_await, unexpected
from moorage.runtime.profile import Profile
from moorage.runtime.services import HeldPod, permit_timeout


@dataclass(slots=True)
class Flight:
    """The PreBind plan of one pod: groups that run one after the other; the plugins of a group run together."""

    groups: tuple[tuple[PreBindPlugin, ...], ...] = ()
    alone: PreBindPlugin | None = None
    """The plugin that runs now, if it runs alone and so in the task of the whole plan."""


def pre_flight(profile: Profile, state: CycleState, pod: Pod, node: str) -> tuple[Flight, Status]:
    """Ask every PreBind plugin what it will do. A skipped plugin that does not run in parallel still separates the
    groups around it."""
    groups: list[list[PreBindPlugin]] = []
    parallel_before = False
    for plugin in profile.pre_bind:
        try:
            answer = plugin.pre_bind_pre_flight(state, pod, node)
        except BaseException as error:
            return Flight(), failed(plugin, "PreBindPreFlight", pod, error, node)
        if isinstance(answer, PreBindPreFlight):
            together = answer.allow_parallel
        else:
            status = checked(plugin, "PreBindPreFlight", pod, answer, node)
            if status.is_skip:
                parallel_before = False
                continue
            if not status.is_success:
                return Flight(), _error(status)
            together = False
        if together and parallel_before:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
        parallel_before = together
    return Flight(tuple(tuple(group) for group in groups)), SUCCESS


async def run_pre_bind(flight: Flight, state: CycleState, pod: Pod, node: str) -> Status:
    """Run the plan. The first group with a failure ends it, and the other plugins of that group are cancelled."""
    for group in flight.groups:
        flight.alone = group[0] if len(group) == 1 else None
        status = await _run_group(group, state, pod, node)
        if not status.is_success:
            return _error(status)
    return SUCCESS


async def _run_group(group: tuple[PreBindPlugin, ...], state: CycleState, pod: Pod, node: str) -> Status:
    if len(group) == 1:
        return await call_async(group[0], "PreBind", pod, group[0].pre_bind, state, pod, node, node=node)
    plugins = {
        asyncio.ensure_future(call_async(p, "PreBind", pod, p.pre_bind, state, pod, node, node=node)): p for p in group
    }
    running = set(plugins)
    try:
        while running:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.cancelled():
                    return cancelled_itself(plugins[task], pod, node)
                if not task.result().is_success:
                    return task.result()
    finally:
        for task in plugins:
            task.cancel()
        await asyncio.gather(*plugins, return_exceptions=True)
    return SUCCESS


def cancelled_itself(plugin: PreBindPlugin | None, pod: Pod, node: str) -> Status:
    """Return the Error for a PreBind that cancelled the task that called it."""
    text = "PreBind cancelled the task that called it"
    return Status.error(text) if plugin is None else failed(plugin, "PreBind", pod, asyncio.CancelledError(text), node)


async def run_bind(profile: Profile, state: CycleState, pod: Pod, node: str) -> Status:
    """Run Bind plugins in order until one does not return Skip. `OutcomeUnknown` is raised to the caller, which decides
    what became of the pod."""
    status = Status.skip()
    for plugin in profile.bind:
        try:
            answer = await maybe_await(plugin.bind(state, pod, node))
        except OutcomeUnknown:
            raise
        except BaseException as error:
            if is_cancellation(error):
                raise
            return failed(plugin, "Bind", pod, error, node)
        status = checked(plugin, "Bind", pod, answer, node)
        if not status.is_skip:
            return status if status.is_success or status.code is Code.ERROR else _error(status)
    return Status.error(f'no Bind plugin of profile "{profile.name}" took pod "{pod.key}": all answered Skip')


def _error(status: Status) -> Status:
    """Return an error: after Permit every rejection is a failure, and the pod is retried after backoff."""
    return Status(Code.ERROR, status.reasons, status.plugin, cause=status.cause)


async def run_post_bind(profile: Profile, state: CycleState, pod: Pod, node: str) -> None:
    """Notify the PostBind plugins; failures are logged and change nothing."""
    for plugin in profile.post_bind:
        try:
            await maybe_await(plugin.post_bind(state, pod, node))
        except BaseException as error:
            if is_cancellation(error):
                raise
            failed(plugin, "PostBind", pod, error, node)


WAITING = Status(Code.WAIT, ("one or more plugins asked to wait and no plugin rejected pod",))


def run_reserve(profile: Profile, state: CycleState, pod: Pod, node: str) -> Status:
    """Run Reserve plugins in order, up to the first that does not succeed. The caller unreserves."""
    for plugin in profile.reserve:
        try:
            answer = plugin.reserve(state, pod, node)
            if (watch := state.stopwatch) is not None and watch.now() > watch.next_look:
                watch.lap(plugin.name, RESERVE)
            if answer is None:
                continue
            status = checked(plugin, "Reserve", pod, answer, node)
        except BaseException as error:
            return failed(plugin, "Reserve", pod, error, node)
        if status.is_success:
            continue
        if status.is_rejected or status.code is Code.ERROR:
            return status
        return unexpected(plugin, "Reserve", pod, status, node)
    return SUCCESS


def run_unreserve(profile: Profile, state: CycleState, pod: Pod, node: str) -> None:
    """Unreserve **all** Reserve plugins in reverse order, whether they had reserved or not, even if one raises."""
    for plugin in reversed(profile.reserve):
        try:
            plugin.unreserve(state, pod, node)
        except BaseException as error:
            failed(plugin, "Unreserve", pod, error, node)


def run_permit(profile: Profile, state: CycleState, pod: Pod, node: str) -> tuple[Status, HeldPod | None]:
    """Run Permit plugins in order; a rejection ends it. If plugins return Wait, the pod waits before this returns, so
    that no plugin can allow it too early."""
    timeouts: dict[str, float] = {}
    for plugin in profile.permit:
        try:
            status = checked(plugin, "Permit", pod, plugin.permit(state, pod, node), node)
            if (watch := state.stopwatch) is not None and watch.now() > watch.next_look:
                watch.lap(plugin.name, PERMIT)
        except BaseException as error:
            return failed(plugin, "Permit", pod, error, node), None
        if status.is_success:
            continue
        if status.is_wait:
            timeouts[plugin.name] = permit_timeout(status.timeout)
        elif status.is_rejected or status.code is Code.ERROR:
            return status, None
        else:
            return unexpected(plugin, "Permit", pod, status, node), None
    if timeouts:
        return WAITING, profile.services.waiting.hold(pod, node, timeouts)
    return SUCCESS, None
