"""Turn the text of a configuration into profiles with all their plugins.

Does the work of cmd/kube-scheduler/app/options/configfile.go and of the profile setup of kube-scheduler.
"""

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
"""A configuration without settings: the default profile."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration that can be run."""

    config: KubeSchedulerConfiguration
    profiles: tuple[ResolvedProfile, ...]
    registry: Registry

    def with_one_profile(self, name: str = "") -> Configuration:
        """Return the configuration with only the profile of this name, or the first one.

        For commands that evaluate pods themselves. They do not call extenders, so a configuration with
        extenders is an error.
        """
        if self.config.extenders:
            raise MoorageError("this command does not call extenders; use a copy of the file without `extenders`")
        for profile in self.profiles:
            if name in ("", profile.scheduler_name):
                return dataclasses.replace(self, profiles=(profile,))
        raise MoorageError(f"the configuration has no profile {name!r}; it has {self._names()}")

    def with_scheduler_name(self, name: str) -> Configuration:
        """Return the configuration with this name for its only profile."""
        if len(self.profiles) > 1:
            raise MoorageError(
                f"--scheduler-name: {name!r} cannot name several profiles ({self._names()}); "
                "set schedulerName of each in the configuration"
            )
        written = tuple(replace(profile, scheduler_name=name) for profile in self.config.profiles)
        profiles = tuple(replace(profile, scheduler_name=name) for profile in self.profiles)
        return Configuration(replace(self.config, profiles=written), profiles, self.registry)

    def looking_at_all_nodes(self) -> Configuration:
        """Return the configuration without sampling, so that every node is filtered."""
        profiles = tuple(replace(profile, percentage_of_nodes_to_score=0) for profile in self.profiles)
        return dataclasses.replace(self, profiles=profiles)

    def plugins(self) -> list[type[Plugin]]:
        """Return the plugins that a profile enables."""
        points = [refs for profile in self.profiles for refs in profile.points.values()]
        return [self.registry[name] for name in dict.fromkeys(ref.name for refs in points for ref in refs)]

    def resources(self) -> list[Resource]:
        """Return the kinds that these plugins read, and always nodes and pods."""
        return needed_resources(self.plugins())

    def _names(self) -> str:
        return ", ".join(profile.scheduler_name for profile in self.profiles)


def build_registry(plugins: Iterable[type[Plugin]] = (), *, discover: bool = True) -> Registry:
    """Return a registry of the default plugins, those of installed packages, and `plugins`."""
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
    """Load a configuration, import its plugins and resolve its profiles.

    Raises ConfigError with all problems of the first step that fails. `module:Class` is also searched in `folders`.
    """
    registry = build_registry(plugins, discover=discover)
    if text == EMPTY:
        loaded = config.default_configuration(registry.args_types(), gates)
    else:
        _import_references(registry, config.plugin_references(text), source, folders)
        _import_contrib(registry, config.plugin_names(text))
        args_types, aliases = registry.args_types(), registry.aliases
        loaded = config.load(text, args_types, source=source, aliases=aliases, gates=gates)
    profiles = config.resolve(
        loaded, registry.implements(), aliases=registry.aliases, known=CONTRIB, broken=registry.broken, source=source
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
    """Call `configure` with the content of a file. Raises ConfigError if it cannot be read."""
    text = read_file(path)
    return configure(text, plugins=plugins, discover=discover, source=str(path), gates=gates, folders=folders)


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises ConfigError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError([Problem(path="", message=f"cannot be read: {error.strerror}")], str(path)) from error


def find_plugin(reference: str, folders: Iterable[str] = ()) -> type[Plugin]:
    """Import `module:Class`. Raises PluginError if there is no such plugin."""
    look_in(folders)
    registry = Registry()
    return registry[registry.follow(reference)]


def plugin_folders(paths: Iterable[str]) -> list[str]:
    """Return the absolute paths of the folders in `--plugin-path`."""
    folders = [Path(text) for text in paths]
    for folder in folders:
        if not folder.is_dir():
            raise MoorageError(
                f"--plugin-path: {folder} is not a folder; give the folder that contains the plugin's module"
            )
    return [str(folder.resolve()) for folder in folders]


def _import_references(registry: Registry, references: Collection[str], source: str, folders: Iterable[str]) -> None:
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


def _import_contrib(registry: Registry, names: frozenset[str]) -> None:
    """Register the contrib plugins that the configuration names.

    A plugin from elsewhere wins over a contrib plugin of the same name, so that its configuration keeps
    working when contrib gets one.
    """
    for name in sorted(names & CONTRIB.keys() - registry.keys()):
        registry.follow(CONTRIB[name])
