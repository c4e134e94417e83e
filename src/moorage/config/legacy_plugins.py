"""Profiles under conversion, and the plugins that only v1beta1 knew.

A `Draft` holds the plugin sets and arguments of a profile and moves entries without losing their position.
The three resource scores of v1beta1 become the scoring strategy of NodeResourcesFit, and NodeLabel becomes an
affinity that NodeAffinity adds. Their arguments are plain mappings, because the types belong to the plugins.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

from msgspec.structs import replace

from moorage.api.meta import qualified_name_faults
from moorage.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from moorage.api.pod import NodeAffinity
from moorage.api.problems import Problem, child, invalid
from moorage.api.resource_weights import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    UtilizationShapePoint,
    validate_resources,
    validate_shape,
    weighted,
)
from moorage.config.types import Note, Plugin, PluginConfig, Plugins, PluginSet, Profile
from moorage.config.wire import decode, to_wire
from moorage.framework.args import ArgsContext, PluginArgs


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


class NodeLabelArgs(PluginArgs):
    """Label keys that a node must or must not have, or had better have or not have."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        for present, absent, name in (
            (self.present_labels, self.absent_labels, "presentLabels"),
            (self.present_labels_preference, self.absent_labels_preference, "presentLabelsPreference"),
        ):
            for index, label in enumerate(present):
                where = child(path, name, index)
                for fault in qualified_name_faults(label):
                    yield invalid(where, label, fault)
                if label in absent:
                    yield invalid(where, label, "cannot be both present and absent")


class ServiceAffinityArgs(PluginArgs):
    """Labels on which pods of one service should agree; read only to be reported."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


class AllocationArgs(PluginArgs):
    """Resources of NodeResourcesLeastAllocated and NodeResourcesMostAllocated."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def completed(self, context: ArgsContext) -> Self:
        return replace(self, resources=weighted(self.resources))

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        yield from validate_resources(self.resources, child(path, "resources"))


