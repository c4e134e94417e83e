"""The plugins that a process knows, by name.

They come from a table in code, from the entry point group `moorage.plugins`, or from `module:Class` in a
configuration. Every class is checked when it is registered, so a mistake shows at start and not with the
first pod. After that a plugin is known only by its `name`. Folders of plugins are searched by a finder behind
all others, so that a file there can never take the place of an installed package."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.former_name import FORMER_NAME
from moorage.framework.access import wrong_needs
from moorage.framework.extension_points import implemented_by, mistakes
from moorage.framework.points import Plugin
from moorage.telemetry import logs

_log = logs.get(__name__)

ENTRY_POINT_GROUP = "moorage.plugins"
FORMER_GROUP = f"{FORMER_NAME}.plugins"


class PluginError(MoorageError):
    """A plugin cannot be found, is not what it says, or clashes with another."""


class Registry(Mapping[str, type[Plugin]]):
    """Name → plugin class, with where each came from."""

    def __init__(self, classes: Iterable[type[Plugin]] = (), source: str = "code") -> None:
        self._classes: dict[str, type[Plugin]] = {}
        self._sources: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        """`module:Class` → name, for references that were followed."""
        self.broken: dict[str, str] = {}
        """Entry point → why what an installed package offers there cannot be used."""
        for cls in classes:
            self.add(cls, source=source)

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def source_of(self, name: str) -> str:
        return self._sources[name]

    def add(self, cls: type[Plugin], *, source: str = "code") -> None:
        """Register a class. The same class twice is fine; another class under the same name is not."""
        check_class(cls, source)
        known = self._classes.get(cls.name)
        if known is not None and known is not cls:
            raise PluginError(
                f"plugin name {cls.name!r} is taken twice: by {describe(known)} ({self._sources[cls.name]}) "
                f"and by {describe(cls)} ({source}); rename one of them"
            )
        self._classes[cls.name] = cls
        self._sources.setdefault(cls.name, source)

    def discover(self) -> None:
        """Add everything that installed packages offer in the entry point group. What is broken there is
        logged and noted in `broken`: it matters to configurations that name it, and to no others."""
        for entry in sorted(importlib.metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda e: e.name):
            source = f"entry point {entry.name} = {entry.value}"
            try:
                cls = entry.load()
                check_class(cls, source)
            except PluginError as error:
                self._set_aside(entry.name, str(error))
            except (Exception, SystemExit) as error:
                text = f"{source}: cannot be imported: {type(error).__name__}: {error}"
                self._set_aside(entry.name, text)
            else:
                self.add(cls, source=source)
        for entry in sorted(importlib.metadata.entry_points(group=FORMER_GROUP), key=lambda e: e.name):
            if entry.name not in self._classes:
                self._set_aside(
                    entry.name,
                    f"entry point {entry.name} = {entry.value} is registered in the group {FORMER_GROUP!r}; "
                    f"register it in {ENTRY_POINT_GROUP!r} and install its package again",
                )

    def _set_aside(self, entry: str, reason: str) -> None:
        _log.warning("An installed plugin cannot be used", reason=reason)
        self.broken[entry] = reason

    def follow(self, reference: str) -> str:
        """Import `module:Class`, register it, and return its plugin name."""
        module_name, _, class_name = reference.partition(":")
        try:
            cls = getattr(importlib.import_module(module_name), class_name)
        except (ImportError, AttributeError) as error:
            file = getattr(sys.modules.get(module_name), "__file__", None)
            raise PluginError(
                f"plugin reference {reference!r} leads nowhere: {error}{f' ({file})' if file else ''}; "
                "install its package, "
                "or name its folder with --plugin-path (other commands than run look in the current one)"
            ) from error
        except Exception as error:
            raise PluginError(
                f"plugin reference {reference!r}: importing raised {type(error).__name__}: {error}"
            ) from error
        self.add(cls, source=reference)
        self.aliases[reference] = cls.name
        return str(cls.name)

    def implements(self) -> dict[str, frozenset[str]]:
        """Plugin name → the extension points it implements."""
        return {name: implemented_by(cls) for name, cls in self._classes.items()}

    def args_types(self) -> dict[str, type]:
        """Plugin name → the type its pluginConfig is decoded into, for those that have one."""
        return {name: cls.Args for name, cls in self._classes.items() if cls.Args is not None}


def describe(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def check_class(cls: object, source: str) -> None:
    """Raise a PluginError that names the class, the source and everything that is wrong with it."""
    if not isinstance(cls, type) or not issubclass(cls, Plugin):
        raise PluginError(
            f"{source}: {cls!r} is not a plugin: it must be a class derived from moorage.framework.Plugin"
        )
    problems = mistakes(cls) + wrong_needs(cls.needs)
    if not isinstance(cls.name, str) or not cls.name:
        problems.append("has no `name` (a non-empty string, as configurations will spell it)")
    if cls.Args is not None and not (isinstance(cls.Args, type) and issubclass(cls.Args, msgspec.Struct)):
        problems.append(f"`Args` must be a msgspec.Struct class or None, not {cls.Args!r}")
    if not implemented_by(cls):
        problems.append("implements no extension point: derive it from FilterPlugin, ScorePlugin, …")
    if problems:
        raise PluginError(f"plugin {describe(cls)} ({source}): " + "; ".join(problems))


class PluginFolders:
    """A finder of modules in folders that the user has named."""

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Python's protocol; `path` is set for modules inside packages, which are found by themselves."""
        return PathFinder.find_spec(name, self.folders, target) if path is None else None


_FINDER = PluginFolders()


def folders_searched() -> Sequence[str]:
    """Those that `look_in` was given."""
    return _FINDER.folders


def look_in(folders: Iterable[str]) -> None:
    """From now on modules are looked for in these folders too."""
    _FINDER.folders += [folder for folder in folders if folder not in _FINDER.folders]
    if _FINDER.folders and _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
