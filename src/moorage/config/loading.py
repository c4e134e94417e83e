"""From the text of a file to a complete configuration, and the plugins that a text refers to.

text -> plain values -> version -> records -> args -> validation -> conversion -> merging -> default args.
Every step adds to one list of problems, so that all mistakes are reported at once.

A reference `module:Class` in a file says where to find a plugin. Once the registry has imported it, the
plugin's name replaces the reference.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.problems import Problem, child
from moorage.config import conversion, defaults, validation, versions, yaml_source
from moorage.config.gates import DEFAULT_GATES, FeatureGates
from moorage.config.plugin_args import ArgsReader
from moorage.config.types import (
    ConfigError,
    KubeSchedulerConfiguration,
    Note,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)
from moorage.config.wire import decode

_HEADER = ("apiVersion", "kind")
NEWER_SET = "podGroupPostFilter"
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def load(
    text: str | bytes,
    args_types: Mapping[str, type] = {},
    *,
    source: str = "<config>",
    aliases: Mapping[str, str] = {},
    gates: FeatureGates = DEFAULT_GATES,
) -> KubeSchedulerConfiguration:
    """Return the complete configuration in `text`, or raise a ConfigError with all problems.

    `args_types` gives the Args type of plugins by name; `aliases` the names of plugins written as
    `module:Class`; `source` is what messages call the file.
    """
    config, problems = read(text, args_types, aliases=aliases, gates=gates)
    if config is None or problems:
        raise ConfigError(problems, source)
    return config


def read(
    text: str | bytes,
    args_types: Mapping[str, type] = {},
    *,
    aliases: Mapping[str, str] = {},
    gates: FeatureGates = DEFAULT_GATES,
) -> tuple[KubeSchedulerConfiguration | None, list[Problem]]:
    """Return what can be read of the configuration, and all problems. It is None if nothing can be read."""
    loader = _Loader(args_types, aliases, gates)
    config = loader.load(text)
    return None if config is None else replace(config, notes=tuple(loader.notes)), loader.problems


class _Profile(NamedTuple):
    """A profile under way, with its place in the file and the args that it has there."""

    value: Profile
    path: str
    written_args: Mapping[str, object] = {}


class _Loader:
    """Takes one file through the steps."""

    def __init__(self, types: Mapping[str, type], aliases: Mapping[str, str], gates: FeatureGates) -> None:
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        self._types = types
        self._aliases = aliases
        self._gates = gates

    def load(self, text: str | bytes) -> KubeSchedulerConfiguration | None:
        tree, problems = yaml_source.parse(text)
        self.problems += problems
        if tree is None and problems:
            return None
        version, problems = versions.identify(tree)
        self.problems += problems
        if problems or not isinstance(tree, Mapping):
            return None
        self._version = version
        types = {**conversion.legacy_args(version), **self._types}
        self._args = ArgsReader(version, types, self._gates)
        return self._complete(self._read(tree))

    def _read(self, tree: Mapping[str, object]) -> KubeSchedulerConfiguration:
        """The file's content as it is written, typed."""
        body = {name: value for name, value in tree.items() if name not in _HEADER}
        body, notes, problems = conversion.convert_fields(body, self._version)
        self.notes += notes
        self.problems += problems
        body = defaults.fill_absent(body)
        config: KubeSchedulerConfiguration = decode(body, KubeSchedulerConfiguration, "", self.problems)
        return defaults.complete(config)

    def _complete(self, config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        written = [
            self._read_args(_Profile(rename(profile, self._aliases), child("profiles", index)))
            for index, profile in enumerate(config.profiles)
        ]
        config = replace(config, profiles=tuple(profile.value for profile in written))
        self._add(validation.validate(config, self._version))
        if not self._gates.behaviour.pod_group_post_filter:
            self._add(self._newer_sets(config))
        profiles = tuple(self._complete_profile(profile) for profile in written)
        self._add(validation.validate_queue_sort(profiles))
        self.problems += self._args.problems
        return replace(config, profiles=profiles)

    def _newer_sets(self, config: KubeSchedulerConfiguration) -> Iterator[Problem]:
        """Report plugin sets that kube-scheduler of the emulated version does not know."""
        for index, profile in enumerate(config.profiles):
            if profile.plugins.pod_group_post_filter != PluginSet():
                path = child("profiles", index, "plugins", NEWER_SET)
                hint = f"kube-scheduler {self._gates.version} does not have it, later versions do"
                yield Problem(path=path, message=f'unknown field "{NEWER_SET}"', hint=hint)

    def _add(self, problems: Iterable[Problem]) -> None:
        """Problems about fields that are not already known to be unreadable."""
        known = {problem.path for problem in self.problems}
        self.problems += [problem for problem in problems if problem.path not in known]

    def _read_args(self, profile: _Profile) -> _Profile:
        entries = [
            PluginConfig(name=entry.name, args=conversion.convert_args(entry.args, entry.name, self._version))
            for entry in profile.value.plugin_config
        ]
        read = self._args.read(entries, child(profile.path, "pluginConfig"))
        written = {entry.name: entry.args for entry in entries}
        return profile._replace(value=replace(profile.value, plugin_config=read), written_args=written)

    def _complete_profile(self, profile: _Profile) -> Profile:
        own = defaults.default_plugins(self._version, self._gates)
        converted, notes, problems = conversion.convert_profile(
            profile.value, profile.written_args, self._version, profile.path
        )
        custom = converted.plugins
        completed = replace(
            converted,
            plugin_config=self._args.read_converted(converted.plugin_config),
            plugins=defaults.merge(own, custom),
            user_named=defaults.user_named(own, custom),
            written=profile.value.plugins,
        )
        self.problems += problems
        self.notes += notes
        self.notes += defaults.idle_disables(profile.value.plugins, own, self._version, profile.path)
        self.notes += defaults.idle_args(profile.value, completed, profile.path)
        return self._with_default_args(completed, profile.path)

    def _with_default_args(self, profile: Profile, path: str) -> Profile:
        present = [entry.name for entry in profile.plugin_config]
        names = defaults.enabled_names(profile.plugins)
        extra = self._args.defaults(names, present, child(path, "pluginConfig"))
        return replace(profile, plugin_config=(*profile.plugin_config, *extra))


def is_reference(name: str) -> bool:
    return _REFERENCE.fullmatch(name) is not None


def plugin_names(text: str | bytes) -> frozenset[str]:
    """Return the plugins that a file mentions, also by reference; none if it is unreadable (see `load`)."""
    tree, _ = yaml_source.parse(text)
    return frozenset(_names(tree))


def plugin_references(text: str | bytes) -> frozenset[str]:
    """Return the plugins that a file refers to as `module:Class`."""
    return frozenset(name for name in plugin_names(text) if is_reference(name))


def rename(profile: Profile, aliases: Mapping[str, str]) -> Profile:
    """Replace references in every plugin set and in pluginConfig."""
    return replace(
        profile,
        plugins=_rename_plugins(profile.plugins, aliases),
        written=_rename_plugins(profile.written, aliases),
        plugin_config=tuple(
            replace(entry, name=aliases.get(entry.name, entry.name)) for entry in profile.plugin_config
        ),
        user_named=frozenset(aliases.get(name, name) for name in profile.user_named),
    )


def _rename_plugins(plugins: Plugins, aliases: Mapping[str, str]) -> Plugins:
    def renamed(entries: tuple[Plugin, ...]) -> tuple[Plugin, ...]:
        return tuple(replace(entry, name=aliases.get(entry.name, entry.name)) for entry in entries)

    return Plugins.of(
        {
            point: PluginSet(enabled=renamed(chosen.enabled), disabled=renamed(chosen.disabled))
            for point, chosen in plugins.sets().items()
        }
    )


def _names(tree: object) -> Iterator[str]:
    """Yield every `name` inside the profiles. The structure has not been checked yet."""
    for profile in _items(_get(tree, "profiles")):
        for entry in _items(_get(profile, "pluginConfig")):
            yield from _name(entry)
        plugins = _get(profile, "plugins")
        for chosen in plugins.values() if isinstance(plugins, Mapping) else ():
            for entry in (*_items(_get(chosen, "enabled")), *_items(_get(chosen, "disabled"))):
                yield from _name(entry)


def _get(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, Mapping) else None


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _name(entry: object) -> Iterator[str]:
    name = _get(entry, "name")
    if isinstance(name, str):
        yield name
