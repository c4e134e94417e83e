"""The plugins that a process knows, by name.

They come from a table in code, from the entry point group `moorage.plugins`, or from `module:Class` in a configuration.
Every class is validated when it is registered, so a mistake shows at start and not with the first pod. After that a
plugin is known only by its `name`. Plugin folders are searched last, so that a file there can never replace an
installed package."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.failures import failure_text, is_interruption, place_of
from moorage.api.former_name import FORMER_NAME
from moorage.api.problems import did_you_mean
from moorage.api.resources import Resource
from moorage.framework._contract import is_marked
from moorage.framework.access import VERBS, Access
from moorage.framework.hot import (
    HeadroomFilterPlugin,
    IncrementalScorePlugin,
    ManyPodsFilterPlugin,
    ManyPodsScorePlugin,
    PreparedFilterPlugin,
    PreparedScorePlugin,
    WholeTableScorePlugin,
)
from moorage.framework.optional import ExplainingPlugin, ReusablePlugin, VectorFilterPlugin, VectorScorePlugin
from moorage.framework.points import EXTENSION_POINTS, Plugin, ReservePlugin, SortKeyPlugin, implemented_by
from moorage.runtime.signatures import hooks_of, misspelled, wrong_signatures
from moorage.telemetry import logs

_log = logs.get(__name__)

ENTRY_POINT_GROUP = "moorage.plugins"
FORMER_GROUP = f"{FORMER_NAME}.plugins"


class PluginError(MoorageError):
    """A plugin cannot be found, is invalid, or conflicts with another."""


class Registry(Mapping[str, type[Plugin]]):
    """Maps names to plugin classes, with the source of each."""

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
        """Register a class. The same class twice is allowed; another class under the same name is not."""
        check_class(cls, source)
        known = self._classes.get(cls.name)
        if known is not None and known is not cls:
            raise PluginError(
                f"duplicate plugin name {cls.name!r}: {describe(known)} ({self._sources[cls.name]}) "
                f"and {describe(cls)} ({source}); rename one of them"
            )
        self._classes[cls.name] = cls
        self._sources.setdefault(cls.name, source)

    def discover(self) -> None:
        """Add all plugins of installed packages in the entry point group. A broken plugin is logged and noted in
        `broken`: it matters only to configurations that name it."""
        for entry in sorted(importlib.metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda e: e.name):
            source = f"entry point {entry.name} = {entry.value}"
            try:
                cls = entry.load()
                check_class(cls, source)
            except PluginError as error:
                self._set_aside(entry.name, str(error))
            except (Exception, SystemExit) as error:
                text = f"{source}: cannot be imported: {failure_text(error)}"
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
        cls = _imported(reference)
        self.add(cls, source=reference)
        self.aliases[reference] = cls.name
        return str(cls.name)

    def implements(self) -> dict[str, frozenset[str]]:
        """Return the extension points that each plugin implements."""
        return {name: implemented_by(cls) for name, cls in self._classes.items()}

    def args_types(self) -> dict[str, type]:
        """Return the type that the pluginConfig of each plugin is decoded into, for plugins that have one."""
        return {name: cls.Args for name, cls in self._classes.items() if cls.Args is not None}


def _imported(reference: str) -> Any:
    """Import `module:Class`. Raises a PluginError with the file and line if that fails."""
    module_name, _, class_name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:
        if is_interruption(error):
            raise
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise PluginError(f"cannot import plugin {reference!r}: {error}; {_HOW_TO_FIND}") from error
        place = place_of(error)
        where = f"{place}: " if place else ""
        if isinstance(error, ModuleNotFoundError) and error.name:
            text = f"{where}{error}; install the package of {error.name!r}, or correct the import"
            raise PluginError(f"cannot import plugin {reference!r}: {text}") from error
        text = f"{where}importing raised {failure_text(error)}; correct the file"
        raise PluginError(f"plugin reference {reference!r}: {text}") from error
    if hasattr(module, class_name):
        return getattr(module, class_name)
    file = getattr(module, "__file__", None)
    text = f"{file or module_name} has no class {class_name!r}"
    hint = did_you_mean(class_name, [name for name, found in vars(module).items() if isinstance(found, type)])
    raise PluginError(f"cannot import plugin {reference!r}: {text}{f' ({hint})' if hint else ''}; {_HOW_TO_FIND}")


_HOW_TO_FIND = (
    "install its package, or name its folder with --plugin-path (other commands than run search the current folder)"
)


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
    """Finds modules in folders that the user has named."""

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Implement Python's protocol; `path` is set for modules inside packages, which Python finds itself."""
        return PathFinder.find_spec(name, self.folders, target) if path is None else None


_FINDER = PluginFolders()


def folders_searched() -> Sequence[str]:
    """Return the folders that `look_in` was given."""
    return _FINDER.folders


def look_in(folders: Iterable[str]) -> None:
    """Search these folders for modules too from now on."""
    _FINDER.folders += [folder for folder in folders if folder not in _FINDER.folders]
    if _FINDER.folders and _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)


