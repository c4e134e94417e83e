"""Cases that ask one plugin alone, which need not be one of the default profile: the answers of
scheduler-plugins are compared in this form. See docs/evaluate.md.

A case names its `plugin`, which the production runtime builds and asks in a profile of its own. What a case
has beside the cluster of `evaluating` is read here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from mooring.api.errors import MooringError
from mooring.app.configuring import Configuration, configure
from mooring.app.evaluating import INPUTS, BadCase, World
from mooring.app.offline import offline_engine
from mooring.app.plugin_steps import play, sorted_queue
from mooring.config.types import API_VERSION, KIND

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
        if "steps" in data:
            answer["steps"] = play(configured, data)
        elif "queue" in data:
            answer["queue"] = sorted_queue(offline_engine(configured), data["queue"])
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
