"""Which plugins of a profile are served to kube-scheduler, and as which verbs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration
from moorage.app.reloading import ConfigurationSource
from moorage.config.resolving import PluginRef, ResolvedProfile
from moorage.plugins.registry import DEFAULT
from moorage.telemetry import logs

_log = logs.get(__name__)

VERBS: Mapping[str, tuple[str, ...]] = {
    "filter": ("preFilter", "filter"),
    "prioritize": ("score",),
    "preempt": ("preFilter", "filter"),
    "bind": ("bind",),
}
"""Verb → the extension points, one of which has to have a plugin for the verb to be served."""
CALLED = ("preFilter", "filter", "preScore", "score", "bind")
KUBE_SCHEDULERS = frozenset(cls.name for cls in DEFAULT)
"""What kube-scheduler runs by itself."""


@dataclass(frozen=True, slots=True)
class ServedProfile:
    """One profile, reduced to what an extender can do."""

    configuration: Configuration
    """To build the engine from. QueueSort stays, since there is no profile without one; it orders nothing."""
    verbs: tuple[str, ...]
    weight: int
    """Of the Score plugins together. As the extender's weight it makes their scores count as they would in
    kube-scheduler itself."""
    warnings: tuple[str, ...] = ()

    @property
    def plugins(self) -> tuple[str, ...]:
        """Those that are called, each once."""
        points = self.configuration.profiles[0].points
        return tuple(dict.fromkeys(ref.name for point in CALLED for ref in points[point]))


def select(configuration: Configuration, profile: str = "", *, with_defaults: bool = False) -> ServedProfile:
    """What is served of the profile of this name, or of the first; a MoorageError if that is nothing.
    kube-scheduler's own plugins are left out, since it runs them itself, unless `with_defaults`."""
    configuration = configuration.with_one_profile(profile)
    (resolved,) = configuration.profiles
    points = {
        point: tuple(ref for ref in refs if with_defaults or ref.name not in KUBE_SCHEDULERS)
        for point, refs in resolved.points.items()
    }
    verbs = tuple(verb for verb, needed in VERBS.items() if any(points[point] for point in needed))
    never = _never_called(points)
    if not verbs:
        raise MoorageError(_nothing(resolved, never))
    kept = {point: refs if point in CALLED else () for point, refs in points.items()}
    kept["queueSort"] = resolved.points["queueSort"]
    return ServedProfile(
        dataclasses.replace(configuration, profiles=(replace(resolved, points=kept),)),
        verbs,
        sum(ref.weight or 1 for ref in points["score"]),
        tuple(
            f'plugin "{name}": kube-scheduler does not ask extenders at {", ".join(at)}; what it does there is left out'
            for name, at in never.items()
        ),
    )


def reload_source(
    served: ServedProfile,
    load: Callable[[], Configuration],
    files: Iterable[Path],
    *,
    plugins: bool,
    with_defaults: bool = False,
) -> ConfigurationSource:
    """Return where the configuration of an extender is reloaded from. `load` reads it; `served` is what is served now.
    With `plugins`, a change of plugin code reloads it too."""

    def reload() -> Configuration:
        new = select(load(), with_defaults=with_defaults)
        if new.verbs != served.verbs:
            raise MoorageError(
                f"the profile now serves {', '.join(new.verbs)} instead of {', '.join(served.verbs)}; restart the "
                "extender, and add the block of --print-config to the configuration of kube-scheduler"
            )
        for warning in new.warnings:
            _log.warning(warning)
        if new.weight != served.weight:
            text = "The Score plugins have another weight; set it as the extender's in kube-scheduler's configuration"
            _log.warning(text, weight=new.weight, before=served.weight)
        return new.configuration

    return ConfigurationSource(reload, tuple(files), plugins)


def _never_called(points: Mapping[str, tuple[PluginRef, ...]]) -> dict[str, list[str]]:
    """Plugin → the points at which it is not called. kube-scheduler calls its own there itself."""
    found: dict[str, list[str]] = {}
    for point, refs in points.items():
        if point not in CALLED or (point == "preScore" and not points["score"]):
            for ref in refs:
                if ref.name not in KUBE_SCHEDULERS:
                    found.setdefault(ref.name, []).append(point)
    return found


def _nothing(resolved: ResolvedProfile, never: Mapping[str, list[str]]) -> str:
    if never:
        has = "only " + "; ".join(f"{name} at {', '.join(at)}" for name, at in never.items())
    else:
        has = "only kube-scheduler's own plugins, which it runs itself (--with-default-plugins serves them)"
    return (
        f'profile "{resolved.scheduler_name}" has nothing for an extender to do: it has {has}; '
        "enable a plugin at preFilter, filter, score or bind"
    )
