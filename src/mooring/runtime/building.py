"""From a resolved profile to plugin instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.config.resolving import ResolvedProfile
from mooring.framework.points import Plugin
from mooring.runtime.handle import PluginHandle
from mooring.runtime.profile import Profile
from mooring.runtime.registry import PluginError
from mooring.runtime.services import Services, Tasks


def build_profile(
    resolved: ResolvedProfile, registry: Mapping[str, type[Plugin]], services: Services, tasks: Tasks
) -> Profile:
    """Build every plugin of the profile once. Raises a PluginError with all constructors that failed."""
    names = dict.fromkeys(ref.name for refs in resolved.points.values() for ref in refs)
    handles: list[PluginHandle] = []
    plugins: dict[str, Plugin] = {}
    problems: list[str] = []
    for name in names:
        cls = registry[name]
        handle = PluginHandle(cls, resolved.scheduler_name, services, tasks)
        try:
            plugins[name] = cls(_args(cls, resolved.plugin_args.get(name)), handle)
            handles.append(handle)
        except Exception as error:
            problems.append(f'initializing plugin "{name}": {type(error).__name__}: {error}')
    if problems:
        raise PluginError(f'profile "{resolved.scheduler_name}": ' + "; ".join(problems))
    try:
        profile = Profile(
            resolved.scheduler_name,
            {point: [plugins[ref.name] for ref in refs] for point, refs in resolved.points.items()},
            {ref.name: ref.weight or 1 for ref in resolved.points.get("score", ())},
            services,
            resolved.percentage_of_nodes_to_score or 0,
        )
    except PluginError as error:
        raise PluginError(f'profile "{resolved.scheduler_name}": {error}') from error
    for handle in handles:
        handle.attach(profile)
    return profile


def _args(cls: type[Plugin], configured: object) -> Any:
    """What the plugin is built with: decoded arguments, its defaults, or the plain mapping."""
    if cls.Args is None:
        return configured if configured is not None else {}
    return configured if isinstance(configured, cls.Args) else msgspec.convert(configured or {}, cls.Args)
