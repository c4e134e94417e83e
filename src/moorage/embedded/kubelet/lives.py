"""The life of one pod on its node, as a state machine driven by time, and the events that report it.

    starting ──start──▶ initializing ──▶ running ──run──▶ ended? ──restartPolicy──▶ Succeeded | Failed
       │ volumes not there: waits            ▲                │
       │                                     └── backoff ◀────┘  CrashLoopBackOff, 10 s doubling to 5 min
    delete at any time ──stop──▶ gone (the driver deletes it with grace 0)

A life is begun when the pod is admitted, or taken up again from its status after a restart of the stand-in.
`advance` moves it as far as the time allows and says when to look again. It is pure: no clock, no API. Events
are worded as upstream's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from moorage.api.resources import Unstructured
from moorage.api.times import backoff, format_time, parse_time
from moorage.embedded.controllers.writes import Events
from moorage.embedded.kubelet.decisions import Script
from moorage.embedded.kubelet.pod_status import ENDED, RUNNING, WAITING, Containers, Picture, terminated

Raw = dict[str, Any]

DEADLINE = "Pod was active on the node longer than the specified deadline"
_CRASH = "back-off {0} restarting failed container"
_SIGTERM, _SIGKILL = 143, 137
"""Exit codes of containers that were asked, or made, to stop."""
_CALM = 600.0
"""A container that ran for so long starts with the shortest pause again."""
REPORTER = "kubelet"
Before = tuple[str, int, str]
"""Phase, restarts and state of a life before it went on."""


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """What the node gives to its pods."""

    address: str
    volumes_ready: bool = True


class Life:
    """One pod that its node has admitted."""

    def __init__(self, began: float, start_time: str, pod_ip: str, crash_backoff: tuple[float, float]) -> None:
        self.began = began
        self.start_time = start_time
        self.pod_ip = pod_ip
        self.main = Containers()
        self.phase = "Pending"
        self.reason = ""
        self.message = ""
        self.inits_done = 0
        self.init_started = 0.0
        self.resume_at = math.inf
        """When a container that waits in CrashLoopBackOff starts again."""
        self.stopping_since: float | None = None
        self.started_once = False
        self._first_pause, self._longest_pause = crash_backoff
        self._pause = 0.0
        """Before the next restart; the first one comes at once."""

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    def advance(self, pod: Unstructured, script: Script, node: SimulatedNode, wall: float) -> float:
        """Moves on to `wall`; gives the time of the next step, or infinity."""
        if self.is_over:
            return math.inf
        limit = self._deadline(pod)
        if wall >= limit:
            self._fail_deadline(wall)
            return math.inf
        return min(limit, self._advance(pod, script, node, wall))

    def picture(self, node: SimulatedNode) -> Picture:
        sidecars = Containers(RUNNING, started=self.init_started, ready=True)
        if self.is_over:
            sidecars = Containers(ENDED, started=self.init_started, finished=self.main.finished, ready=False)
        return Picture(
            phase=self.phase,
            start_time=self.start_time,
            host_ip=node.address,
            pod_ip=self.pod_ip,
            main=self.main,
            inits_done=self.inits_done,
            init_started=self.init_started,
            reason=self.reason,
            message=self.message,
            networked=self.started_once,
            sidecars=sidecars,
        )

    def stop(self, wall: float) -> None:
        """The containers have ended after a delete."""
        if self.is_over:
            return
        if self.main.state == RUNNING:
            self._end(wall, _SIGTERM)
        self.phase = "Failed"

    def _advance(self, pod: Unstructured, script: Script, node: SimulatedNode, wall: float) -> float:
        if self.main.state == WAITING and not math.isfinite(self.resume_at) and not self.main.restarts:
            due = self._initialize(pod, script, node, wall)
            if due > wall:
                return due
        if self.main.state == WAITING:
            if math.isfinite(self.resume_at) and wall < self.resume_at:
                return self.resume_at
            self._start(wall)
        if self.main.state == RUNNING:
            ends = self.main.started + script.run
            if wall < ends:
                ready_at = self.main.started + script.ready
                self.main.ready = wall >= ready_at
                return min(ends, ready_at) if not self.main.ready else ends
            return self._ended(pod, script, wall)
        return math.inf

    def _initialize(self, pod: Unstructured, script: Script, node: SimulatedNode, wall: float) -> float:
        """Volumes, the sandbox, and the init containers one after the other; when done, a time not after now."""
        if not node.volumes_ready:
            return math.inf
        begin = self.began + script.start
        if wall < begin:
            return begin
        self.started_once = True
        inits = (pod.raw.get("spec") or {}).get("initContainers") or []
        if not inits:
            return wall
        self.init_started = self.init_started or wall
        due = self.init_started
        self.inits_done = 0
        for container in inits:
            due += 0.0 if container.get("restartPolicy") == "Always" else script.init
            if due > wall:
                return due
            self.inits_done += 1
        return wall

    def _start(self, wall: float) -> None:
        self.started_once = True
        self.resume_at = math.inf
        self.phase = "Running"
        self.main.state, self.main.started, self.main.ready = RUNNING, wall, False
        self.main.reason = self.main.message = ""

    def _ended(self, pod: Unstructured, script: Script, wall: float) -> float:
        policy = (pod.raw.get("spec") or {}).get("restartPolicy") or "Always"
        ran = wall - self.main.started
        self._end(wall, script.exit_code)
        if policy == "Never" or (policy == "OnFailure" and script.exit_code == 0):
            self.phase = "Succeeded" if script.exit_code == 0 else "Failed"
            return math.inf
        pause = 0.0 if ran >= _CALM else self._pause
        self._pause = min(max(2 * pause, self._first_pause), self._longest_pause)
        last, restarts = terminated(self.main), self.main.restarts + 1
        message = _CRASH.format(_duration(pause))
        self.main = Containers(WAITING, "CrashLoopBackOff", message, restarts=restarts, last=last)
        self.resume_at = wall + pause
        if not pause:
            self._start(wall)
        return self.resume_at if pause else wall + script.run

    def _end(self, wall: float, code: int) -> None:
        self.main.state, self.main.finished, self.main.exit_code = ENDED, wall, code
        self.main.ready, self.main.reason = False, ""

    def _deadline(self, pod: Unstructured) -> float:
        seconds = (pod.raw.get("spec") or {}).get("activeDeadlineSeconds")
        return math.inf if seconds is None else self.began + float(seconds)

    def _fail_deadline(self, wall: float) -> None:
        if self.main.state == RUNNING:
            self._end(wall, _SIGKILL)
        self.phase, self.reason, self.message = "Failed", "DeadlineExceeded", DEADLINE


def begin(wall: float, pod_ip: str, crash_backoff: tuple[float, float]) -> Life:
    """The life of a pod that was admitted now."""
    return Life(wall, format_time(wall), pod_ip, crash_backoff)


def resume(pod: Unstructured, pod_ip: str, wall: float, crash_backoff: tuple[float, float]) -> Life:
    """The life of a pod that was admitted before this process began, as its status tells it."""
    status: Raw = pod.raw.get("status") or {}
    began = parse_time(status.get("startTime")) or wall
    life = Life(began, status.get("startTime") or format_time(wall), status.get("podIP") or pod_ip, crash_backoff)
    life.phase = status.get("phase") or "Pending"
    life.reason, life.message = status.get("reason") or "", status.get("message") or ""
    life.started_once = bool(status.get("podIP"))
    inits = status.get("initContainerStatuses") or []
    begun = [_started(s) for s in inits if _started(s) is not None]
    life.init_started = begun[0] or 0.0 if begun else 0.0
    states = status.get("containerStatuses") or []
    first: Raw = states[0] if states else {}
    life.main = _containers(first)
    if life.main.state != WAITING or life.main.restarts:
        life.inits_done = len(inits)
    if life.main.restarts:
        life._pause = backoff(life.main.restarts, life._first_pause, life._longest_pause)
        if life.main.state == WAITING:
            ended = parse_time((life.main.last or {}).get("finishedAt")) or wall
            life.resume_at = ended + (life._pause / 2 if life.main.restarts > 1 else 0.0)
    return life


def _containers(status: Raw) -> Containers:
    found = Containers(restarts=int(status.get("restartCount") or 0), ready=bool(status.get("ready")))
    found.last = (status.get("lastState") or {}).get("terminated")
    state = status.get("state") or {}
    if "running" in state:
        found.state, found.reason = RUNNING, ""
        found.started = parse_time(state["running"].get("startedAt")) or 0.0
    elif "terminated" in state:
        ended = state["terminated"]
        found.state, found.exit_code = ENDED, int(ended.get("exitCode") or 0)
        found.started = parse_time(ended.get("startedAt")) or 0.0
        found.finished = parse_time(ended.get("finishedAt")) or 0.0
    elif "waiting" in state:
        found.reason = state["waiting"].get("reason") or ""
        found.message = (state["waiting"].get("message") or "").partition("=")[0]  # without the names
    return found


def _started(status: Raw) -> float | None:
    state = status.get("state") or {}
    for kind in ("running", "terminated"):
        if kind in state:
            return parse_time(state[kind].get("startedAt"))
    return None


def _duration(seconds: float) -> str:
    """As Go prints it: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def facts(life: Life) -> Before:
    return (life.phase, life.main.restarts, life.main.state)


