"""One configuration, read as several versions of kube-scheduler read it, and what differs between two of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

from moorage.api.problems import Problem
from moorage.app.configuration import EMPTY, Configuration, build_registry, read_configuration
from moorage.config import ConfigError, FeatureGates, ResolvedProfile
from moorage.config.wire import to_wire, to_yaml
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.points import Plugin
from moorage.runtime.registry import Registry

ERROR, NO_LONGER_ERROR, GATE, PLUGINS, ARGUMENT = "error", "noLongerError", "gate", "plugins", "argument"


@dataclass(frozen=True, slots=True)
class ConfigurationChange:
    """What another version makes of the configuration."""

    kind: str
    path: str
    """The field or the gate."""
    text: str

    def to_dict(self) -> dict[str, str]:
        return {"kind": self.kind, "path": self.path, "text": self.text}


@dataclass(frozen=True, slots=True)
class ConfigurationText:
    """A configuration before it is read for a version."""

    registry: Registry
    text: str | bytes = EMPTY
    source: str = "<config>"
    folders: tuple[str, ...] = ()
    feature_gates: str = ""
    """The text of `--feature-gates`."""
    profile: str = ""
    """The only profile that counts; empty for all."""
    extenders: bool = True

    @classmethod
    def given(cls, plugins: Iterable[type[Plugin]] = (), **fields: Any) -> ConfigurationText:
        """Return a text whose plugins are the default ones, those of installed packages, and `plugins`."""
        return cls(build_registry(plugins), **fields)

    @classmethod
    def of(cls, known: Configuration, **fields: Any) -> ConfigurationText:
        """Return the text of a configuration that was read, without the arguments that are defaults of its version:
        another version has others."""
        profiles = tuple(
            msgspec.structs.replace(profile, plugin_config=tuple(_own_args(profile.plugin_config, known)))
            for profile in known.config.profiles
        )
        chosen = ",".join(f"{name}={str(on).lower()}" for name, on in known.gates.chosen.items())
        text = to_yaml(to_wire(msgspec.structs.replace(known.config, profiles=profiles)))
        return cls(known.registry, text, **{"feature_gates": chosen, **fields})

    def gates(self, minor: str) -> tuple[FeatureGates, list[Problem]]:
        """Return the feature gates as a version reads them, without those that it refuses, and its problems."""
        try:
            return FeatureGates.parse(self.feature_gates, minor), []
        except ConfigError as error:
            wrong = {problem.path for problem in error.problems}
            parts = (part for part in self.feature_gates.split(",") if part.partition("=")[0].strip() not in wrong)
            kept, _ = dataclasses.replace(self, feature_gates=",".join(parts)).gates(minor)
            return kept, list(error.problems)

    def read(self, gates: FeatureGates) -> tuple[Configuration | None, list[Problem]]:
        """Return what can be used of the configuration with these gates, and all problems."""
        found, problems = read_configuration(self.text, self.registry, gates=gates, folders=self.folders)
        if found is not None and not self.extenders:
            found = found.without_extenders()
        if found is not None and self.profile:
            found = found.with_one_profile(self.profile, extenders=True)
        return found, problems


def _own_args(entries: Iterable[Any], known: Configuration) -> Iterator[Any]:
    types, context = known.registry.args_types(), ArgsContext(known.gates)
    for entry in entries:
        made = types.get(entry.name)
        default = made() if made is not None else None
        if isinstance(default, PluginArgs):
            default = default.completed(context)
        if entry.args != default:
            yield entry


def changed_problems(
    before: Sequence[Problem], after: Sequence[Problem], newer: str, older: str, source: str
) -> Iterator[ConfigurationChange]:
    """Yield the problems that only one version has. Raises a ConfigError for problems of both: a configuration that
    does not work today has to be repaired first."""
    old, new = {str(each): each for each in before}, {str(each): each for each in after}
    if both := [problem for text, problem in old.items() if text in new]:
        raise ConfigError(both, source)
    for problem in new.values():
        yield ConfigurationChange(ERROR, problem.path, f"{newer} refuses this: {_reason(problem)}")
    for problem in old.values():
        text = f"{newer} accepts this, which {older} refuses: {_reason(problem)}"
        yield ConfigurationChange(NO_LONGER_ERROR, problem.path, text)


def _reason(problem: Problem) -> str:
    """Return the message of a problem without its path, as the end of a sentence."""
    return str(msgspec.structs.replace(problem, path="")).rstrip(".") + "."


def changed_profiles(before: Configuration, after: Configuration) -> Iterator[ConfigurationChange]:
    """Yield the plugins and arguments of the profiles that differ although the file is the same."""
    later = {profile.scheduler_name: profile for profile in after.profiles}
    for profile in before.profiles:
        other = later.get(profile.scheduler_name)
        if other is not None:
            path = f"profile {profile.scheduler_name}"
            yield from (ConfigurationChange(PLUGINS, path, text) for text in _changed_points(profile, other))
            yield from (ConfigurationChange(ARGUMENT, path, text) for text in _changed_args(profile, other))


def _changed_points(before: ResolvedProfile, after: ResolvedProfile) -> Iterator[str]:
    for point in dict.fromkeys((*before.points, *after.points)):
        old = {ref.name: ref.weight for ref in before.points.get(point, ())}
        new = {ref.name: ref.weight for ref in after.points.get(point, ())}
        yield from (f"{name} also runs at {point}." for name in new if name not in old)
        yield from (f"{name} no longer runs at {point}." for name in old if name not in new)
        yield from (
            f"The weight of {name} is {new[name]} instead of {old[name]}."
            for name in new
            if name in old and new[name] != old[name]
        )
        order = {name: place for place, name in enumerate(old)}
        both = [name for name in new if name in old]
        for first, second in pairwise(both):
            if order[first] > order[second]:
                yield f"{first} runs before {second} at {point}."


def _changed_args(before: ResolvedProfile, after: ResolvedProfile) -> Iterator[str]:
    for name, args in before.plugin_args.items():
        other = after.plugin_args.get(name)
        if other is not None and other != args:
            old, new = _fields(args), _fields(other)
            for field in dict.fromkeys((*old, *new)):
                if old.get(field) != new.get(field):
                    before_it, now = _shown(old.get(field)), _shown(new.get(field))
                    yield f"{field} of {name} is {now} by default instead of {before_it}."


def _fields(args: object) -> Mapping[str, Any]:
    return to_wire(args) if isinstance(args, msgspec.Struct) else {}


def _shown(value: Any) -> str:
    return "unset" if value is None else msgspec.json.encode(value).decode()
