"""The legacy Policy (`kind: Policy`, Kubernetes up to 1.22): its types, and reading one strictly.

JSON or YAML, with all mistakes collected. Keys match in any case, as they did then. The tables of
predicates and priorities name today's plugins; `policy_conversion` applies them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from moorage.api.meta import Int32, Int64, Record, qualified_name_faults
from moorage.api.problems import Problem, child, did_you_mean, invalid
from moorage.api.resource_weights import (
    ResourceSpec,
    UtilizationShapePoint,
    validate_resources,
    validate_shape,
    weighted,
)
from moorage.config import versions, yaml_source
from moorage.config.types import KIND, Extender, wire_fields
from moorage.config.wire import decode, item_type, without_none

AFFINITY, FIT, SPREAD = "NodeAffinity", "NodeResourcesFit", "PodTopologySpread"
LIMITS, PODS, TAINTS = "NodeVolumeLimits", "InterPodAffinity", "TaintToleration"

# In the order in which predicates ran.
PREDICATES: Mapping[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": (FIT, "NodeName", "NodePorts", AFFINITY),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": (AFFINITY,),
    "PodFitsResources": (FIT,),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": (TAINTS,),
    "PodToleratesNodeNoExecuteTaints": (TAINTS,),
    # Nodes with a bad condition are tainted since 1.12.
    "CheckNodeCondition": (TAINTS, "NodeUnschedulable"),
    "CheckNodeMemoryPressure": (TAINTS,),
    "CheckNodeDiskPressure": (TAINTS,),
    "CheckNodePIDPressure": (TAINTS,),
    "CheckNodeLabelPresence": (AFFINITY,),
    "CheckServiceAffinity": (),
    "MaxEBSVolumeCount": (LIMITS,),
    "MaxGCEPDVolumeCount": (LIMITS,),
    "MaxCSIVolumeCountPred": (LIMITS,),
    "MaxAzureDiskVolumeCount": (LIMITS,),
    "MaxCinderVolumeCount": (LIMITS,),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": (SPREAD,),
    "MatchInterPodAffinity": (PODS,),
}
MANDATORY = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
# Without the three limits of cloud providers, which NodeVolumeLimits covers.
DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "CheckVolumeBinding",
    "EvenPodsSpread",
)

PRIORITIES: Mapping[str, str] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EvenPodsSpreadPriority": SPREAD,
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": PODS,
    "LeastRequestedPriority": FIT,
    "MostRequestedPriority": FIT,
    "NodeAffinityPriority": AFFINITY,
    "RequestedToCapacityRatioPriority": FIT,
    "SelectorSpreadPriority": SPREAD,
    "ServiceSpreadingPriority": SPREAD,
    "TaintTolerationPriority": TAINTS,
}
# The scoringStrategy of NodeResourcesFit.
STRATEGIES = {"LeastRequestedPriority": "LeastAllocated", "MostRequestedPriority": "MostAllocated"}
# Priorities without a successor, and what to say about it.
DROPPED: Mapping[str, str] = {
    "EqualPriority": "it gave all nodes the same score",
    "NodePreferAvoidPodsPriority": versions.successor("NodePreferAvoidPods"),
    "ResourceLimitsPriority": "it has no equivalent; no score looks at limits",
}
DEFAULT_PRIORITIES: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}


class _Argument(Record):
    """What one kind of predicate or priority needs to know."""

    def mistakes(self, path: str) -> Iterator[Problem]:
        yield from ()


class LabelsPresence(_Argument):
    """Keys of labels that a node must have, or must not have."""

    labels: tuple[str, ...] = ()
    presence: bool = False

    def mistakes(self, path: str) -> Iterator[Problem]:
        for index, label in enumerate(self.labels):
            yield from _key_mistakes(label, child(path, "labels", index))


class ServiceAffinity(_Argument):
    """Keys of labels on which the nodes of one service's pods must agree."""

    labels: tuple[str, ...] = ()


class PredicateArgument(Record):
    """Exactly one of them."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class Predicate(Record):
    """A rule that a node must meet. With an argument the name is free text."""

    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(_Argument):
    """The key of a label over whose values the pods of a service are spread."""

    label: str = ""

    def mistakes(self, path: str) -> Iterator[Problem]:
        yield from _key_mistakes(self.label, child(path, "label"))


class LabelPreference(_Argument):
    """The key of a label that a node had better have, or not have."""

    label: str = ""
    presence: bool = False

    def mistakes(self, path: str) -> Iterator[Problem]:
        yield from _key_mistakes(self.label, child(path, "label"))


class RatioArguments(_Argument):
    """The score of a node by how much of it is requested."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()

    def mistakes(self, path: str) -> Iterator[Problem]:
        yield from validate_shape(self.shape, child(path, "shape"))
        yield from validate_resources(weighted(self.resources), child(path, "resources"))


