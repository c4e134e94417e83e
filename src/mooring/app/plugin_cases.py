"""Cases that ask one plugin alone, which need not be one of the default profile: the answers of
scheduler-plugins are compared in this form. See docs/evaluate.md.

A case names its `plugin`, which the production runtime builds and asks in a profile of its own. What a case
has beside the cluster of `evaluating` is read here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any, cast

from mooring.api import decoding
from mooring.api.errors import MooringError
from mooring.api.pod import Pod
from mooring.api.resources import PODS
from mooring.api.times import parse_time
from mooring.app.configuring import Configuration, configure
from mooring.app.evaluating import INPUTS, BadCase, World
from mooring.app.offline import offline_engine
from mooring.config.types import API_VERSION, KIND
from mooring.framework.events import QueuedPod

CLUSTER = (*INPUTS, "pod")
"""The keys of the input that a `World` reads."""


def evaluate_plugin(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer for one case; a case that cannot be read gives an `error`."""
    try:
        plugin, data = str(case["plugin"]), case.get("input") or {}
        configured = configuration_of(plugin, (data.get("args") or {}).get(plugin))
        answer: dict[str, Any] = {}
        if "pod" in data:
            answer["plugins"] = {plugin: judged(plugin, configured, data)}
        if "queue" in data:
            answer["queue"] = sorted_queue(configured, data)
        return {"id": case.get("id"), **answer}
    except (MooringError, BadCase) as error:
        return {"id": case.get("id"), "error": str(error)}
    except Exception as error:
        # One case must not end the others, whatever is in it.
        return {"id": case.get("id"), "error": f"{type(error).__name__}: {error}"}


def configuration_of(plugin: str, args: Mapping[str, Any] | None = None) -> Configuration:
    """A profile of this plugin and what every profile needs."""
    return _configured(plugin, json.dumps(args or {}))


@functools.lru_cache(maxsize=64)
def _configured(plugin: str, args: str) -> Configuration:
    config = [{"name": plugin, "args": json.loads(args)}]
    points = configure(_text(pluginConfig=config)).registry.implements().get(plugin, ())
    needed = ["DefaultBinder"] if "queueSort" in points else ["DefaultBinder", "PrioritySort"]
    enabled = [{"name": name} for name in (plugin, *needed)]
    sets = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    return configure(_text(plugins=sets, pluginConfig=config))


def _text(**profile: Any) -> str:
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]})


def judged(plugin: str, configured: Configuration, data: Mapping[str, Any]) -> dict[str, Any]:
    """What the plugin says of the nodes."""
    world = World({key: data[key] for key in CLUSTER if key in data}, configured)
    return world.one_plugin(next(iter(world.engine.profiles.values())), plugin, raw=True)


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
