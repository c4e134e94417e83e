"""`moorage check --try`: schedule one pod per profile on two nodes in memory, and watch the plugins do it.

It is the real scheduler in virtual time, as in the test kit. No package may import the kit, so a trial is composed here
from the same parts: `sim.loop`, `store`, `app` and `hook_limit`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage.api.failures import failure_text, place_of
from moorage.api.meta import Object
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.app.configuration import Configuration
from moorage.app.scheduler import Scheduler
from moorage.framework.nodes import NodeView
from moorage.framework.points import Plugin
from moorage.framework.status import Status
from moorage.run.hook_limit import HookLimit, NeverReturns
from moorage.runtime.registry import Registry
from moorage.runtime.watched import Timer, Watch
from moorage.sim.loop import SimulationError, VirtualClock, VirtualLoop, finish
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.telemetry import logs

NODE_COUNT = 2
"""Nodes of a trial: with one node no plugin scores."""
SECONDS = 30.0
"""Virtual seconds that a trial lasts, so that a failed attempt is repeated and background work runs."""
SLOW_HOOK = 0.1
"""Seconds of real time that one call of a hook may take. The scheduler waits for it."""
HOOK_LIMIT = 10.0
"""Seconds of real time after which a call is ended."""
RETRYING = "Error scheduling pod; retrying"
"""The log message that repeats the failure of a plugin for its pod."""

ADVICE = {
    "PreFilter": "return None, Status.unschedulable(reason) or a PreFilterResult",
    "Filter": "return None to keep the node, or Status.unschedulable(reason) to refuse it",
    "Score": "return a number; after normalization it must be in 0-100",
    "Permit": "return None, Status.unschedulable(reason) or Status.wait(timeout=seconds)",
}
"""What a hook may return, for those that are often wrong."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the pod of a profile."""

    profile: str
    node: str
    """The node that it was bound to; empty if it was not bound."""
    message: str
    """The last reason why it was not bound."""


@dataclass(slots=True)
class TriedPlugins:
    """What a trial found."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be tried."""
    outcomes: list[Outcome] = field(default_factory=list)


def try_out(configuration: Configuration, timer: Timer = time.perf_counter) -> TriedPlugins:
    """Schedule one pod per profile and return what the plugins did wrong.

    A hook counts as slow only if it is slow in two trials, so that a busy machine makes no problem.
    """
    trial, slow = _try(configuration, timer)
    if slow:
        slow &= _try(configuration, timer)[1]
    trial.problems += [
        f"plugin {plugin!r}: {hook}() took longer than {1000 * SLOW_HOOK:g} ms, and every pod waits for it; move "
        "the work to run() or handle.spawn(), and let the hook read the result"
        for plugin, hook in sorted(slow)
    ]
    return trial


def _try(configuration: Configuration, timer: Timer) -> tuple[TriedPlugins, set[tuple[str, str]]]:
    seen = _Seen()
    watched = Watch(timer, seen).registry(configuration.registry)
    loop, trial = VirtualLoop(0), TriedPlugins()
    with _Captured() as log:
        try:
            with HookLimit(loop, HOOK_LIMIT):
                loop.run_until_complete(_schedule(configuration, watched, trial.outcomes))
        except NeverReturns as error:
            trial.problems.append(f"{error}; end the loop, or move the work to run()")
        finally:
            finish(loop)
            loop.close()
    _report(log.records, trial)
    trial.problems += seen.problems
    return trial, seen.slow


async def _schedule(configuration: Configuration, watched: Registry, outcomes: list[Outcome]) -> None:
    clock = VirtualClock()
    store = Store(clock.wall, random.Random(1))
    for number in range(1, NODE_COUNT + 1):
        store.load(NODES, _node(f"node-{number}", f"zone-{number}"))
    plain = msgspec.structs.replace(configuration.config, extenders=())  # an extender would be asked over the network
    tried = dataclasses.replace(configuration, config=plain, registry=watched)
    scheduler = Scheduler(
        LocalClient(store, clock), config=tried, clock=clock, random=random.Random(0), instance="moorage-check"
    )
    async with scheduler:
        names = {profile.scheduler_name: f"try-{number}" for number, profile in enumerate(configuration.profiles)}
        for profile, name in names.items():
            store.load(PODS, _pod(name, profile))
        await asyncio.sleep(SECONDS)
        for profile, name in names.items():
            pod, record = store.get(PODS, name, "default").typed, scheduler.records.last(f"default/{name}")
            assert isinstance(pod, Pod)
            message = record.message if record is not None else "no attempt was made; see PreEnqueue"
            outcomes.append(Outcome(profile, pod.spec.node_name, message))


