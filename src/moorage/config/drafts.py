"""A profile while it is being converted: its plugin sets and args, open to change, and what is said about it.

Knows how to move entries about without losing their place; which entries move is decided in `conversion` and
`legacy_plugins`.
"""

from collections.abc import Mapping

from moorage.api.problems import Problem, child
from moorage.config.types import Note, Plugin, PluginConfig, Plugins, PluginSet, Profile


class Draft:
    """One profile, its `path` in the file, and the notes and problems of its conversion."""

    def __init__(self, profile: Profile, written_args: Mapping[str, object], version: str, path: str) -> None:
        self.version = version
        self.notes: list[Note] = []
        self.problems: list[Problem] = []
        self._path = path
        self._sets = profile.plugins.sets()
        self._written_args = written_args
        self._args = {entry.name: entry.args for entry in profile.plugin_config}
        # Paths are those of the file, also after entries have moved.
        self._written = profile

    def plugins(self) -> Plugins:
        return Plugins.of(self._sets)

    def plugin_config(self) -> tuple[PluginConfig, ...]:
        return tuple(PluginConfig(name=name, args=args) for name, args in self._args.items())

    def points(self) -> tuple[str, ...]:
        return tuple(self._sets)

    def enabled(self, point: str) -> dict[str, Plugin]:
        """The plugins that the profile itself enables at a point."""
        return {entry.name: entry for entry in self._sets[point].enabled}

    def is_off(self, point: str, name: str) -> bool:
        """Whether a default plugin would be switched off at a point."""
        return any(entry.name in (name, "*") for entry in self._sets[point].disabled)

    def replace(self, point: str, name: str, *others: Plugin) -> None:
        """Put other entries where an enabled one is; a name that is enabled already is not added again."""
        have = set(self.enabled(point)) - {name}
        fresh = tuple(entry for entry in others if entry.name not in have)
        enabled: list[Plugin] = []
        for entry in self._sets[point].enabled:
            enabled += fresh if entry.name == name else (entry,)
        self._sets[point] = PluginSet(enabled=tuple(enabled), disabled=self._sets[point].disabled)

    def replace_disabled(self, point: str, name: str, *others: Plugin) -> bool:
        """Put other entries in the place of a disabled one; says whether there was one."""
        chosen = self._sets[point]
        kept = tuple(entry for entry in chosen.disabled if entry.name != name)
        found = len(kept) < len(chosen.disabled)
        if found:
            self._sets[point] = PluginSet(enabled=chosen.enabled, disabled=kept + others)
        return found

    def written_args(self, name: str) -> Mapping[str, object]:
        """The args of a plugin as the file has them; empty when it has none, or none that can be read."""
        written = self._written_args.get(name)
        return written if isinstance(written, Mapping) else {}

    def set_args(self, name: str, args: Mapping[str, object]) -> None:
        """Args as a file would have them; they are decoded after the conversion."""
        self._args[name] = args

    def take_args(self, name: str) -> object:
        """The args of a plugin that is about to go; they are no longer part of the profile."""
        return self._args.pop(name, None)

    def where(self, point: str, name: str) -> str:
        """The path of an entry in the file."""
        chosen = self._written.plugins.sets()[point]
        for kind, entries in (("enabled", chosen.enabled), ("disabled", chosen.disabled)):
            for index, entry in enumerate(entries):
                if entry.name == name:
                    return child(self._path, "plugins", point, kind, index)
        return child(self._path, "plugins", point)

    def where_args(self, name: str) -> str:
        for index, entry in enumerate(self._written.plugin_config):
            if entry.name == name:
                return child(self._path, "pluginConfig", index)
        return child(self._path, "pluginConfig")

    def note(self, path: str, message: str) -> None:
        self.notes.append(Note(path=path, message=message))

    def problem(self, problem: Problem) -> None:
        self.problems.append(problem)
