"""What a kubelet decides about a pod: how long its steps take, and whether the node admits it.

Settings and annotations of pods and nodes control the simulated behaviour. For admission, the pods that the
node has admitted count, whatever a scheduler believes: a pod that does not fit fails at once, with the reason
and message of pkg/kubelet/lifecycle/predicate.go.

On pods (in a pod template they hold for all its pods); times in seconds, fractions allowed:

| annotation | meaning | default |
|---|---|---|
| `moorage.dev/start-seconds` | from admission to the first container running | 0.3 to 0.9, by the pod's UID |
| `moorage.dev/init-seconds` | how long each init container runs | 0.2 |
| `moorage.dev/ready-seconds` | from running to ready; `never` for a pod that never becomes ready | 0 |
| `moorage.dev/run-seconds` | how long containers run; `forever` | forever; pods of Jobs or to attach to 5 |
| `moorage.dev/exit-code` | with which code they end | 0 |
| `moorage.dev/stop-seconds` | how long they take to stop after a delete, at most the grace period | 0.5 |
| `moorage.dev/usage-cpu` | simulated cpu usage of the pod, such as `250m` | 40 % of its requests |
| `moorage.dev/usage-memory` | simulated memory usage of the pod, such as `64Mi` | 40 % of its requests |

On nodes:

| annotation | meaning |
|---|---|
| `moorage.dev/fail` | `"true"`: the node is dead. No heartbeat, no change of its pods |
| `moorage.dev/conditions` | conditions that the node reports, such as `MemoryPressure=True,Ready=False` |

A value that cannot be read counts as not given, and is reported as an event on the object.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from moorage.api.node import Node
from moorage.api.node_selectors import required_node_affinity
from moorage.api.pod import Pod
from moorage.api.requests import PODS, container_host_ports, is_extended_resource, node_allocatable, pod_requests
from moorage.api.resources import Unstructured
from moorage.api.taints import NO_EXECUTE, find_untolerated

PREFIX = "moorage.dev/"
START, INIT, READY = f"{PREFIX}start-seconds", f"{PREFIX}init-seconds", f"{PREFIX}ready-seconds"
RUN, EXIT_CODE, STOP = f"{PREFIX}run-seconds", f"{PREFIX}exit-code", f"{PREFIX}stop-seconds"
USAGE_CPU, USAGE_MEMORY = f"{PREFIX}usage-cpu", f"{PREFIX}usage-memory"
FAIL, CONDITIONS = f"{PREFIX}fail", f"{PREFIX}conditions"
_ANY = "0.0.0.0"
_ORDER = {PODS: 0, "cpu": 1, "memory": 2, "ephemeral-storage": 3}
_TAINTED = "node(s) had taints that the pod didn't tolerate"


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """Times in seconds."""

    start_seconds: tuple[float, float] = (0.3, 0.9)
    """From admission to the first container running: drawn from this range by the pod's UID."""
    init_seconds: float = 0.2
    """How long each init container runs."""
    ready_seconds: float = 0.0
    """From running to ready."""
    stop_seconds: float = 0.5
    """How long a pod takes to stop, within its grace period."""
    job_run_seconds: float = 5.0
    """How long pods of Jobs run; all others run until they are deleted."""
    crash_backoff: tuple[float, float] = (10.0, 300.0)
    """The first and the longest pause before a container that ended is started again."""

    heartbeat_seconds: float = 10.0
    """Between two renewals of a node's lease, in clusters of up to `heartbeats_per_second` times as many nodes."""
    heartbeats_per_second: float = 200.0
    """Renewals of all nodes together; larger clusters renew less often."""
    lease_seconds: int = 40
    """The least leaseDurationSeconds."""

    writes_per_second: float = 500.0
    """Pod status writes of all nodes together, so that starting pods leaves room for scheduling others."""
    busy_backlog: int = 200
    """With more pods than this waiting for a write, the step ContainerCreating is left out."""
    workers: int = 16
    """Writes under way at the same time."""

    usage_fraction: float = 0.4
    """Simulated usage, as a fraction of what a pod requests."""
    usage_noise: float = 0.25
    """How far usage strays from that, in both directions, as a fraction of it."""

    node_selector: str = ""
    """Only nodes with these labels are simulated; empty: all."""
    version: str = "v1.37.1"
    """The kubelet version that nodes report."""


@dataclass(frozen=True, slots=True)
class Script:
    """What one pod does, in seconds; infinity stands for never."""

    start: float
    init: float
    ready: float
    run: float
    exit_code: int
    stop: float
    problems: tuple[str, ...] = ()
    """What could not be read, as sentences."""


