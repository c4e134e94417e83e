"""Check a configuration that can be read, and describe it for programs.

Plugins that cannot be built or called are mistakes. Entries without effect are warnings.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.api.problems import Problem, child
from moorage.app.configuration import Configuration
from moorage.app.offline import offline_engine
from moorage.client.credentials import CredentialsError
from moorage.config import ResolvedProfile
from moorage.config.wire import to_wire
from moorage.extender.connecting import credentials_of
from moorage.runtime.profile_warnings import profile_warnings
from moorage.runtime.registry import PluginError, probable_misspellings
from moorage.runtime.watched import Timer, Watch

SLOW_CONSTRUCTOR = 1.0
"""Seconds. The start of the scheduler waits for the constructors, and a new configuration takes effect after them."""


def find_mistakes(configuration: Configuration) -> list[Problem]:
    """Build every plugin, as a scheduler does, on an empty API server. Return the problems that stop a scheduler at
    start or break it with its first pod."""
    return build_all(configuration)[0]


def build_all(configuration: Configuration, timer: Timer = time.perf_counter) -> tuple[list[Problem], list[str]]:
    """Build every plugin on an empty API server, and return the problems and warnings of all of them."""
    watch = Watch(timer)
    problems = asyncio.run(_build_all(configuration, watch))
    slow = {made.name: made.seconds for made in watch.constructions if made.seconds > SLOW_CONSTRUCTOR}
    return problems, [
        f'plugin "{name}": the constructor took {seconds:.1f} s, and every start of the scheduler waits for it; '
        "load data in run(), or start that with handle.spawn()"
        for name, seconds in slow.items()
    ]


async def _build_all(configuration: Configuration, watch: Watch) -> list[Problem]:
    watched = watch.registry(configuration.registry)
    found: list[str] = []
    try:
        engine = offline_engine(dataclasses.replace(configuration, registry=watched))
        await engine.tasks.stop()
    except PluginError as error:
        found = [text for made in watch.constructions for text in made.start_problems()] or [str(error)]
    found += [text for made in watch.constructions for text in made.problems()]
    return [*(Problem(path="profiles", message=text) for text in found), *_invalid_extenders(configuration)]


def _invalid_extenders(configuration: Configuration) -> Iterator[Problem]:
    """Check the credentials of extenders, but not that files exist: the scheduler may run elsewhere."""
    for index, extender in enumerate(configuration.config.extenders):
        try:
            credentials_of(extender, child("extenders", index))
        except CredentialsError as error:
            yield Problem(path="", message=str(error))


def find_warnings(configuration: Configuration) -> list[str]:
    """Return entries without effect, misspelled hooks, and plugins that cannot be used but are not named."""
    registry = configuration.registry
    found = [*registry.broken.values()]
    found += [f'plugin "{cls.name}" {text}' for cls in configuration.plugins() for text in probable_misspellings(cls)]
    for index, profile in enumerate(configuration.profiles):
        found += profile_warnings(profile, child("profiles", index), registry)
    return found


def describe(configuration: Configuration) -> dict[str, Any]:
    """Return the effective profiles, with notes and warnings."""
    return {
        "notes": [msgspec.to_builtins(note) for note in configuration.config.notes],
        "warnings": find_warnings(configuration),
        "profiles": [_profile(profile) for profile in configuration.profiles],
    }


def _profile(profile: ResolvedProfile) -> dict[str, Any]:
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": {point: [msgspec.to_builtins(ref) for ref in refs] for point, refs in profile.points.items()},
        "pluginConfig": plugin_args_of(profile),
        "missing": list(profile.missing),
    }


def plugin_args_of(profile: ResolvedProfile) -> dict[str, Any]:
    """Return the arguments of the enabled plugins, as in a file, without those that have none."""
    plain = {name: _builtin(profile.plugin_args.get(name)) for name in profile.plugin_names}
    return {name: args for name, args in plain.items() if args}


def _builtin(args: object) -> Any:
    return to_wire(args) if isinstance(args, msgspec.Struct) else args