class RatioArgs(AllocationArgs):
    """Resources and shape of RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = ()

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        yield from super().validate(path, context)
        yield from validate_shape(self.shape, child(path, "shape"))


V1BETA1_ARGS: Mapping[str, type[PluginArgs]] = {
    "NodeLabel": NodeLabelArgs,
    "NodeResourcesLeastAllocated": AllocationArgs,
    "NodeResourcesMostAllocated": AllocationArgs,
    "RequestedToCapacityRatio": RatioArgs,
    "ServiceAffinity": ServiceAffinityArgs,
}


_FIT = "NodeResourcesFit"
_LEAST = "NodeResourcesLeastAllocated"
_STRATEGIES = {
    _LEAST: "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}


def convert_resource_scores(draft: Draft) -> None:
    """Least, most and ratio become the one scoring strategy of NodeResourcesFit."""
    own = draft.enabled("score")
    # The first was on by default, beside whatever else was enabled.
    default = () if draft.is_off("score", _LEAST) else (_LEAST,)
    active = list(dict.fromkeys((*default, *(name for name in own if name in _STRATEGIES))))
    _keep_fit_off(draft, active)
    if len(active) > 1:
        draft.problem(_two_strategies(draft, active))
    for name in _STRATEGIES:
        if name in own:
            draft.replace("score", name, Plugin(name=_FIT, weight=own[name].weight or 1))
            draft.note(draft.where("score", name), f"{name} became {_FIT}, scoring by {_STRATEGIES[name]}")
        _move_args(draft, name, used=active[:1] == [name])


def _keep_fit_off(draft: Draft, active: list[str]) -> None:
    """Disabling the score that was on by default must not leave its successor on."""
    for name in _STRATEGIES:
        instead = () if active or name != _LEAST else (Plugin(name=_FIT),)
        draft.replace_disabled("score", name, *instead)


def _two_strategies(draft: Draft, active: list[str]) -> Problem:
    message = f"{' and '.join(active)} are both enabled, but {_FIT} scores by one strategy only"
    hint = f"disable {active[0]}" if active[0] == _LEAST else "keep one of them"
    return Problem(path=draft.where("score", active[1]), message=message, value=active, hint=hint)


def _move_args(draft: Draft, name: str, used: bool) -> None:
    path = draft.where_args(name)
    args = draft.take_args(name)
    if used:
        draft.set_args(_FIT, {**draft.written_args(_FIT), "scoringStrategy": _strategy(name, args)})
    elif args is not None:
        draft.note(path, f"dropped, because {name} is not enabled")


def _strategy(name: str, args: object) -> dict[str, Any]:
    strategy: dict[str, Any] = {"type": _STRATEGIES[name]}
    if isinstance(args, AllocationArgs):
        strategy["resources"] = [to_wire(resource) for resource in args.resources]
    if isinstance(args, RatioArgs):
        strategy["requestedToCapacityRatio"] = {"shape": [to_wire(point) for point in args.shape]}
    return strategy


def convert_node_label(draft: Draft) -> None:
    """NodeLabel becomes an affinity that NodeAffinity adds to every pod of the profile."""
    filters, scores = "NodeLabel" in draft.enabled("filter"), "NodeLabel" in draft.enabled("score")
    path = draft.where_args("NodeLabel")
    args = draft.take_args("NodeLabel")
    if not filters and not scores:
        if args is not None:
            draft.note(path, "dropped, because NodeLabel is not enabled")
        return
    labels = args if isinstance(args, NodeLabelArgs) else NodeLabelArgs()
    for point in ("filter", "score"):
        if "NodeLabel" in draft.enabled(point):
            _hand_over(draft, point)
    if not filters:
        labels = replace(labels, present_labels=(), absent_labels=())
    if not scores:
        labels = replace(labels, present_labels_preference=(), absent_labels_preference=())
    written = draft.written_args("NodeAffinity")
    given: NodeAffinity | None = decode(written.get("addedAffinity") or {}, NodeAffinity, "", [])
    draft.set_args("NodeAffinity", {**written, "addedAffinity": to_wire(added_affinity(given, labels))})


def _hand_over(draft: Draft, point: str) -> None:
    path = draft.where(point, "NodeLabel")
    if draft.is_off(point, "NodeAffinity") and "NodeAffinity" not in draft.enabled(point):
        message = f"NodeLabel cannot become part of NodeAffinity, which is disabled at {point}"
        draft.problem(Problem(path=path, message=message, hint="enable NodeAffinity, or remove NodeLabel"))
    draft.replace(point, "NodeLabel")
    text = "NodeLabel became addedAffinity of NodeAffinity"
    draft.note(path, text if point == "filter" else f"{text}, which scores with its own weight")


def added_affinity(given: NodeAffinity | None, labels: NodeLabelArgs) -> NodeAffinity:
    """What NodeAffinity adds to every pod so that it does the work of NodeLabel, and what was given too."""
    affinity = given or NodeAffinity()
    demands = _expressions(labels.present_labels, "Exists") + _expressions(labels.absent_labels, "DoesNotExist")
    preferences = _expressions(labels.present_labels_preference, "Exists")
    preferences += _expressions(labels.absent_labels_preference, "DoesNotExist")
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return NodeAffinity(
        required_during_scheduling_ignored_during_execution=_both(
            affinity.required_during_scheduling_ignored_during_execution, demands
        ),
        preferred_during_scheduling_ignored_during_execution=preferred
        + tuple(
            PreferredSchedulingTerm(weight=1, preference=NodeSelectorTerm(match_expressions=(each,)))
            for each in preferences
        ),
    )


def _expressions(keys: tuple[str, ...], operator: str) -> tuple[NodeSelectorRequirement, ...]:
    return tuple(NodeSelectorRequirement(key=key, operator=operator) for key in keys)


def _both(given: NodeSelector | None, demands: tuple[NodeSelectorRequirement, ...]) -> NodeSelector | None:
    """Terms are alternatives, so the demands join each of them."""
    if not demands:
        return given
    terms = given.node_selector_terms if given is not None else (NodeSelectorTerm(),)
    return NodeSelector(
        node_selector_terms=tuple(replace(term, match_expressions=term.match_expressions + demands) for term in terms)
    )
