"""Cases that ask one plugin alone, which need not be one of the default profile: the answers of
scheduler-plugins are compared in this form. See docs/evaluate.md.

A case names its `plugin`, which the production runtime builds and asks in a profile of its own. What a case
has beside the cluster of `evaluating` is read here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Any, Protocol, cast, runtime_checkable

from mooring.api import decoding
from mooring.api.errors import MooringError
from mooring.api.pod import Pod
from mooring.api.resources import PODS
from mooring.api.times import format_time, parse_time
from mooring.app.clock import SystemClock
from mooring.app.configuring import Configuration, configure
from mooring.app.evaluating import INPUTS, BadCase, World
from mooring.app.offline import offline_engine
from mooring.config.types import API_VERSION, KIND
from mooring.contrib.metrics import load_watcher
from mooring.framework.events import QueuedPod

CLUSTER = (*INPUTS, "pod")
"""The keys of the input that a `World` reads."""


def evaluate_plugin(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer for one case; a case that cannot be read gives an `error`."""
    try:
        plugin, data = str(case["plugin"]), case.get("input") or {}
        args = (data.get("args") or {}).get(plugin)
        configured = configuration_of(plugin, args)
        answer: dict[str, Any] = {}
        if "pod" in data and (verdict := judged(plugin, configured, data)):
            answer["plugins"] = {plugin: verdict}
        if "pod" in data and "postFilter" in configured.registry.implements()[plugin]:
            answer |= preempting(plugin, configuration_of(plugin, args, "NodeResourcesFit"), data)
        if "queue" in data:
            answer["queue"] = sorted_queue(configured, data)
        return {"id": case.get("id"), **answer}
    except (MooringError, BadCase) as error:
        return {"id": case.get("id"), "error": str(error)}
    except Exception as error:
        # One case must not end the others, whatever is in it.
        return {"id": case.get("id"), "error": f"{type(error).__name__}: {error}"}


def configuration_of(plugin: str, args: Mapping[str, Any] | None = None, before: str = "") -> Configuration:
    """A profile of this plugin and what every profile needs, perhaps with another one before it."""
    return _configured(plugin, json.dumps(args or {}), before)


@functools.lru_cache(maxsize=64)
def _configured(plugin: str, args: str, before: str) -> Configuration:
    config = [{"name": plugin, "args": json.loads(args)}]
    points = configure(_text(pluginConfig=config)).registry.implements().get(plugin, ())
    needed = ["DefaultBinder"] if "queueSort" in points else ["DefaultBinder", "PrioritySort"]
    enabled = [{"name": name} for name in (before, plugin, *needed) if name]
    sets = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    return configure(_text(plugins=sets, pluginConfig=config))


def _text(**profile: Any) -> str:
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]})


def judged(plugin: str, configured: Configuration, data: Mapping[str, Any]) -> dict[str, Any]:
    """What the plugin says of the nodes."""
    world = _world(configured, data)
    profile = next(iter(world.engine.profiles.values()))
    if data.get("metrics") is not None:
        asked: Any = profile.plugins[plugin]
        asked.usage.accept(load_watcher.read(data["metrics"]), asked.handle)
    return world.one_plugin(profile, plugin, raw=True)


def preempting(plugin: str, configured: Configuration, data: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of the pod with this plugin and those before it, and which pods are safe from it."""
    world = _world(configured, data)
    answer = world.preemption()
    policy = next(iter(world.engine.profiles.values())).plugins[plugin]
    if isinstance(policy, Protecting):
        placed = (pod for pod in world.engine.stores[PODS].list() if pod.is_assigned)
        if names := sorted(pod.key for pod in policy.protected(world.pod, placed)):
            answer["protected"] = names
    return answer


@runtime_checkable
class Protecting(Protocol):
    """A plugin that protects pods from preemption."""

    def protected(self, preemptor: Pod, pods: Iterable[Pod]) -> Iterable[Pod]: ...


def _world(configured: Configuration, data: Mapping[str, Any]) -> World:
    cluster = {key: data[key] for key in CLUSTER if key in data}
    cluster["pods"] = [_bound(pod, data.get("boundAt") or {}) for pod in data.get("pods") or ()]
    return World(cluster, configured, clock=CaseClock(_now(data)), custom=data.get("custom"))


class CaseClock(SystemClock):
    """A wall clock that stands still at the time of a case."""

    def __init__(self, wall: float | None) -> None:
        self._wall = wall

    def wall(self) -> float:
        return super().wall() if self._wall is None else self._wall


def _now(data: Mapping[str, Any]) -> float | None:
    """The time of a case, in Unix seconds: its own, or that of its metrics."""
    if "now" in data:
        return parse_time(str(data["now"])) or float(data["now"])
    return float(data["metrics"]["window"]["end"]) if data.get("metrics") is not None else None


def _bound(pod: Mapping[str, Any], times: Mapping[str, float]) -> Mapping[str, Any]:
    """A pod of `boundAt` with the condition that says since when it has its node."""
    meta = pod.get("metadata") or {}
    moment = times.get(f"{meta.get('namespace')}/{meta.get('name')}")
    if moment is None:
        return pod
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(moment)}
    return {**pod, "status": {**(pod.get("status") or {}), "conditions": [condition]}}


def sorted_queue(configured: Configuration, data: Mapping[str, Any]) -> dict[str, Any]:
    """Pod → the pods that come strictly after it, and the order if there are no ties."""
    engine = offline_engine(configured)
    less = next(iter(engine.profiles.values())).queue_sort.less
    queue = list(_queued(data["queue"]))
    after = {a.key: [b.key for b in queue if b is not a and less(a, b)] for a in queue}
    answer: dict[str, Any] = {"before": {key: sorted(later) for key, later in after.items() if later}}
    if all(less(a, b) or less(b, a) for a, b in permutations(queue, 2)):
        answer["order"] = sorted(after, key=lambda key: -len(after[key]))
    return answer


def _queued(entries: Any) -> Iterator[QueuedPod]:
    for entry in entries:
        pod = cast(Pod, decoding.convert(PODS, entry["pod"]))
        first = parse_time(entry.get("initialAttemptTimestamp"))
        yield QueuedPod(pod, parse_time(entry["timestamp"]) or 0.0, first)
