"""A legacy Policy -> the KubeSchedulerConfiguration v1 that it amounts to.

Predicates become filters, in the order in which predicates ran, and priorities become scores with their
weights. The chosen plugins are enabled in multiPoint; one that can do both, of which the Policy asks for one,
is disabled at the points of the other. What is gone gets its successor, a note, or a problem.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import asdict

from moorage.api import times
from moorage.api.node import HOSTNAME, ZONE
from moorage.api.problems import Problem, child, did_you_mean, required
from moorage.api.resource_weights import weighted
from moorage.config import versions
from moorage.config.defaults import NEWER_THAN_BETA, default_plugins
from moorage.config.gates import DEFAULT_GATES, FeatureGates
from moorage.config.legacy_plugins import NodeLabelArgs, added_affinity
from moorage.config.policy import (
    AFFINITY,
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    DROPPED,
    FIT,
    LIMITS,
    MANDATORY,
    PODS,
    PREDICATES,
    PRIORITIES,
    SPREAD,
    STRATEGIES,
    Policy,
    PolicyExtender,
    Predicate,
    Priority,
    read_policy,
)
from moorage.config.types import ConfigError, Extender, Note, Plugin, PluginConfig, Plugins, PluginSet, Profile
from moorage.config.wire import to_wire, to_yaml

_ALWAYS = ("PrioritySort", "DefaultPreemption", "DefaultBinder", *NEWER_THAN_BETA)
_SYSTEM_SKEWS = {HOSTNAME: 3, ZONE: 5}
_FILTERING = {name for names in PREDICATES.values() for name in names}
_SCORING = {*PRIORITIES.values(), "VolumeBinding"}


class ConvertedPolicy(NamedTuple):
    """A configuration file, and what its reader should know about how it came about."""

    text: str
    notes: tuple[Note, ...]


def convert_policy(
    text: str | bytes, *, scheduler_name: str = "", source: str = "<policy>", gates: FeatureGates = DEFAULT_GATES
) -> ConvertedPolicy:
    """The configuration that a Policy amounts to, or ConfigError with all that is wrong with the Policy."""
    policy, problems = read_policy(text)
    conversion = _Conversion(policy)
    body = conversion.body(scheduler_name, gates)
    known = {problem.path for problem in problems}
    problems += [problem for problem in conversion.problems if problem.path not in known]
    if problems:
        raise ConfigError(problems, source)
    return ConvertedPolicy(to_yaml(body), tuple(conversion.notes))


class _Conversion:
    """One Policy on its way: the chosen plugins, and what is said about them."""

    def __init__(self, policy: Policy) -> None:
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        self._policy = policy
        self._labels: dict[str, tuple[str, ...]] = {}
        """Fields of NodeLabelArgs."""
        self._filters: tuple[str, ...] = ()
        self._weights: dict[str, int] = {}
        self._strategy: dict[str, Any] = {}
        self._spread_labels: list[str] = []
        self._spreads_by_default = False

    def body(self, scheduler_name: str, gates: FeatureGates) -> dict[str, Any]:
        """The fields of the configuration."""
        self._note("", f"the profile has what came after the Policy too: {', '.join(NEWER_THAN_BETA)}")
        self._convert_predicates()
        self._convert_priorities()
        if self._policy.always_check_all_predicates:
            self._note("alwaysCheckAllPredicates", "dropped: only the first plugin that refuses a node is named")
        profile = Profile(
            scheduler_name=scheduler_name, plugins=self._plugins(gates), plugin_config=tuple(self._plugin_config())
        )
        extenders = [to_wire(_extender(each)) for each in self._policy.extenders]
        return {"profiles": [to_wire(profile)], **({"extenders": extenders} if extenders else {})}

    def _note(self, path: str, message: str) -> None:
        self.notes.append(Note(path=path, message=message))

    def _problem(self, path: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path=path, message=message, hint=hint))

    # Predicates

    def _convert_predicates(self) -> None:
        chosen = {*MANDATORY, *(DEFAULT_PREDICATES if self._policy.predicates is None else ())}
        for index, predicate in enumerate(self._policy.predicates or ()):
            chosen.add(self._predicate(predicate, child("predicates", index)))
        ordered = (plugin for name, plugins in PREDICATES.items() if name in chosen for plugin in plugins)
        self._filters = tuple(dict.fromkeys(ordered))

    def _predicate(self, predicate: Predicate, path: str) -> str:
        """The name under which the table has it."""
        name, argument = predicate.name, predicate.argument
        if argument is not None and (presence := argument.labels_presence) is not None:
            fields = ("present_labels", "absent_labels")
            field, other = fields if presence.presence else reversed(fields)
            self._add_labels(field, other, presence.labels, child(path, "argument"))
            return "CheckNodeLabelPresence"
        if name == "CheckServiceAffinity" or (argument is not None and argument.service_affinity is not None):
            self._problem(path, f"ServiceAffinity is gone: {versions.successor('ServiceAffinity')}")
        elif name == "CheckNodeLabelPresence":
            self.problems.append(required(child(path, "argument", "labelsPresence")))
        elif name not in PREDICATES:
            self._problem(path, f'predicate type not found for "{name}"', did_you_mean(name, PREDICATES))
        elif PREDICATES[name] == (LIMITS,) and name != "MaxCSIVolumeCountPred":
            self._note(path, f"{name} became {LIMITS}, which takes the limits of CSI drivers")
        return name

    def _add_labels(self, field: str, other: str, labels: tuple[str, ...], path: str) -> None:
        for label in labels:
            if label in self._labels.get(other, ()):
                self._problem(path, f'label "{label}" cannot be both present and absent')
        self._labels[field] = self._labels.get(field, ()) + labels
        self._note(path, f"became addedAffinity of {AFFINITY}, which judges by the affinity of pods too")

    # Priorities

    def _convert_priorities(self) -> None:
        given = self._policy.priorities
        for index, priority in enumerate(given or ()):
            self._priority(priority, child("priorities", index))
        for name, weight in DEFAULT_PRIORITIES.items() if given is None else ():
            self._named(Priority(name=name, weight=weight), "priorities")

    def _priority(self, priority: Priority, path: str) -> None:
        argument, where = priority.argument, child(path, "argument")
        if argument is None:
            self._named(priority, path)
        elif (preference := argument.label_preference) is not None:
            fields = ("present_labels_preference", "absent_labels_preference")
            field, other = fields if preference.presence else reversed(fields)
            self._add_labels(field, other, (preference.label,), where)
            count = sum(len(self._labels.get(name, ())) for name in fields)
            self._add_weight(AFFINITY, priority.weight * count)
        elif (service := argument.service_anti_affinity) is not None:
            self._spread_labels.append(service.label)
            self._add_weight(SPREAD, priority.weight * len(self._spread_labels))
            self._note(where, f"became a default constraint of {SPREAD}, for pods that bring none")
        elif (ratio := argument.requested_to_capacity_ratio_arguments) is not None:
            resources = [to_wire(resource) for resource in weighted(ratio.resources)]
            shape = [to_wire(point) for point in ratio.shape]
            strategy = {"resources": resources, "requestedToCapacityRatio": {"shape": shape}}
            self._score_resources({"type": "RequestedToCapacityRatio", **strategy}, priority.weight, path)

    def _named(self, priority: Priority, path: str) -> None:
        name = priority.name
        if name in DROPPED:
            self._note(path, f"{name} is dropped: {DROPPED[name]}")
        elif name in STRATEGIES:
            self._score_resources({"type": STRATEGIES[name]}, priority.weight, path)
        elif name == "RequestedToCapacityRatioPriority":
            self.problems.append(required(child(path, "argument", "requestedToCapacityRatioArguments")))
        elif name not in PRIORITIES:
            hint = did_you_mean(name, (*PRIORITIES, *DROPPED))
            self._problem(path, f'priority type not found for "{name}"', hint)
        else:
            self._add_weight(PRIORITIES[name], priority.weight)
            if name in ("SelectorSpreadPriority", "ServiceSpreadingPriority"):
                self._spreads_by_default = True
                self._note(path, f"{name} became {SPREAD} with its default constraints")

    def _add_weight(self, plugin: str, weight: int) -> None:
        """Of several priorities that became one plugin the largest weight counts."""
        self._weights[plugin] = max(weight, self._weights.get(plugin, 0))

    def _score_resources(self, strategy: dict[str, Any], weight: int, path: str) -> None:
        if self._strategy and self._strategy != strategy:
            kinds = f"{self._strategy['type']} and {strategy['type']}"
            self._problem(path, f"{kinds}: {FIT} scores by one strategy only", "keep one of them")
        self._strategy = strategy
        self._add_weight(FIT, weight)

    # The profile

    def _plugins(self, gates: FeatureGates) -> Plugins:
        names = dict.fromkeys((*self._filters, *self._weights))
        chosen = [Plugin(name=name, weight=self._weights.get(name, 0)) for name in names]
        kept = [each for each in default_plugins("v1", gates).multi_point.enabled if each.name in _ALWAYS]
        unscored = _off(name for name in names if name in _SCORING and name not in self._weights)
        unfiltered = _off(name for name in names if name in _FILTERING and name not in self._filters)
        return Plugins(
            multi_point=PluginSet(enabled=(*chosen, *kept), disabled=(Plugin(name="*"),)),
            pre_filter=unfiltered,
            filter=unfiltered,
            pre_score=unscored,
            score=unscored,
        )

    def _plugin_config(self) -> Iterator[PluginConfig]:
        if self._strategy:
            yield PluginConfig(name=FIT, args={"scoringStrategy": self._strategy})
        if self._labels:
            added = added_affinity(None, NodeLabelArgs(**self._labels))
            yield PluginConfig(name=AFFINITY, args={"addedAffinity": to_wire(added)})
        if SPREAD in self._weights:
            yield PluginConfig(name=SPREAD, args=self._spread_args())
        if weight := self._policy.hard_pod_affinity_symmetric_weight:
            yield PluginConfig(name=PODS, args={"hardPodAffinityWeight": weight})

    def _spread_args(self) -> dict[str, Any]:
        if not self._spread_labels:
            return {"defaultingType": "System" if self._spreads_by_default else "List"}
        skews = {**(_SYSTEM_SKEWS if self._spreads_by_default else {}), **dict.fromkeys(self._spread_labels, 1)}
        constraints = [
            {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway"} for key, skew in skews.items()
        ]
        return {"defaultingType": "List", "defaultConstraints": constraints}


def _off(names: Iterator[str]) -> PluginSet:
    return PluginSet(disabled=tuple(Plugin(name=name) for name in names))


def _extender(given: PolicyExtender) -> Extender:
    timeout = given.http_timeout / times.SECOND or Extender().http_timeout
    return Extender(**{**asdict(given), "http_timeout": timeout})
