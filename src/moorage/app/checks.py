"""What is wrong with a configuration although it can be read: plugins that cannot be built or asked, which
are mistakes, and entries without effect, which are warnings. And what it means, for programs."""

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


def mistakes(configuration: Configuration) -> list[Problem]:
    """What a scheduler would refuse at start, or break on with its first pod. Builds every plugin, as a
    scheduler does, on an API server that has nothing."""
    return asyncio.run(_mistakes(configuration))


async def _mistakes(configuration: Configuration) -> list[Problem]:
    try:
        engine = offline_engine(configuration)
    except PluginError as error:
        return [Problem(path="profiles", message=str(error))]
    found = [problem for profile in engine.profiles.values() for problem in _bad_signs(profile)]
    found += _bad_extenders(configuration)
    await engine.tasks.stop()
    return found


def _bad_extenders(configuration: Configuration) -> Iterator[Problem]:
    """Certificate files are not looked for: they may lie where the scheduler will run, and not here."""
    for index, extender in enumerate(configuration.config.extenders):
        try:
            credentials_of(extender, child("extenders", index))
        except CredentialsError as error:
            yield Problem(path="", message=str(error))


def _bad_signs(profile: Profile) -> Iterator[Problem]:
    pod = Pod(metadata=ObjectMeta(name="pod", namespace="default"), spec=PodSpec(scheduler_name=profile.name))
    for plugin in profile.plugins.values():
        if isinstance(plugin, ReusablePlugin):
            try:
                hash(plugin.sign(pod))
            except Exception as error:
                text = f"sign() of a plain pod must give a hashable value: {type(error).__name__}: {error}"
                message = f'profile "{profile.name}": plugin "{plugin.name}": {text}'
                yield Problem(path="profiles", message=message)


def warnings(configuration: Configuration) -> list[str]:
    """What has no effect, or cannot be used and is not named."""
    found = [*configuration.registry.broken.values()]
    for index, profile in enumerate(configuration.profiles):
        path = child("profiles", index)
        found += _idle_binders(profile, path)
        found += _replaced(profile, path, configuration.registry)
        found += _misplaced(profile, path, configuration.registry)
        found += _unused_arguments(profile, path, configuration.registry)
    return found


def _idle_binders(profile: ResolvedProfile, path: str) -> list[str]:
    binders = [ref.name for ref in profile.points["bind"]]
    if DEFAULT_BINDER not in binders:
        return []
    return [
        f'{child(path, "plugins", "bind")}: "{name}" is never asked: {DEFAULT_BINDER} before it binds every '
        f"pod; disable {DEFAULT_BINDER} at bind, and enable it there again after {name} if it is still "
        "to bind the pods that this plugin skips"
        for name in binders[binders.index(DEFAULT_BINDER) + 1 :]
    ]


def _replaced(profile: ResolvedProfile, path: str, registry: Registry) -> list[str]:
    enabled = [name for name in profile.plugin_names if name in registry]
    return [
        f'{child(path, "plugins")}: "{name}" takes the place of "{other}": disable {other}'
        for name in enabled
        for other in registry[name].replaces
        if other in enabled
    ]


def _misplaced(profile: ResolvedProfile, path: str, registry: Registry) -> list[str]:
    names = [ref.name for ref in profile.points["postFilter"]]
    return [
        f'{child(path, "plugins", "postFilter")}: "{name}" must come before "{other}": enable it first'
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
                message=f'no plugin is called "{name}"',
                hint=registry.broken.get(name) or did_you_mean(name, sorted(known)),
            )
        )
        for name in profile.plugin_args
        if name not in known
    ]


def described(configuration: Configuration) -> dict[str, Any]:
    """Its profiles as they run, with what there is to say of them."""
    return {
        "notes": [msgspec.to_builtins(note) for note in configuration.config.notes],
        "warnings": warnings(configuration),
        "profiles": [_profile(profile) for profile in configuration.profiles],
    }


def _profile(profile: ResolvedProfile) -> dict[str, Any]:
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": {
            point: [msgspec.to_builtins(ref) for ref in refs] for point, refs in profile.points.items()
        },
        "pluginConfig": shown_args(profile),
        "missing": list(profile.missing),
    }


def shown_args(profile: ResolvedProfile) -> dict[str, Any]:
    """Arguments of the plugins that run, as they would stand in a file; plugins without any are left out."""
    plain = {name: _plain(profile.plugin_args.get(name)) for name in profile.plugin_names}
    return {name: args for name, args in plain.items() if args}


def _plain(args: object) -> Any:
    return to_wire(args) if isinstance(args, msgspec.Struct) else args
