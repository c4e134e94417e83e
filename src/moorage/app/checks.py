"""Check a configuration that can be read, and describe it for programs.

Plugins that cannot be built or called are mistakes. Entries without effect are warnings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodSpec
from moorage.api.problems import Problem, child, did_you_mean
from moorage.app.configuration import Configuration
from moorage.app.offline import offline_engine
from moorage.client.credentials import CredentialsError
from moorage.config import ResolvedProfile
from moorage.config.defaults import DEFAULT_NAMES
from moorage.config.wire import to_wire
from moorage.extender.connecting import credentials_of
from moorage.framework.optional import ReusablePlugin
from moorage.runtime.profile import Profile
from moorage.runtime.registry import PluginError, Registry

DEFAULT_BINDER = "DefaultBinder"


def find_mistakes(configuration: Configuration) -> list[Problem]:
    """Return the problems that stop a scheduler at start or break it with its first pod.

    Builds every plugin, as a scheduler does, on an empty API server.
    """
    return asyncio.run(_find_mistakes(configuration))


async def _find_mistakes(configuration: Configuration) -> list[Problem]:
    try:
        engine = offline_engine(configuration)
    except PluginError as error:
        return [Problem(path="profiles", message=str(error))]
    found = [problem for profile in engine.profiles.values() for problem in _invalid_signatures(profile)]
    found += _invalid_extenders(configuration)
    await engine.tasks.stop()
    return found


def _invalid_extenders(configuration: Configuration) -> Iterator[Problem]:
    """Check the credentials of extenders, but not that files exist: the scheduler may run elsewhere."""
    for index, extender in enumerate(configuration.config.extenders):
        try:
            credentials_of(extender, child("extenders", index))
        except CredentialsError as error:
            yield Problem(path="", message=str(error))


def _invalid_signatures(profile: Profile) -> Iterator[Problem]:
    pod = Pod(metadata=ObjectMeta(name="pod", namespace="default"), spec=PodSpec(scheduler_name=profile.name))
    for plugin in profile.plugins.values():
        if isinstance(plugin, ReusablePlugin):
            try:
                hash(plugin.sign(pod))
            except Exception as error:
                text = f"sign() of a plain pod must return a hashable value: {type(error).__name__}: {error}"
                message = f'profile "{profile.name}": plugin "{plugin.name}": {text}'
                yield Problem(path="profiles", message=message)


def find_warnings(configuration: Configuration) -> list[str]:
    """Return entries without effect, and plugins that cannot be used but are not named."""
    found = [*configuration.registry.broken.values()]
    for index, profile in enumerate(configuration.profiles):
        path = child("profiles", index)
        found += _unreachable_binders(profile, path)
        found += _replaced_plugins(profile, path, configuration.registry)
        found += _misordered_plugins(profile, path, configuration.registry)
        found += _unused_arguments(profile, path, configuration.registry)
    return found


def _unreachable_binders(profile: ResolvedProfile, path: str) -> list[str]:
    binders = [ref.name for ref in profile.points["bind"]]
    if DEFAULT_BINDER not in binders:
        return []
    return [
        f'{child(path, "plugins", "bind")}: "{name}" is never called, because {DEFAULT_BINDER} before it '
        f"binds every pod; disable {DEFAULT_BINDER} at bind, and enable it after {name} if it should "
        "bind the pods that this plugin skips"
        for name in binders[binders.index(DEFAULT_BINDER) + 1 :]
    ]


def _replaced_plugins(profile: ResolvedProfile, path: str, registry: Registry) -> list[str]:
    enabled = [name for name in profile.plugin_names if name in registry]
    return [
        f'{child(path, "plugins")}: "{name}" replaces "{other}"; disable {other}'
        for name in enabled
        for other in registry[name].replaces
        if other in enabled
    ]


def _misordered_plugins(profile: ResolvedProfile, path: str, registry: Registry) -> list[str]:
    names = [ref.name for ref in profile.points["postFilter"]]
    return [
        f'{child(path, "plugins", "postFilter")}: "{name}" must run before "{other}"; enable it first'
        for index, name in enumerate(names)
        if name in registry
        for other in registry[name].precedes
        if other in names[:index]
    ]


def _unused_arguments(profile: ResolvedProfile, path: str, registry: Registry) -> list[str]:
    known = {*registry, *DEFAULT_NAMES}
    return [
        str(
            Problem(
                path=child(path, "pluginConfig"),
                message=f'unknown plugin "{name}"',
                hint=registry.broken.get(name) or did_you_mean(name, sorted(known)),
            )
        )
        for name in profile.plugin_args
        if name not in known
    ]


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
