"""Entries of a profile without effect: `moorage check` and the web UI warn about them."""

from __future__ import annotations

from moorage.api.problems import Problem, child, did_you_mean
from moorage.config import ResolvedProfile
from moorage.config.defaults import DEFAULT_NAMES
from moorage.runtime.registry import Registry

DEFAULT_BINDER = "DefaultBinder"


def profile_warnings(profile: ResolvedProfile, path: str, registry: Registry) -> list[str]:
    """Return what has no effect or another effect than probably meant; `path` is the position of the profile."""
    return [
        *_unreachable_binders(profile, path),
        *_replaced_plugins(profile, path, registry),
        *_misordered_plugins(profile, path, registry),
        *_unused_arguments(profile, path, registry),
    ]


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