FORMS: tuple[type[Plugin], ...] = (
    SortKeyPlugin,
    VectorFilterPlugin,
    VectorScorePlugin,
    ReusablePlugin,
    ExplainingPlugin,
    WholeTableScorePlugin,
    PreparedFilterPlugin,
    PreparedScorePlugin,
    HeadroomFilterPlugin,
    IncrementalScorePlugin,
)
"""Classes that a plugin inherits to be asked in another form, beside the points themselves."""


_BASES: tuple[type[Plugin], ...] = (
    Plugin,
    *(point.plugin for point in EXTENSION_POINTS),
    *FORMS,
    ManyPodsFilterPlugin,
    ManyPodsScorePlugin,
)

MAY_WAIT = frozenset(("run", "post_filter", "pre_bind", "bind", "post_bind"))
"""The methods that may be `async def`; all others are plain calls."""


def mistakes(cls: type[Plugin]) -> list[str]:
    """Return problems with methods that the class inherits as required and does not define, defines without the base
    class that calls them, defines with other parameters, or defines as coroutines where a plain function is
    required."""
    hooks = hooks_of(cls, _BASES)
    found = unwritten(cls) + wrong_signatures(cls, hooks) + _coroutines(cls, hooks)
    if issubclass(cls, ReservePlugin) and not _differs(cls, ReservePlugin):
        found.append("inherits ReservePlugin but defines no reserve() or unreserve()")
    for form in FORMS:
        if not issubclass(cls, form):
            names = [name for name, method in vars(form).items() if is_marked(method)]
            found += [
                f"defines {name}(), which is called only if it inherits {form.__name__}"
                for name in names
                if hasattr(cls, name)
            ]
    return found


def called_hooks(cls: type[Plugin]) -> dict[str, Callable[..., Any]]:
    """Return the methods that the scheduler calls and that the author has written as functions or coroutines."""
    found = {name: inspect.getattr_static(cls, name) for name in hooks_of(cls, _BASES)}
    own = "moorage.framework."
    return {
        name: hook for name, hook in found.items() if inspect.isfunction(hook) and not hook.__module__.startswith(own)
    }


def probable_misspellings(cls: type[Plugin]) -> list[str]:
    """Return a warning for every optional method that the class does not define under its name, but under a similar
    one. A required method that is missing is a mistake (`unwritten`)."""
    hooks = hooks_of(cls, _BASES)
    found = {name: misspelled(cls, name, hooks) for name, declared in hooks.items() if getattr(cls, name) is declared}
    return [
        f"defines {similar}(), which the scheduler does not call; rename it if it is meant to be {name}()"
        for name, similar in found.items()
        if similar
    ]


def _coroutines(cls: type[Plugin], called: Collection[str]) -> list[str]:
    return [
        f"{name}() is `async def`, but its answer is not awaited: write a plain `def`, and do what has to "
        "wait in run() or handle.spawn()"
        for name in sorted(set(called) - MAY_WAIT)
        if is_async(getattr(cls, name))
    ]


def is_async(method: object) -> bool:
    """Return whether a call returns an awaitable instead of an answer."""
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def _differs(cls: type, base: type) -> bool:
    """Return whether the class overrides a method of `base`."""
    methods = (name for name in vars(base) if not name.startswith("_"))
    return any(getattr(cls, name) is not getattr(base, name) for name in methods)


def unwritten(cls: type[Plugin]) -> list[str]:
    """Return a problem for every method that a base class requires and the class does not define."""
    found, hooks = {name: getattr(cls, name) for name in dir(cls)}, hooks_of(cls, _BASES)
    marked = {name: method for name, method in found.items() if hasattr(method, "__required__")}
    return [
        f"inherits {method.__qualname__.partition('.')[0]} but defines no {name}()"
        + (f" (rename {similar}() if that is meant)" if (similar := misspelled(cls, name, hooks)) else "")
        for name, method in sorted(marked.items())
    ]


def wrong_needs(needs: object) -> list[str]:
    """Return problems with the `needs` of a plugin class."""
    if not isinstance(needs, Sequence) or isinstance(needs, str):
        return [f"`needs` must be a tuple of Access, such as (Access(PODS),), not {needs}"]
    return [complaint for need in needs for complaint in _wrong_need(need)]


def _wrong_need(need: object) -> list[str]:
    if not isinstance(need, Access):
        return [f"`needs` must hold Access only, not {need}: write Access(…) around the resource"]
    found: list[str] = []
    where = f"`needs`: Access({need.resource})"
    resource: object = need.resource
    verbs: object = need.verbs
    if not isinstance(resource, Resource):
        text = "the resource must be one of moorage.api.resources, or made by resources.custom()"
        found.append(f"{where}: {text}")
    if not isinstance(verbs, Sequence) or isinstance(verbs, str):
        return [*found, f"{where}: the verbs must be a tuple, not {verbs!r}"]
    for verb in verbs:
        if verb not in VERBS:
            hint = did_you_mean(str(verb), VERBS) or f"known are {', '.join(VERBS)}"
            found.append(f"{where}: unknown verb {verb!r} ({hint})")
    return found