def _node(name: str, zone: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "kubernetes.io/os": "linux"}
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def _pod(name: str, profile: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "try"}},
        "spec": {"schedulerName": profile, "containers": [container], "nodeSelector": {"kubernetes.io/os": "linux"}},
    }


class _Seen:
    """Notes slow hooks, changed objects and questionable answers."""

    def __init__(self) -> None:
        self.slow: set[tuple[str, str]] = set()
        self._problems: dict[str, None] = {}

    @property
    def problems(self) -> list[str]:
        return list(self._problems)

    def before(self, args: tuple[object, ...]) -> list[bytes]:
        return [msgspec.json.encode(obj) for obj in _objects(args)]

    def after(self, plugin: Plugin, hook: str, seconds: float, kept: list[bytes], args: tuple[object, ...]) -> None:
        if seconds > SLOW_HOOK:
            self.slow.add((plugin.name, hook))
        for obj, before in zip(_objects(args), kept, strict=True):
            if msgspec.json.encode(obj) != before:
                kind = type(obj).__name__.lower()
                self._note(
                    plugin, hook, f"changed the {kind} that it was given, which all plugins share; change a copy"
                )

    def answered(self, plugin: Plugin, hook: str, answer: object) -> None:
        if not isinstance(answer, Status) or not answer.is_wait:
            return
        if answer.timeout is None:
            text = "returned Wait without a timeout, which holds the pod and its node for 15 minutes"
        elif answer.timeout <= 0:
            text = f"returned Wait with the timeout {answer.timeout:g}, after which the pod is rejected at once"
        else:
            return
        self._note(plugin, hook, f"{text}; return Status.wait(timeout=seconds)")

    def _note(self, plugin: Plugin, hook: str, text: str) -> None:
        self._problems[f"plugin {plugin.name!r}: {hook}() {text}"] = None


def _objects(args: Iterable[object]) -> list[Object]:
    found = [arg.node if isinstance(arg, NodeView) else arg for arg in args]
    return [obj for obj in found if isinstance(obj, Object)]


class _Captured(logging.Handler):
    """Keeps the errors that the scheduler logs inside the block, instead of printing them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def __enter__(self) -> _Captured:
        logger = logging.getLogger(logs.ROOT)
        self._propagated, logger.propagate = logger.propagate, False
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger(logs.ROOT)
        logger.removeHandler(self)
        logger.propagate = self._propagated


def _report(records: Iterable[logging.LogRecord], trial: TriedPlugins) -> None:
    """Turn logged errors into problems, each once."""
    found: dict[str, None] = {}
    explained: set[object] = set()
    for record in records:
        values = getattr(record, logs.VALUES, {})
        error, pod = values.get(logs.ERR), values.get("pod")
        if record.getMessage() == RETRYING:
            if pod not in explained:
                found[f"pod {pod}: {error}; {ADVICE['Score']}" if "score" in str(error) else f"pod {pod}: {error}"] = (
                    None
                )
            continue
        explained.add(pod)
        if isinstance(error, BaseException) and _reaches_outside(error):
            trial.notes.append(f"{_who(record)} could not be tried: {failure_text(error)}")
        else:
            found[f"{_who(record)}: {_what(error, str(values.get('point', '')))}"] = None
    trial.problems += found
    trial.notes = list(dict.fromkeys(trial.notes))


def _who(record: logging.LogRecord) -> str:
    values = getattr(record, logs.VALUES, {})
    plugin = values.get("plugin") or str(values.get("task", "")).partition(":")[0]
    if not plugin:
        return record.getMessage()
    return f"plugin {plugin!r}: {values.get('point') or 'background work'}"


def _what(error: object, point: str) -> str:
    if not isinstance(error, BaseException):
        return str(error)
    place = place_of(error)
    text = f"{failure_text(error)}{f' ({place})' if place else ''}"
    wrong_answer = isinstance(error, TypeError | ValueError) and not place
    return f"{text}; {ADVICE[point]}" if wrong_answer and point in ADVICE else text


def _reaches_outside(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SimulationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
