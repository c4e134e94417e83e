"""Plugins written as `module:Class`: which ones a file mentions, and replacing them by the plugins' names.

`module:Class` says how to find a plugin; once it is imported, the plugin goes by its name alone. Importing is
a registry's business.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from moorage.config import yaml_source
from moorage.config.types import Plugin, Plugins, PluginSet, Profile

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_reference(name: str) -> bool:
    return _REFERENCE.fullmatch(name) is not None


def plugin_names(text: str | bytes) -> frozenset[str]:
    """The plugins that a file mentions, references too; none when it cannot be read (`load` says why)."""
    tree, _ = yaml_source.parse(text)
    return frozenset(_names(tree))


def plugin_references(text: str | bytes) -> frozenset[str]:
    """Those of them that are written as `module:Class`."""
    return frozenset(name for name in plugin_names(text) if is_reference(name))


def rename(profile: Profile, aliases: Mapping[str, str]) -> Profile:
    """With references replaced in every plugin set and in pluginConfig."""
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
    """Every `name` inside the profiles, wherever it stands; the shape is not trusted yet."""
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