class KubeletEvents:
    """Tells what became of pods and nodes."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def problem(self, regarding: Unstructured, text: str) -> None:
        self._events.warning(REPORTER, regarding, "InvalidAnnotation", text)

    def rejected(self, pod: Unstructured, reason: str, message: str) -> None:
        self._events.warning(REPORTER, pod, reason, message)

    def killing(self, pod: Unstructured) -> None:
        for container in _containers_of(pod):
            self._events.normal(REPORTER, pod, "Killing", f"Stopping container {container.get('name')}")

    def went_on(self, pod: Unstructured, life: Life, before: Before) -> None:
        phase, restarts, state = before
        if life.main.state == RUNNING and (restarts, state) != (life.main.restarts, RUNNING):
            self._started(pod)
        if life.main.reason == "CrashLoopBackOff" and restarts != life.main.restarts:
            names = " ".join(str(container.get("name")) for container in _containers_of(pod))
            note = f"Back-off restarting failed container {names} in pod {pod.name}"
            self._events.warning(REPORTER, pod, "BackOff", note)
        if life.reason == "DeadlineExceeded" and phase != life.phase:
            self._events.normal(REPORTER, pod, "DeadlineExceeded", life.message)

    def _started(self, pod: Unstructured) -> None:
        for container in _containers_of(pod):
            note = f'Container image "{container.get("image")}" already present on machine'
            self._events.normal(REPORTER, pod, "Pulled", note)
            self._events.normal(REPORTER, pod, "Created", "Container created")
            self._events.normal(REPORTER, pod, "Started", "Container started")


def _containers_of(pod: Unstructured) -> list[dict[str, Any]]:
    return list((pod.raw.get("spec") or {}).get("containers") or ())
