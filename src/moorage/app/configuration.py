"""Turn the text of a configuration into profiles with all their plugins.

Does the work of cmd/kube-scheduler/app/options/configfile.go and of the profile setup of kube-scheduler.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage import config
from moorage.api.errors import MoorageError
from moorage.api.resources import Resource
from moorage.api.versions import Behaviour
from moorage.config import ConfigError, KubeSchedulerConfiguration, Problem, ResolvedProfile
from moorage.config.gates import DEFAULT_GATES, FeatureGates
from moorage.contrib.registry import PLUGINS as CONTRIB
from moorage.framework.points import BY_NAME, Plugin
from moorage.plugins.name_and_cordon import NodeName
from moorage.plugins.registry import DEFAULT
from moorage.runtime.registry import PluginError, Registry, look_in
from moorage.scheduler.assembly import needed_resources

EMPTY = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
"""A configuration without settings: the default profile."""


_FORMS = (
    "expected a Path, a text in YAML or JSON, a mapping with the structure of the file, a Configuration, or None for "
    "the default profile"
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration that can be run."""

    config: KubeSchedulerConfiguration
    profiles: tuple[ResolvedProfile, ...]
    registry: Registry
    gates: FeatureGates = DEFAULT_GATES
    """The feature gates, with the version whose behaviour is followed."""

    @property
    def behaviour(self) -> Behaviour:
        """What kube-scheduler of the emulated version does where versions differ."""
        return self.gates.behaviour

    def without_extenders(self) -> Configuration:
        return dataclasses.replace(self, config=replace(self.config, extenders=()))

    def with_one_profile(self, name: str = "", *, extenders: bool = False) -> Configuration:
        """Return the configuration with only the profile of this name, or the first one.

        For commands that evaluate pods themselves. Unless the command calls `extenders`, a configuration with
        extenders is an error.
        """
        if self.config.extenders and not extenders:
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
        return dataclasses.replace(self, config=replace(self.config, profiles=written), profiles=profiles)

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


ConfigSource = Path | str | Mapping[str, Any] | Configuration | None
"""A file, a text in YAML or JSON, a mapping with the structure of the file, or None for the default profile."""


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
    gates: FeatureGates | None = None,
    folders: Iterable[str] = (),
    emulated_version: str = "",
) -> Configuration:
    """Load a configuration, import its plugins and resolve its profiles.

    Raises ConfigError with all problems. `module:Class` is also searched in `folders`. Without `gates`, those of
    `emulated_version` have their defaults; empty is the newest supported version.
    """
    gates = FeatureGates.of(emulated_version) if gates is None else gates
    found, problems = read_configuration(text, build_registry(plugins, discover=discover), gates=gates, folders=folders)
    if found is None or problems:
        raise ConfigError(problems, source)
    return found


def read_configuration(
    text: str | bytes, registry: Registry, *, gates: FeatureGates = DEFAULT_GATES, folders: Iterable[str] = ()
) -> tuple[Configuration | None, list[Problem]]:
    """Return what can be used of a configuration, and all of its problems.

    Plugins that cannot be imported are left out of the profiles. The configuration is None if the text cannot be read,
    or if a profile remains without a queue sort plugin.
    """
    if text == EMPTY:
        loaded: KubeSchedulerConfiguration | None = config.default_configuration(registry.args_types(), gates)
        problems: list[Problem] = []
        absent: Mapping[str, str] = {}
    else:
        absent = _import_references(registry, config.plugin_references(text), folders)
        _import_contrib(registry, config.plugin_names(text))
        loaded, problems = config.read(text, registry.args_types(), aliases=registry.aliases, gates=gates)
        problems = [*(Problem(path="profiles", message=reason) for reason in absent.values()), *problems]
    if loaded is None:
        return None, problems
    profiles, others = config.resolve_all(
        loaded,
        {**_implemented(registry, gates.behaviour), **dict.fromkeys(absent, _ANY_POINT)},
        aliases=registry.aliases,
        known=CONTRIB,
        broken=registry.broken,
    )
    known = {problem.path for problem in problems}
    problems += [problem for problem in others if problem.path not in known]
    profiles = tuple(_without(profile, absent) for profile in profiles)
    if not all(len(profile.points["queueSort"]) == 1 for profile in profiles):
        return None, problems
    return Configuration(loaded, profiles, registry, gates), problems


def _implemented(registry: Registry, behaviour: Behaviour) -> dict[str, frozenset[str]]:
    """Return the points of each plugin, without those that kube-scheduler of the version does not have."""
    found = dict(registry.implements())
    if not behaviour.node_name_narrows and registry.get(NodeName.name) is NodeName:
        found[NodeName.name] -= {"preFilter"}
    return found


_ANY_POINT = frozenset(BY_NAME) - {"queueSort"}
"""The points that a plugin is taken to implement that cannot be imported. Two queue sort plugins would be a problem."""


def _without(profile: ResolvedProfile, absent: Collection[str]) -> ResolvedProfile:
    points = {point: tuple(ref for ref in refs if ref.name not in absent) for point, refs in profile.points.items()}
    return replace(profile, points=points) if absent else profile


def configure_file(
    path: Path,
    *,
    plugins: Iterable[type[Plugin]] = (),
    discover: bool = True,
    gates: FeatureGates | None = None,
    folders: Iterable[str] = (),
    emulated_version: str = "",
) -> Configuration:
    """Call `configure` with the content of a file. Raises ConfigError if it cannot be read."""
    return configure(
        read_file(path),
        plugins=plugins,
        discover=discover,
        source=str(path),
        gates=gates,
        folders=folders,
        emulated_version=emulated_version,
    )


def configure_any(
    given: ConfigSource,
    *,
    plugins: Iterable[type[Plugin]] = (),
    discover: bool = True,
    gates: FeatureGates | None = None,
) -> Configuration:
    """Call `configure` with a configuration in any form. Raises TypeError if it has another one."""
    match given:
        case Configuration():
            return given
        case Path():
            return configure_file(given, plugins=plugins, discover=discover, gates=gates)
        case None:
            return configure(plugins=plugins, discover=discover, gates=gates)
        case str():
            return configure(given, plugins=plugins, discover=discover, gates=gates)
        case Mapping():
            try:
                text = msgspec.json.encode(given)
            except (TypeError, RecursionError) as error:
                raise TypeError(f"config is a {type(given).__name__} that is not plain: {error}; {_FORMS}") from error
            return configure(text, plugins=plugins, discover=discover, gates=gates)
        case _:
            raise TypeError(f"config is of type {type(given).__name__}; {_FORMS}")


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


def _import_references(registry: Registry, references: Collection[str], folders: Iterable[str]) -> dict[str, str]:
    """Import the references, and return the reasons for those that cannot be imported."""
    if references:
        look_in(folders)
    problems = {}
    for reference in sorted(references):
        try:
            registry.follow(reference)
        except PluginError as error:
            problems[reference] = str(error)
    return problems


def _import_contrib(registry: Registry, names: frozenset[str]) -> None:
    """Register the contrib plugins that the configuration names.

    A plugin from elsewhere wins over a contrib plugin of the same name, so that its configuration keeps
    working when contrib gets one.
    """
    for name in sorted(names & CONTRIB.keys() - registry.keys()):
        registry.follow(CONTRIB[name])
