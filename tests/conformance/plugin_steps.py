"""Cases in several steps: scheduling cycles of one profile, one after the other, on one cluster in memory.
See docs/evaluate.md.

The step says where a pod goes, so Filter and Score have no part in it. Pods that wait in Permit are let go or
rejected by plugins; a rejected one gives its node back before the next step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.api.times import parse_time
from moorage.app.configuration import Configuration
from moorage.app.offline import QuestionEngine, question_engine
from moorage.explain.evaluate import BadCase, case_objects
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod
from moorage.framework.ports import Clock, Timer
from moorage.framework.status import Status
from moorage.runtime import questions
from moorage.runtime.binding import run_permit, run_reserve, run_unreserve
from moorage.runtime.pre_filtering import run_post_filter
from moorage.runtime.services import HeldPod

Json = dict[str, Any]


def play(configured: Configuration, data: Mapping[str, Any]) -> list[Json]:
    """One result a step."""
    return asyncio.run(_Cluster(configured, data).play(data["steps"]))


def sorted_queue(engine: QuestionEngine, queue: Sequence[Json]) -> Json:
    """Pod → the pods that come strictly after it, and the order if there is one: no ties, and no circle."""
    less = next(iter(engine.profiles.values())).queue_sort.less
    pods = list(_queued(queue))
    after = {a.key: [b.key for b in pods if b is not a and less(a, b)] for a in pods}
    answer: Json = {"before": {key: sorted(later) for key, later in after.items() if later}}
    order = sorted(after, key=lambda key: -len(after[key]))
    if [len(after[key]) for key in order] == [*reversed(range(len(pods)))]:
        answer["order"] = order
    return answer


def case_engine(configured: Configuration, data: Mapping[str, Any], clock: Clock | None = None) -> QuestionEngine:
    """Build an engine that holds the objects of a case."""
    return question_engine(configured, case_objects(configured, data, data.get("custom")), clock=clock)


def _queued(entries: Sequence[Json]) -> Iterator[QueuedPod]:
    for entry in entries:
        pod = cast(Pod, decoding.convert(PODS, entry["pod"]))
        first = parse_time(entry.get("initialAttemptTimestamp"))
        yield QueuedPod(pod, parse_time(entry["timestamp"]) or 0.0, first)


class _StepClock:
    """No time passes but a little with each step, so that what happens later is later. The scheduler's clock
    is the wall clock, as the times of a case are; no timer runs off."""

    def __init__(self) -> None:
        self.time = parse_time("2099-01-01T00:00:00Z") or 0.0

    def now(self) -> float:
        return self.time

    wall = now

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(10 * seconds + 3600, call, *args)


class _Cluster:
    """The objects of a case and the one profile."""

    def __init__(self, configured: Configuration, data: Mapping[str, Any]) -> None:
        self._clock = _StepClock()
        self._engine = case_engine(configured, data, self._clock)
        self._profile = next(iter(self._engine.profiles.values()))
        self._queue = data.get("queue") or []
        self._held: dict[str, tuple[CycleState, HeldPod]] = {}
        """Pod → its cycle state and its wait, of the pods that wait in Permit."""
        self._states: dict[str, tuple[CycleState, str]] = {}
        """Pod → its cycle state and node, of all that were scheduled."""
        self._pods: dict[str, Pod] = {pod.key: pod for pod in self._engine.stores[PODS].list()}

    async def play(self, steps: Sequence[Json]) -> list[Json]:
        found = []
        for step in steps:
            self._clock.time += 0.001
            found.append(await self._step(step) | self._decided())
            self._engine.drain()
        return found

    async def _step(self, step: Json) -> Json:
        match step.get("op"):
            case "schedule":
                return await self._schedule(self._named(step), step.get("node", ""))
            case "unbind":
                pod = self._named(step)
                if pod.key not in self._states:
                    raise BadCase(f"input.steps: pod {pod.key!r} cannot be unbound: no step has scheduled it")
                self._give_back(pod)
                return {}
            case "sort":
                return sorted_queue(self._engine, self._queue)
            case other:
                raise BadCase(f"input.steps: unknown op {other!r}; known are schedule, unbind and sort")

    def _named(self, step: Json) -> Pod:
        if step.get("pod") not in self._pods:
            raise BadCase(f"input.steps: pod {step.get('pod')!r} is not among input.pods")
        return self._pods[step["pod"]]

    async def _schedule(self, pod: Pod, node: str) -> Json:
        attempt, pre = questions.begin(self._profile, pod, self._engine.services.nodes())
        state, status = attempt.state, pre.status
        found: Json = {}
        if not status.is_success:
            found["preFilter"] = _plain(status)
        if not status.is_success or not node:
            _, after = await run_post_filter(self._profile, state, pod, attempt.statuses)
            return found if after.is_success else {**found, "postFilter": _plain(after)}
        self._engine.cache.assume(pod, node)
        self._states[pod.key] = state, node
        status = run_reserve(self._profile, state, pod, node)
        held = None
        if status.is_success:
            status, held = run_permit(self._profile, state, pod, node)
        if held is not None:
            self._held[pod.key] = state, held
            found |= {"permit": {"code": status.code.label}, "waitSeconds": held.timeout}
        elif not status.is_success:
            found["permit"] = _plain(status)
            self._give_back(pod)
        if state.to_activate:
            found["activated"] = sorted(state.to_activate)
        return found

    def _give_back(self, pod: Pod) -> None:
        state, node = self._states.pop(pod.key)
        run_unreserve(self._profile, state, pod, node)
        self._engine.cache.forget(pod.uid)

    def _decided(self) -> Json:
        """The pods that wait no longer; the rejected ones give their nodes back, which may reject others."""
        found: dict[str, list[str]] = {}
        while over := sorted(key for key, (_, held) in self._held.items() if held.decision is not None):
            for key in over:
                _, held = self._held.pop(key)
                self._engine.services.waiting.release(held.pod.uid)
                allowed = held.decision is not None and held.decision.is_success
                found.setdefault("allowed" if allowed else "rejected", []).append(key)
                if not allowed:
                    self._give_back(held.pod)
        return {verdict: sorted(keys) for verdict, keys in found.items()}


def _plain(status: Status) -> Json:
    found: Json = {"code": status.code.label}
    return {**found, "reasons": list(status.reasons)} if status.reasons else found
