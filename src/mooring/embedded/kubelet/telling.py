"""Events of kubelets, worded as upstream's."""

from __future__ import annotations

from typing import Any

from mooring.api.resources import Unstructured
from mooring.embedded.controllers.eventing import Events
from mooring.embedded.kubelet.lives import Life
from mooring.embedded.kubelet.pod_status import RUNNING

REPORTER = "kubelet"
Before = tuple[str, int, str]
"""Phase, restarts and state of a life before it went on."""


def facts(life: Life) -> Before:
    return (life.phase, life.main.restarts, life.main.state)


class Teller:
    """Tells what became of pods and nodes."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def problem(self, regarding: Unstructured, text: str) -> None:
        self._events.warning(REPORTER, regarding, "InvalidAnnotation", text)

    def rejected(self, pod: Unstructured, reason: str, message: str) -> None:
        self._events.warning(REPORTER, pod, reason, message)

    def killing(self, pod: Unstructured) -> None:
        for container in _containers(pod):
            self._events.normal(REPORTER, pod, "Killing", f"Stopping container {container.get('name')}")

    def went_on(self, pod: Unstructured, life: Life, before: Before) -> None:
        phase, restarts, state = before
        if life.main.state == RUNNING and (restarts, state) != (life.main.restarts, RUNNING):
            self._started(pod)
        if life.main.reason == "CrashLoopBackOff" and restarts != life.main.restarts:
            names = " ".join(str(container.get("name")) for container in _containers(pod))
            note = f"Back-off restarting failed container {names} in pod {pod.name}"
            self._events.warning(REPORTER, pod, "BackOff", note)
        if life.reason == "DeadlineExceeded" and phase != life.phase:
            self._events.normal(REPORTER, pod, "DeadlineExceeded", life.message)

    def _started(self, pod: Unstructured) -> None:
        for container in _containers(pod):
            note = f'Container image "{container.get("image")}" already present on machine'
            self._events.normal(REPORTER, pod, "Pulled", note)
            self._events.normal(REPORTER, pod, "Created", "Container created")
            self._events.normal(REPORTER, pod, "Started", "Container started")


def _containers(pod: Unstructured) -> list[dict[str, Any]]:
    return list((pod.raw.get("spec") or {}).get("containers") or ())
