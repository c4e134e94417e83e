"""Decoding the `pluginConfig` of a profile: each plugin's arguments into its own type, and the defaults for
enabled plugins that have none written.

The types come from the caller, who knows the plugins, or from an old version's table; without a type the
arguments stay the plain mapping that they are. Types derived from `framework.args.PluginArgs` say themselves
what is wrong with their values.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from moorage.api.failures import failure_text, is_interruption
from moorage.api.problems import Problem, child, did_you_mean
from moorage.config.gates import FeatureGates
from moorage.config.types import GROUP, PluginConfig, wire_fields
from moorage.config.wire import decode
from moorage.framework.args import ArgsContext, PluginArgs

_HEADER = ("apiVersion", "kind")


class ArgsReader:
    """Decodes arguments and collects what is wrong with them."""

    def __init__(self, version: str, types: Mapping[str, type], gates: FeatureGates) -> None:
        self.problems: list[Problem] = []
        self._version = version
        self._types = types
        self._gates = gates

    def read(self, entries: Iterable[PluginConfig], path: str) -> tuple[PluginConfig, ...]:
        """The entries with their args decoded; `path` is that of the list."""
        return tuple(
            PluginConfig(name=entry.name, args=self.read_one(entry, child(path, index, "args")))
            for index, entry in enumerate(entries)
        )

    def defaults(self, names: Collection[str], present: Collection[str], path: str) -> list[PluginConfig]:
        """Default args of the named plugins that have a type and are not present, ordered by name."""
        missing = sorted(name for name in names if name in self._types and name not in present)
        return [PluginConfig(name=name, args=self._decode(name, {}, f'{path}["{name}"].args')) for name in missing]

    def read_converted(self, entries: Iterable[PluginConfig]) -> tuple[PluginConfig, ...]:
        """The entries with those decoded that conversion has written as plain mappings. Mistakes in them are
        reported already, with their place in the file."""
        known = len(self.problems)
        read = tuple(
            PluginConfig(name=entry.name, args=self._decode(entry.name, entry.args, ""))
            if isinstance(entry.args, dict) and entry.name in self._types
            else entry
            for entry in entries
        )
        del self.problems[known:]
        return read

    def read_one(self, entry: PluginConfig, path: str) -> object:
        """The args of one entry, decoded; `path` is that of the args."""
        raw = {} if entry.args is None else entry.args
        if not isinstance(raw, dict):
            self.problems.append(Problem(path=path, message="expected a mapping", value=raw))
            return None
        if entry.name not in self._types:
            return raw or None
        return self._decode(entry.name, raw, path)

    def _decode(self, name: str, raw: Mapping[str, object], path: str) -> object:
        target = self._types[name]
        body = self._without_header(name, raw, path)
        decoded = decode(body, target, path, self.problems)
        if isinstance(decoded, PluginArgs):
            written = [key for key, value in body.items() if value is not None]
            return self._complete(decoded, path, ArgsContext(self._gates, written))
        return decoded

    def _complete(self, args: PluginArgs, path: str, context: ArgsContext) -> PluginArgs:
        try:
            completed = args.completed(context)
            self.problems += list(completed.validate(path, context))
        except BaseException as error:  # the code of a plugin, which may be anything
            if is_interruption(error):
                raise
            message = f"checking these arguments raised {failure_text(error)}"
            self.problems.append(Problem(path=path, message=message))
            return args
        return completed

    def _without_header(self, name: str, raw: Mapping[str, object], path: str) -> dict[str, object]:
        """The arguments without apiVersion and kind, once those are known to fit."""
        target = self._types[name]
        own = wire_fields(target) if issubclass(target, msgspec.Struct) else {}
        if issubclass(target, PluginArgs):
            self._check_header(name, raw, path)
        return {key: value for key, value in raw.items() if key not in _HEADER or key in own}

    def _check_header(self, name: str, raw: Mapping[str, object], path: str) -> None:
        kind, version = raw.get("kind") or f"{name}Args", raw.get("apiVersion") or f"{GROUP}/{self._version}"
        if kind != f"{name}Args":
            message = f"args for plugin {name} were not of type {name}Args.{GROUP}, got {kind}.{GROUP}"
            hint = did_you_mean(str(kind), [f"{name}Args"])
            self.problems.append(Problem(path=child(path, "kind"), message=message, value=kind, hint=hint))
        if version != f"{GROUP}/{self._version}":
            message = f'no kind "{name}Args" is registered for version "{version}"'
            hint = f"the file is {GROUP}/{self._version}"
            where = child(path, "apiVersion")
            self.problems.append(Problem(path=where, message=message, value=version, hint=hint))