class PriorityArgument(Record):
    """Exactly one of them."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RatioArguments | None = None


class Priority(Record):
    """A score with its weight. With an argument the name is free text."""

    name: str = ""
    weight: Int32 = 0
    argument: PriorityArgument | None = None


class PolicyExtender(Extender):
    """An extender whose timeout is in nanoseconds; 0 means the default."""

    http_timeout: Int64 = 0


class Policy(Record):
    """Without a list of predicates or priorities the default ones are meant, with an empty list none."""

    kind: str = "Policy"
    api_version: str = "v1"
    predicates: tuple[Predicate, ...] | None = None
    priorities: tuple[Priority, ...] | None = None
    extenders: tuple[PolicyExtender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


def read_policy(text: str | bytes) -> tuple[Policy, list[Problem]]:
    """The Policy in `text`, and all that is wrong with it."""
    tree, problems = yaml_source.parse(text, strict_json=True)
    if tree is None and problems:
        return Policy(), problems
    tree = _with_wire_names(tree, Policy, "", problems)
    if header := list(_header_mistakes(tree)):
        return Policy(), header
    policy: Policy = decode(tree, Policy, "", problems)
    known = {problem.path for problem in problems}
    problems += [problem for problem in _mistakes(policy) if problem.path not in known]
    return policy, problems


def _with_wire_names(value: object, target: Any, path: str, problems: list[Problem]) -> object:
    """`value` with the keys that match a field of `target` in any case written as that field."""
    target = without_none(target)
    if isinstance(value, list) and (item := item_type(target)) is not None:
        return [_with_wire_names(each, item, child(path, at), problems) for at, each in enumerate(value)]
    if not isinstance(value, Mapping) or not (isinstance(target, type) and issubclass(target, msgspec.Struct)):
        return value
    fields = {name.lower(): (name, field.type) for name, field in wire_fields(target).items()}
    result: dict[str, object] = {}
    for key, entry in value.items():
        name, annotation = fields.get(key.lower(), (key, object))
        where = child(path, name)
        if name in result:
            problems.append(Problem(path=where, message=f'key "{key}" already set in map'))
        result[name] = _with_wire_names(entry, annotation, where, problems)
    return result


def _header_mistakes(tree: object) -> Iterator[Problem]:
    """A missing header is fine: whoever reads a Policy knows what it is."""
    for name, expected in (("kind", "Policy"), ("apiVersion", "v1")):
        given = tree.get(name) if isinstance(tree, Mapping) else None
        if given not in (None, expected):
            hint = "name it with --config" if given == KIND else did_you_mean(str(given), [expected])
            yield Problem(path=name, message=f'expected "{expected}", got "{given}"', value=given, hint=hint)


def _mistakes(policy: Policy) -> Iterator[Problem]:
    for index, predicate in enumerate(policy.predicates or ()):
        if predicate.argument is not None:
            yield from _argument_mistakes(predicate.argument, child("predicates", index, "argument"))
    for index, priority in enumerate(policy.priorities or ()):
        if priority.weight <= 0:
            where = child("priorities", index, "weight")
            yield invalid(where, priority.weight, "should have a positive weight applied to it")
        if priority.argument is not None:
            yield from _argument_mistakes(priority.argument, child("priorities", index, "argument"))
    yield from _repeated(policy.priorities or ())
    weight = policy.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= 100:
        yield invalid("hardPodAffinitySymmetricWeight", weight, "not in valid range [0-100]")


def _argument_mistakes(argument: PredicateArgument | PriorityArgument, path: str) -> Iterator[Problem]:
    given = _given(argument)
    if len(given) != 1:
        message = f"exactly 1 argument is required, got {len(given)}"
        yield Problem(path=path, message=message, hint=f"one of {', '.join(wire_fields(type(argument)))}")
    for name, value in given.items():
        yield from value.mistakes(child(path, name))


def _given(argument: PredicateArgument | PriorityArgument) -> dict[str, _Argument]:
    """What an argument has, by wire name."""
    fields = {name: getattr(argument, field.name) for name, field in wire_fields(type(argument)).items()}
    return {name: value for name, value in fields.items() if value is not None}


def _key_mistakes(label: str, path: str) -> Iterator[Problem]:
    for fault in qualified_name_faults(label):
        yield invalid(path, label, fault)


def _repeated(priorities: tuple[Priority, ...]) -> Iterator[Problem]:
    """Priorities with the same kind of argument share a plugin, and so its weight."""
    first: dict[str, int] = {}
    for index, priority in enumerate(priorities):
        for kind in _given(priority.argument) if priority.argument is not None else ():
            known = first.setdefault(kind, index)
            where, other = child("priorities", index), child("priorities", known)
            if known != index and kind == "requestedToCapacityRatioArguments":
                yield Problem(path=child(where, "argument"), message=f"{kind} is given already in {other}")
            elif priority.weight != priorities[known].weight:
                detail = f"must be the same for all priorities with {kind}, as in {other}"
                yield invalid(child(where, "weight"), priority.weight, detail)
