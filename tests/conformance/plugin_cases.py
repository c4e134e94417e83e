"""Cases that ask one plugin alone, which need not be one of the default profile: the answers of
scheduler-plugins are compared in this form. `python -m tests.conformance.plugin_cases FILE` answers all cases
of a file, a JSON line each.

A case names its `plugin`, which the production runtime builds and asks in a profile of its own. What a case
has beside the cluster of `evaluating` is read here.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.api.times import format_time, parse_time
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration, configure
from moorage.config.types import API_VERSION, KIND
from moorage.contrib.metrics import NodeUsage, load_watcher
from moorage.explain.evaluate import BadCase, EvaluatedCase
from moorage.snapshots.files import KEYS
from tests.conformance.plugin_steps import case_engine, play, sorted_queue

CLUSTER = (*KEYS, "pod")
"""The keys of the input that a `EvaluatedCase` reads."""
KNOWN = (*CLUSTER, "args", "queue", "metrics", "boundAt", "now", "custom", "steps")


def evaluate_plugin(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer for one case; a case that cannot be read gives an `error`."""
    try:
        plugin, data = str(case["plugin"]), case.get("input") or {}
        if unknown := sorted(set(data) - {*KNOWN}):
            raise BadCase(f"input.{unknown[0]}: unknown; known are {', '.join(KNOWN)}")
        args = (data.get("args") or {}).get(plugin)
        configured = configuration_of(plugin, args)
        answer: dict[str, Any] = {}
        if "pod" in data and (verdict := judged(plugin, configured, data)):
            answer["plugins"] = {plugin: verdict}
        if "pod" in data and "postFilter" in configured.registry.implements()[plugin]:
            answer |= preempting(plugin, configuration_of(plugin, args, "NodeResourcesFit"), data)
        if "steps" in data:
            answer["steps"] = play(configured, data)
        elif "queue" in data:
            answer["queue"] = sorted_queue(case_engine(configured, data), data["queue"])
        return {"id": case.get("id"), **answer}
    except (MoorageError, BadCase) as error:
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
    if data.get("metrics") is not None:
        asked = world.profile.plugins[plugin]
        usage = getattr(asked, "usage", None)
        if not isinstance(usage, NodeUsage):
            raise BadCase(f"input.metrics: plugin {plugin} looks at no metrics; leave them out")
        usage.accept(load_watcher.read(data["metrics"]), asked.handle)
    return world.one_plugin(plugin, raw=True)


def preempting(plugin: str, configured: Configuration, data: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of the pod with this plugin and those before it, and which pods are safe from it."""
    world = _world(configured, data)
    answer = world.preemption()
    policy = world.profile.plugins[plugin]
    if isinstance(policy, Protecting):
        placed = (pod for pod in world.engine.stores[PODS].list() if pod.is_assigned)
        if names := sorted(pod.key for pod in policy.protected(world.pod, placed)):
            answer["protected"] = names
    return answer


@runtime_checkable
class Protecting(Protocol):
    """A plugin that protects pods from preemption."""

    def protected(self, preemptor: Pod, pods: Iterable[Pod]) -> Iterable[Pod]: ...


def _world(configured: Configuration, data: Mapping[str, Any]) -> EvaluatedCase:
    cluster = {key: data[key] for key in CLUSTER if key in data}
    cluster["pods"] = [_bound(pod, data.get("boundAt") or {}) for pod in data.get("pods") or ()]
    return EvaluatedCase(cluster, configured, clock=CaseClock(_now(data)), custom=data.get("custom"))


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
    end = ((data.get("metrics") or {}).get("window") or {}).get("end")
    return None if end is None else float(end)


def _bound(pod: Mapping[str, Any], times: Mapping[str, float]) -> Mapping[str, Any]:
    """A pod of `boundAt` with the condition that says since when it has its node."""
    meta = pod.get("metadata") or {}
    moment = times.get(f"{meta.get('namespace')}/{meta.get('name')}")
    if moment is None:
        return pod
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(moment)}
    return {**pod, "status": {**(pod.get("status") or {}), "conditions": [condition]}}


if __name__ == "__main__":
    for line in Path(sys.argv[1]).read_text().splitlines():
        print(json.dumps(evaluate_plugin(json.loads(line)), ensure_ascii=False))
