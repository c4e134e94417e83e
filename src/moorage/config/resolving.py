"""From a configuration to the plugins that run at each extension point, in order, with weights.

Expands multiPoint with the points that each plugin says it implements (upstream's expandMultiPointPlugins)
and finds every mistake that upstream finds while it builds a profile, with the same messages, all at once.
Builds nothing: that is the runtime's business.
"""

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.meta import Record
from moorage.api.problems import Problem, child, did_you_mean
from moorage.config import versions
from moorage.config.defaults import DEFAULT_NAMES
from moorage.config.loading import rename
from moorage.config.types import (
    MULTI_POINT,
    UNSUPPORTED_POINTS,
    ConfigError,
    Extender,
    KubeSchedulerConfiguration,
    Profile,
    wire_fields,
)
from moorage.framework.points import BUILT, BY_NAME

MAX_NODE_SCORE = 100
MAX_TOTAL_SCORE = 2**63 - 1

_Lookup = Callable[[str], Collection[str] | None]
Implements = _Lookup | Mapping[str, Collection[str]]


class PluginRef(Record):
    """A plugin at one point. `weight` is 0 except at score; `default` says that the file did not name it."""

    name: str
    weight: int = 0
    default: bool = False


class ResolvedProfile(Record):
    """One profile, ready to be built."""

    scheduler_name: str
    percentage_of_nodes_to_score: int
    points: dict[str, tuple[PluginRef, ...]]
    plugin_args: dict[str, object]
    # Default plugins that do not exist in this process: left out.
    missing: tuple[str, ...] = ()

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Every plugin that some point needs, in order of first use."""
        return tuple(dict.fromkeys(ref.name for refs in self.points.values() for ref in refs))


def resolve(
    config: KubeSchedulerConfiguration,
    implements: Implements,
    *,
    aliases: Mapping[str, str] = {},
    known: Collection[str] = (),
    broken: Mapping[str, str] = {},
    missing_defaults: bool = True,
    source: str = "<config>",
) -> tuple[ResolvedProfile, ...]:
    """The profiles of `config`, or ConfigError with all that keeps them from being built.

    `implements` gives the extension points (wire names) of a plugin; no entry, or None, means that there is
    no such plugin. `known` names plugins for "did you mean"; a mapping names its own. `broken` says why a
    plugin that is installed does not exist all the same. With `missing_defaults` a default plugin that does
    not exist is left out unless the file names it; without, it is an error.
    """
    resolved, problems = resolve_all(
        config, implements, aliases=aliases, known=known, broken=broken, missing_defaults=missing_defaults
    )
    if problems:
        raise ConfigError(problems, source)
    return resolved


def resolve_all(
    config: KubeSchedulerConfiguration,
    implements: Implements,
    *,
    aliases: Mapping[str, str] = {},
    known: Collection[str] = (),
    broken: Mapping[str, str] = {},
    missing_defaults: bool = True,
) -> tuple[tuple[ResolvedProfile, ...], list[Problem]]:
    """Return the profiles without the entries that have problems, and the problems. The arguments are those of
    `resolve`."""
    lookup = implements.get if isinstance(implements, Mapping) else _forgiving(implements)
    names = {*known, *(implements if isinstance(implements, Mapping) else ())}
    problems: list[Problem] = []
    resolved: list[ResolvedProfile] = []
    for index, profile in enumerate(config.profiles):
        renamed = rename(profile, aliases) if aliases else profile
        resolver = _Resolver(renamed, f"profiles[{index}]", lookup, names, broken, missing_defaults)
        resolved.append(resolver.resolve(config))
        problems += resolver.problems
    return tuple(resolved), problems


_HOW_TO_FIND = "no built-in or installed plugin has this name; install its package, or write module:Class"


class _Resolver:
    """Resolves one profile and collects its problems."""

    def __init__(
        self,
        profile: Profile,
        path: str,
        lookup: _Lookup,
        known: Collection[str],
        broken: Mapping[str, str],
        missing_defaults: bool,
    ) -> None:
        self.problems: list[Problem] = []
        self._reported: set[str] = set()
        self._profile = profile
        self._path = path
        self._known = known
        self._broken = broken
        self._sets = profile.plugins.sets()
        names = dict.fromkeys(entry.name for chosen in self._sets.values() for entry in chosen.enabled)
        self._points = {name: points for name in names if (points := lookup(name)) is not None}
        self._missing = tuple(
            name for name in names if missing_defaults and name not in self._points and self._is_default(name)
        )

    def resolve(self, config: KubeSchedulerConfiguration) -> ResolvedProfile:
        profile = self._profile
        self._refuse_unsupported_points()
        own = {point: self._own(point) for point in BUILT}
        order = {point: self._order(point, own[point]) for point in BUILT}
        weights = self._weights()
        points = {
            point: tuple(self._ref(name, weights[name] if point == "score" else 0) for name in order[point])
            for point in BY_NAME
        }
        self._check_counts(points)
        percentage = profile.percentage_of_nodes_to_score
        return ResolvedProfile(
            scheduler_name=profile.scheduler_name,
            percentage_of_nodes_to_score=(config.percentage_of_nodes_to_score if percentage is None else percentage),
            points=points,
            plugin_args=self._plugin_args(config.extenders),
            missing=self._missing,
        )

    def _is_default(self, name: str) -> bool:
        return name in DEFAULT_NAMES and name not in self._profile.user_named

    def _ref(self, name: str, weight: int) -> PluginRef:
        return PluginRef(name=name, weight=weight, default=self._is_default(name))

    def _problem(self, message: str, *where: str | int, hint: str = "") -> None:
        self.problems.append(Problem(path=child(self._path, *where), message=message, hint=hint))

    def _refuse_unsupported_points(self) -> None:
        for point in UNSUPPORTED_POINTS:
            if self._sets[point].enabled:
                self._problem(f"the extension point {point} is not supported", "plugins", point, "enabled")

    def _order(self, point: str, own: list[str]) -> list[str]:
        """The plugins at one point: overridden multiPoint ones, other multiPoint ones, the point's own."""
        off = {entry.name for entry in self._sets[point].disabled}
        if "*" in off:
            return own
        spread = [name for name in self._multi_point(point) if name not in off]
        both = [name for name in own if name in spread]
        return [*both, *(name for name in spread if name not in both), *(name for name in own if name not in both)]

    def _own(self, point: str) -> list[str]:
        """The plugins that the point itself enables and that can run there."""
        usable: list[str] = []
        for index, entry in enumerate(self._sets[point].enabled):
            if entry.name in self._missing:
                continue
            if entry.name not in self._points:
                self._report_unknown(point, point, index)
            elif point not in self._points[entry.name]:
                message = f'plugin "{entry.name}" does not extend {BY_NAME[point].go_type} plugin'
                self._problem(message, *self._where(point, index))
            elif entry.name in usable:
                self._report_twice(point, point, index)
            else:
                usable.append(entry.name)
        return usable

    def _multi_point(self, point: str) -> list[str]:
        """The multiPoint plugins that implement the point."""
        own = {entry.name for entry in self._sets[point].enabled}
        off = {entry.name for entry in self._sets[point].disabled}
        spread: list[str] = []
        for index, entry in enumerate(self._sets[MULTI_POINT].enabled):
            if entry.name in self._missing:
                continue
            if entry.name not in self._points:
                self._report_unknown(point, MULTI_POINT, index)
            elif point in self._points[entry.name]:
                if entry.name not in spread:
                    spread.append(entry.name)
                elif entry.name not in own | off:
                    self._report_twice(point, MULTI_POINT, index)
        return spread

    def _report_unknown(self, point: str, set_name: str, index: int) -> None:
        name = self._sets[set_name].enabled[index].name
        # A multiPoint entry comes by at every point; the first one reports it.
        if set_name != MULTI_POINT or name not in self._reported:
            message = f'{BY_NAME[point].go_type} "{name}" does not exist'
            hint = self._broken.get(name) or self._nearest(name) or _HOW_TO_FIND
            self._problem(message, *self._where(set_name, index), hint=hint)
        self._reported.add(name)

    def _report_twice(self, point: str, set_name: str, index: int) -> None:
        name = self._sets[set_name].enabled[index].name
        if set_name != MULTI_POINT or name not in self._reported:
            message = f'plugin "{name}" already registered as "{BY_NAME[point].go_type}"'
            self._problem(message, *self._where(set_name, index))
        self._reported.add(name)

    def _where(self, set_name: str, index: int) -> tuple[str | int, ...]:
        """Where an entry of a merged set stands in the file; merging has moved it."""
        entries = self._sets[set_name].enabled
        name = entries[index].name
        earlier = sum(entry.name == name for entry in entries[:index])
        written = [
            position
            for position, entry in enumerate(self._profile.written.sets()[set_name].enabled)
            if entry.name == name
        ]
        position = written[earlier] if earlier < len(written) else index
        return ("plugins", set_name, "enabled", position)

    def _nearest(self, name: str) -> str:
        return versions.successor(name) or did_you_mean(name, sorted({*self._known, *self._points}))

    def _weights(self) -> dict[str, int]:
        """Score weights by plugin: score's own before multiPoint's; 0 counts as 1."""
        weights: dict[str, int] = {}
        total = 0
        for entry in (*self._sets["score"].enabled, *self._sets[MULTI_POINT].enabled):
            if "score" not in self._points.get(entry.name, ()) or entry.name in weights:
                continue
            weights[entry.name] = entry.weight or 1
            total += weights[entry.name] * MAX_NODE_SCORE
        if total > MAX_TOTAL_SCORE:
            self._problem("total score of Score plugins could overflow", "plugins", "score")
        return weights

    def _check_counts(self, points: Mapping[str, tuple[PluginRef, ...]]) -> None:
        # A plugin that is unknown or misplaced is reported already; counting without it would mislead.
        if self.problems:
            return
        name = self._profile.scheduler_name
        count = len(points["queueSort"])
        if count > 1 or (count == 0 and "PrioritySort" not in self._missing):
            text = f'only one queue sort plugin required for profile with scheduler name "{name}"'
            self._problem(f"{text}, but got {count}", "plugins", "queueSort")
        if not points["bind"] and "DefaultBinder" not in self._missing:
            text = f'at least one bind plugin is needed for profile with scheduler name "{name}"'
            self._problem(text, "plugins", "bind")

    def _plugin_args(self, extenders: tuple[Extender, ...]) -> dict[str, object]:
        args: dict[str, object] = {}
        for index, entry in enumerate(self._profile.plugin_config):
            if entry.name in args:
                self._problem(f"repeated config for plugin {entry.name}", "pluginConfig", index)
            args[entry.name] = entry.args
        ignored = _ignored_resources(extenders)
        if ignored:
            fit = args.get("NodeResourcesFit")
            field = wire_fields(type(fit)).get("ignoredResources") if isinstance(fit, Struct) else None
            if isinstance(fit, Struct) and field is not None:
                # What the profile ignores is replaced, not extended: upstream's rule.
                args["NodeResourcesFit"] = replace(fit, **{field.name: ignored})
            else:
                self._problem("can't find NodeResourcesFitArgs in plugin config", "pluginConfig")
        return args


def _ignored_resources(extenders: tuple[Extender, ...]) -> tuple[str, ...]:
    """Resources that extenders look after alone, for all profiles."""
    return tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )


def _forgiving(implements: _Lookup) -> _Lookup:
    """A lookup that may also raise for plugins it does not know."""

    def lookup(name: str) -> Collection[str] | None:
        try:
            return implements(name)
        except LookupError:
            return None

    return lookup
