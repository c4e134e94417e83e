"""The columns of pods. STATUS summarizes phase, reason and container states, as in printPod of kubectl."""

from __future__ import annotations

from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    Cells,
    Printer,
    age,
    dig,
    flag,
    human_duration,
    instant,
    labels,
    listed,
    maps,
    number,
    string,
    terminating,
    text,
    wide,
)
from moorage.store.objects import Raw

_FINISHED = ("Succeeded", "Failed")


def _pod(raw: Raw, now: float) -> Cells:
    shown = _Shown(raw)
    statuses = maps(raw, "status", "podIPs")
    return [
        text(raw, "metadata", "name"),
        f"{shown.ready}/{shown.total}",
        shown.status,
        shown.restarts_text(now),
        age(raw, now),
        text(statuses[0], "ip", default=NONE) if statuses else text(raw, "status", "podIP", default=NONE),
        text(raw, "spec", "nodeName", default=NONE),
        text(raw, "status", "nominatedNodeName", default=NONE),
        _readiness_gates(raw),
    ]


class _Shown:
    """READY, STATUS and RESTARTS of one pod; they are found together, container by container."""

    def __init__(self, raw: Raw) -> None:
        self.ready = 0
        self.restarts = 0
        self._last_restart = 0.0
        self._sidecars = {
            text(c, "name") for c in maps(raw, "spec", "initContainers") if c.get("restartPolicy") == "Always"
        }
        self.total = len(maps(raw, "spec", "containers")) + len(self._sidecars)
        self.status = _first_status(raw)
        initializing = self._read_init_containers(raw)
        if not initializing or _condition_is_true(raw, "Initialized"):
            self._read_containers(raw)
        if terminating(raw) and text(raw, "status", "reason") == "NodeLost":
            self.status = "Unknown"
        elif terminating(raw) and text(raw, "status", "phase") not in _FINISHED:
            self.status = "Terminating"

    def restarts_text(self, now: float) -> str:
        if not self.restarts or not self._last_restart:
            return str(self.restarts)
        return f"{self.restarts} ({human_duration(now - self._last_restart)} ago)"

    def _read_init_containers(self, raw: Raw) -> bool:
        """Whether an init container is still to finish; then the status names it."""
        statuses = maps(raw, "status", "initContainerStatuses")
        for index, container in enumerate(statuses):
            self._count_restarts(container)
            terminated = dig(container, "state", "terminated")
            if isinstance(terminated, dict) and not number(terminated, "exitCode"):
                continue
            if text(container, "name") in self._sidecars and flag(container, "started"):
                self.ready += flag(container, "ready")
                continue
            waiting = text(container, "state", "waiting", "reason")
            if isinstance(terminated, dict):
                self.status = f"Init:{_end(terminated)}"
            elif waiting and waiting != "PodInitializing":
                self.status = f"Init:{waiting}"
            else:
                self.status = f"Init:{index}/{len(maps(raw, 'spec', 'initContainers'))}"
            return True
        return False

    def _read_containers(self, raw: Raw) -> None:
        self._forget_finished_init_containers(raw)
        running, failure = False, ""
        for container in reversed(maps(raw, "status", "containerStatuses")):
            self._count_restarts(container)
            terminated = dig(container, "state", "terminated")
            waiting = text(container, "state", "waiting", "reason")
            if waiting:
                self.status = waiting
            elif isinstance(terminated, dict):
                self.status = _end(terminated)
                failure = self.status if number(terminated, "exitCode") else failure
            elif flag(container, "ready") and dig(container, "state", "running") is not None:
                running = True
                self.ready += 1
        if self.status == "Completed":
            self.status = self._some_completed(raw, running, failure)

    def _forget_finished_init_containers(self, raw: Raw) -> None:
        """Once the containers run, only sidecars among the init containers count for RESTARTS."""
        self.restarts, self._last_restart = 0, 0.0
        for container in maps(raw, "status", "initContainerStatuses"):
            if text(container, "name") in self._sidecars:
                self._count_restarts(container)

    def _some_completed(self, raw: Raw, running: bool, failure: str) -> str:
        if running and _condition_is_true(raw, "Ready"):
            return "Running"
        return failure or ("NotReady" if running else "Completed")

    def _count_restarts(self, container: Raw) -> None:
        self.restarts += number(container, "restartCount")
        ended = instant(dig(container, "lastState", "terminated", "finishedAt"))
        self._last_restart = max(self._last_restart, ended or 0.0)


def _first_status(raw: Raw) -> str:
    gated = any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated"
        for c in maps(raw, "status", "conditions")
    )
    return "SchedulingGated" if gated else text(raw, "status", "reason") or text(raw, "status", "phase")


def _end(terminated: Raw) -> str:
    """Why a container ended."""
    if reason := text(terminated, "reason"):
        return reason
    if signal := number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(terminated, 'exitCode')}"


def _condition_is_true(raw: Raw, kind: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == "True" for c in maps(raw, "status", "conditions"))


def _readiness_gates(raw: Raw) -> str:
    gates = [text(gate, "conditionType") for gate in maps(raw, "spec", "readinessGates")]
    if not gates:
        return NONE
    return f"{sum(_condition_is_true(raw, gate) for gate in gates)}/{len(gates)}"


def row_conditions(raw: Raw) -> list[Raw] | None:
    """What a table says about a finished pod, beside its cells."""
    phase = text(raw, "status", "phase")
    if phase not in _FINISHED:
        return None
    how = "has completed successfully" if phase == "Succeeded" else "failed"
    return [{"type": "Completed", "status": "True", "reason": phase, "message": f"The pod {how}."}]


PODS = Printer(
    (
        NAME,
        string("Ready", "", description="Containers that are ready, of all."),
        string("Status", "", description="What the pod is doing, or what keeps it from running."),
        string("Restarts", "", description="How often its containers were restarted, and when last."),
        AGE,
        *(wide(name, "") for name in ("IP", "Node", "Nominated Node", "Readiness Gates")),
    ),
    row=_pod,
)
POD_TEMPLATES = Printer(
    (
        NAME,
        string("Containers", listed(".template.spec.containers", "name")),
        string("Images", listed(".template.spec.containers", "image")),
        string("Pod Labels", labels(".template.metadata.labels")),
    )
)