def script_of(pod: Unstructured, settings: KubeletSettings) -> Script:
    given, problems = pod.annotations, []

    def seconds(name: str, default: float, never: str = "") -> float:
        text = given.get(name)
        if text is None:
            return default
        if never and text == never:
            return math.inf
        value = _seconds(text)
        if value is None:
            words = f" or {never}" if never else ""
            problems.append(f"{name} is {text!r}; write seconds of 0 or more{words}")
            return default
        return value

    code_text = given.get(EXIT_CODE, "0")
    code = int(code_text) if code_text.isascii() and code_text.isdigit() and int(code_text) < 256 else None
    if code is None:
        problems.append(f"{EXIT_CODE} is {code_text!r}; write a number from 0 to 255")
    low, high = settings.start_seconds
    ends = any(o.controller and o.kind == "Job" for o in pod.metadata.owner_references) or _is_interactive(pod)
    return Script(
        start=seconds(START, low + (high - low) * chance(pod.uid)),
        init=seconds(INIT, settings.init_seconds),
        ready=seconds(READY, settings.ready_seconds, "never"),
        run=seconds(RUN, settings.job_run_seconds if ends else math.inf, "forever"),
        exit_code=code or 0,
        stop=seconds(STOP, settings.stop_seconds),
        problems=tuple(problems),
    )


def _is_interactive(pod: Unstructured) -> bool:
    """Whether the pod ends when its only client has left, as `kubectl run --rm -i --restart=Never` makes it."""
    spec = pod.raw.get("spec") or {}
    once = any(container.get("stdinOnce") for container in spec.get("containers") or ())
    return once and spec.get("restartPolicy") in ("Never", "OnFailure")


def chance(text: str) -> float:
    """Return a number from 0 to below 1 that is always the same for a text."""
    return zlib.crc32(text.encode()) / 2**32


def node_conditions(annotations: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Condition type → status that a node is asked to report, and what could not be read."""
    wanted: dict[str, str] = {}
    problems = []
    for part in filter(None, (p.strip() for p in annotations.get(CONDITIONS, "").split(","))):
        kind, _, status = part.partition("=")
        if kind and status in ("True", "False", "Unknown"):
            wanted[kind] = status
        else:
            problems.append(f"{CONDITIONS} has {part!r}; write Type=True, Type=False or Type=Unknown")
    return wanted, problems


def is_dead(node: Unstructured) -> bool:
    return node.annotations.get(FAIL, "").lower() == "true"


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a pod is rejected, as in its status."""

    reason: str
    message: str


class KubeletLoad:
    """The pods that a node has admitted, by UID."""

    def __init__(self) -> None:
        self._requests: dict[str, dict[str, int]] = {}
        self._ports: dict[str, tuple[tuple[str, str, int], ...]] = {}
        self._used: dict[str, int] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._requests

    def used(self, name: str) -> int:
        return len(self._requests) if name == PODS else self._used.get(name, 0)

    def add(self, pod: Pod) -> None:
        """Count a pod, or update its requests."""
        self.remove(pod.uid)
        requests = pod_requests(pod)
        self._requests[pod.uid] = requests
        ports = container_host_ports(pod)
        if ports:
            self._ports[pod.uid] = ports
        for name, amount in requests.items():
            self._used[name] = self._used.get(name, 0) + amount

    def remove(self, uid: str) -> None:
        for name, amount in self._requests.pop(uid, {}).items():
            self._used[name] -= amount
        self._ports.pop(uid, None)

    def judge(self, pod: Pod, node: Node) -> Rejection | None:
        """Return why the pod cannot run here, or None."""
        return self._lack(pod, node) or _misplaced(pod, node) or self._port_conflict(pod) or _untolerated(pod, node)

    def _lack(self, pod: Pod, node: Node) -> Rejection | None:
        capacity = node_allocatable(node)
        wanted = {PODS: 1, **pod_requests(pod)}
        for name, amount in sorted(wanted.items(), key=lambda item: (_ORDER.get(item[0], 9), item[0])):
            if not amount or (is_extended_resource(name) and name not in capacity):
                continue  # as upstream: a device that the node does not know is the device manager's matter
            used, limit = self.used(name), capacity.get(name, 0)
            if name == PODS and name not in capacity:
                continue
            if used + amount > limit:
                text = f"Node didn't have enough resource: {name}, "
                text += f"requested: {amount}, used: {used}, capacity: {limit}"
                return Rejection(f"OutOf{name}", text)
        return None

    def _port_conflict(self, pod: Pod) -> Rejection | None:
        taken = [port for ports in self._ports.values() for port in ports]
        for port in container_host_ports(pod):
            if any(_collide(port, other) for other in taken):
                return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
        return None


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    if (one[0], one[2]) != (other[0], other[2]):
        return False
    return one[1] == other[1] or _ANY in (one[1], other[1])


def _misplaced(pod: Pod, node: Node) -> Rejection | None:
    if not required_node_affinity(pod).matches(node.labels, node.name):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    return None


def _untolerated(pod: Pod, node: Node) -> Rejection | None:
    if find_untolerated(node.taints, pod.spec.tolerations, (NO_EXECUTE,)) is not None:
        return _predicate("TaintToleration", _TAINTED)
    return None


def _predicate(name: str, why: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {why}")
