"""The status of a pod at one moment of its life, as a kubelet reports it. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from moorage.api.resources import Unstructured
from moorage.api.times import format_time
from moorage.embedded.controllers.kinds import with_condition

Raw = dict[str, Any]

WAITING, RUNNING, ENDED = "waiting", "running", "ended"


@dataclass(slots=True)
class Containers:
    """What all containers of one list are doing; times in Unix seconds."""

    state: str = WAITING
    reason: str = "ContainerCreating"
    message: str = ""
    started: float = 0.0
    finished: float = 0.0
    exit_code: int = 0
    restarts: int = 0
    ready: bool = False
    last: Raw | None = None
    """How the previous run ended, as lastState.terminated."""


@dataclass(slots=True)
class Picture:
    """Everything that a status is made of."""

    phase: str
    start_time: str
    host_ip: str
    pod_ip: str
    main: Containers
    inits_done: int = 0
    """How many init containers have ended; sidecars count when they have started."""
    init_started: float = 0.0
    reason: str = ""
    message: str = ""
    networked: bool = True
    """Whether the pod's sandbox is there."""
    sidecars: Containers = field(default_factory=Containers)


def rejected(pod: Unstructured, reason: str, message: str, wall: float) -> Raw:
    """The status of a pod that its node refused."""
    status = dict(pod.raw.get("status") or {})
    return {
        **status,
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": format_time(wall),
        **_observed(pod),
    }


def status_of(pod: Unstructured, picture: Picture, wall: float) -> Raw:
    """The whole status; what other writers have put there stays."""
    spec = pod.raw.get("spec") or {}
    status: Raw = {k: v for k, v in (pod.raw.get("status") or {}).items() if k not in ("reason", "message")}
    status.update(phase=picture.phase, startTime=picture.start_time, **_observed(pod))
    if picture.reason:
        status.update(reason=picture.reason, message=picture.message)
    status.update(hostIP=picture.host_ip, hostIPs=[{"ip": picture.host_ip}])
    if picture.networked:
        status.update(podIP=picture.pod_ip, podIPs=[{"ip": picture.pod_ip}])
    status.setdefault("qosClass", qos_class(spec))
    inits = spec.get("initContainers") or []
    if inits:
        status["initContainerStatuses"] = [_init(pod, c, i, picture) for i, c in enumerate(inits)]
    main = picture.main
    if main.state == WAITING and picture.inits_done < len(inits) and main.reason == "ContainerCreating":
        main = Containers(reason="PodInitializing")
    status["containerStatuses"] = [_container(pod, c, main) for c in spec.get("containers") or ()]
    status["conditions"] = _conditions(pod, picture, format_time(wall))
    return status


def qos_class(spec: Raw) -> str:
    """Guaranteed, Burstable or BestEffort."""
    every = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    guaranteed, asked = True, False
    for container in every:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        asked = asked or any(name in (*limits, *requests) for name in ("cpu", "memory"))
        for name in ("cpu", "memory"):
            if name not in limits or requests.get(name, limits[name]) != limits[name]:
                guaranteed = False
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _observed(pod: Unstructured) -> Raw:
    return {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}


def _init(pod: Unstructured, container: Raw, index: int, picture: Picture) -> Raw:
    is_sidecar = container.get("restartPolicy") == "Always"
    if is_sidecar and index < picture.inits_done:
        return _container(pod, container, picture.sidecars)
    if index < picture.inits_done:
        done = Containers(ENDED, started=picture.init_started, finished=picture.init_started, ready=True)
        return _container(pod, container, done)
    if index == picture.inits_done and picture.init_started and picture.main.state == WAITING:
        return _container(pod, container, Containers(RUNNING, started=picture.init_started))
    return _container(pod, container, Containers(reason="PodInitializing"))


def _container(pod: Unstructured, container: Raw, now: Containers) -> Raw:
    name, image = container.get("name", ""), container.get("image", "")
    started = now.state == RUNNING
    status: Raw = {
        "name": name,
        "image": image,
        "imageID": f"{image}@sha256:{_digest(image)}" if now.state != WAITING or now.restarts else "",
        "ready": now.ready,
        "restartCount": now.restarts,
        "started": started,
        "state": _state(pod, name, now),
        "lastState": {"terminated": now.last} if now.last else {},
    }
    if now.state != WAITING:
        status["containerID"] = f"moorage://{_digest(f'{pod.uid}/{name}/{now.restarts}')}"
    resources = container.get("resources") or {}
    if started and resources:
        status["resources"] = resources
        if resources.get("requests"):
            status["allocatedResources"] = resources["requests"]
    return status


def terminated(now: Containers) -> Raw:
    """The state of a run that has ended."""
    reason = "Completed" if now.exit_code == 0 else "Error"
    return {
        "exitCode": now.exit_code,
        "reason": now.reason if now.reason not in ("", "ContainerCreating") else reason,
        "startedAt": format_time(now.started),
        "finishedAt": format_time(now.finished),
    }


def _state(pod: Unstructured, name: str, now: Containers) -> Raw:
    if now.state == RUNNING:
        return {"running": {"startedAt": format_time(now.started)}}
    if now.state == ENDED:
        return {"terminated": terminated(now)}
    waiting = {"reason": now.reason}
    if now.message:
        waiting["message"] = f"{now.message}={name} pod={pod.name}_{pod.namespace}({pod.uid})"
    return {"waiting": waiting}


def _conditions(pod: Unstructured, picture: Picture, now: str) -> list[Raw]:
    main = picture.main
    inits = len((pod.raw.get("spec") or {}).get("initContainers") or ())
    ended = picture.phase in ("Succeeded", "Failed")
    names = [c.get("name", "") for c in (pod.raw.get("spec") or {}).get("containers") or ()]
    unready: Raw = {}
    if picture.phase == "Succeeded":
        unready = {"reason": "PodCompleted"}
    elif picture.phase == "Failed":
        unready = {"reason": "PodFailed"}
    elif not main.ready:
        text = f"containers with unready status: [{' '.join(names)}]"
        unready = {"reason": "ContainersNotReady", "message": text}
    initialized: Raw = {}
    if picture.inits_done < inits and not ended:
        missing = (pod.raw["spec"]["initContainers"])[picture.inits_done :]
        text = f"containers with incomplete status: [{' '.join(c.get('name', '') for c in missing)}]"
        initialized = {"reason": "ContainersNotInitialized", "message": text}
    elif picture.phase == "Succeeded":
        initialized = {"reason": "PodCompleted"}
    is_ready = main.ready and not ended
    wanted = [
        ("PodReadyToStartContainers", picture.networked and not ended, {}),
        ("Initialized", "message" not in initialized, initialized),
        ("Ready", is_ready and _gates_open(pod), unready),
        ("ContainersReady", is_ready, unready),
    ]
    conditions = list((pod.raw.get("status") or {}).get("conditions") or ())
    for kind, value, why in wanted:
        new = {"type": kind, "status": "True" if value else "False", **why}
        conditions = with_condition(conditions, new, now)
    return conditions


def _gates_open(pod: Unstructured) -> bool:
    """Whether the conditions hold that spec.readinessGates names."""
    gates = (pod.raw.get("spec") or {}).get("readinessGates") or ()
    true = {c.get("type") for c in (pod.raw.get("status") or {}).get("conditions") or () if c.get("status") == "True"}
    return all(gate.get("conditionType") in true for gate in gates)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
