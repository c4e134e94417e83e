"""From a configuration text to profiles whose plugins are all found."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from moorage import config
from moorage.api.errors import MoorageError
from moorage.api.resources import Resource
from moorage.config import ConfigError, KubeSchedulerConfiguration, Problem, ResolvedProfile
from moorage.config.gates import DEFAULT_GATES, FeatureGates
from moorage.contrib.registry import PLUGINS as CONTRIB
from moorage.framework.points import Plugin
from moorage.plugins.registry import DEFAULT
from moorage.runtime.registry import PluginError, Registry, look_in
from moorage.scheduler.assembly import needed_resources

EMPTY = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
"""A configuration that says nothing: the default profile."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration that can be run."""

    config: KubeSchedulerConfiguration
    profiles: tuple[ResolvedProfile, ...]
    registry: Registry

    def only(self, name: str = "") -> Configuration:
        """With one profile: the one of this name, or the first. For commands that judge pods by themselves,
        whose answers would be wrong without the extenders'."""
        if self.config.extenders:
            raise MoorageError(
                "this command does not call extenders: remove `extenders` from a copy of the file"
            )
        for profile in self.profiles:
            if name in ("", profile.scheduler_name):
                return dataclasses.replace(self, profiles=(profile,))
        raise MoorageError(f"the configuration has no profile {name!r}; it has {self._names()}")

    def named(self, name: str) -> Configuration:
        """With this name for its only profile."""
        if len(self.profiles) > 1:
            raise MoorageError(
                f"--scheduler-name: {name!r} cannot be the name of several profiles ({self._names()}); "
                "name each by its schedulerName in the configuration"
            )
        written = tuple(replace(profile, scheduler_name=name) for profile in self.config.profiles)
        profiles = tuple(replace(profile, scheduler_name=name) for profile in self.profiles)
        return Configuration(replace(self.config, profiles=written), profiles, self.registry)

    def looking_at_all_nodes(self) -> Configuration:
        """Return the configuration without sampling, so that every node is filtered."""
        profiles = tuple(replace(profile, percentage_of_nodes_to_score=0) for profile in self.profiles)
        return dataclasses.replace(self, profiles=profiles)

    def plugins(self) -> list[type[Plugin]]:
        """Those that a profile enables."""
        points = [refs for profile in self.profiles for refs in profile.points.values()]
        return [self.registry[name] for name in dict.fromkeys(ref.name for refs in points for ref in refs)]

    def resources(self) -> list[Resource]:
        """The kinds that these plugins read; nodes and pods in any case."""
        return needed_resources(self.plugins())

    def _names(self) -> str:
        return ", ".join(profile.scheduler_name for profile in self.profiles)


def build_registry(plugins: Iterable[type[Plugin]] = (), *, discover: bool = True) -> Registry:
    """The default plugins, what installed packages offer, and what is handed in."""
    registry = Registry(DEFAULT, source="built in")
    if discover:
        registry.discover()
    for cls in plugins:
        registry.add(cls)
    return registry


def configure(
    text: str | bytes = EMPTY,
    *,
    plugins: Iterable[type[Plugin]] = (),
    discover: bool = True,
    source: str = "<config>",
    gates: FeatureGates = DEFAULT_GATES,
    folders: Iterable[str] = (),
) -> Configuration:
    """Load, find the plugins, resolve. Raises a ConfigError with everything that is wrong at that step.

    `folders` are where `module:Class` is looked for beside the installed packages.
    """
    registry = build_registry(plugins, discover=discover)
    if text == EMPTY:
        loaded = config.default_configuration(registry.args_types(), gates)
    else:
        _follow(registry, config.plugin_references(text), source, folders)
        _follow_contrib(registry, config.plugin_names(text))
        args_types, aliases = registry.args_types(), registry.aliases
        loaded = config.load(text, args_types, source=source, aliases=aliases, gates=gates)
    profiles = config.resolve(
        loaded,
        registry.implements(),
        aliases=registry.aliases,
        known=CONTRIB,
        broken=registry.broken,
        source=source,
    )
    return Configuration(loaded, profiles, registry)


def configure_file(
    path: Path,
    *,
    plugins: Iterable[type[Plugin]] = (),
    discover: bool = True,
    gates: FeatureGates = DEFAULT_GATES,
    folders: Iterable[str] = (),
) -> Configuration:
    """`configure` with the content of a file; one that cannot be read is a ConfigError too."""
    text = read_file(path)
    return configure(text, plugins=plugins, discover=discover, source=str(path), gates=gates, folders=folders)


def read_file(path: Path) -> bytes:
    """The content of a file, or a ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            [Problem(path="", message=f"cannot be read: {error.strerror}")], str(path)
        ) from error


def find_plugin(reference: str, folders: Iterable[str] = ()) -> type[Plugin]:
    """The class behind `module:Class`; a PluginError when there is none."""
    look_in(folders)
    registry = Registry()
    return registry[registry.follow(reference)]


def plugin_folders(named: Iterable[str]) -> list[str]:
    """The folders of `--plugin-path`."""
    folders = [Path(text) for text in named]
    for folder in folders:
        if not folder.is_dir():
            raise MoorageError(
                f"--plugin-path: {folder} is no folder; name the one that holds the plugin's module"
            )
    return [str(folder.resolve()) for folder in folders]


def _follow(registry: Registry, references: Collection[str], source: str, folders: Iterable[str]) -> None:
    if references:
        look_in(folders)
    problems = []
    for reference in sorted(references):
        try:
            registry.follow(reference)
        except PluginError as error:
            problems.append(Problem(path="profiles", message=str(error)))
    if problems:
        raise ConfigError(problems, source)


def _follow_contrib(registry: Registry, names: frozenset[str]) -> None:
    """A plugin from elsewhere takes the place of one in contrib, so that a configuration which names it works
    the same after contrib has got one of that name."""
    for name in sorted(names & CONTRIB.keys() - registry.keys()):
        registry.follow(CONTRIB[name])
