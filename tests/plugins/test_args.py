"""Arguments of the default plugins: defaults and rules."""

import pytest

from moorage import config
from moorage.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.pod import NodeAffinity, TopologySpreadConstraint
from moorage.api.resource_weights import ResourceSpec
from moorage.plugins.balanced_allocation import NodeResourcesBalancedAllocationArgs
from moorage.plugins.dynamic_resources import DynamicResourcesArgs
from moorage.plugins.inter_pod_affinity.plugin import InterPodAffinityArgs
from moorage.plugins.lifecycle import DefaultPreemptionArgs
from moorage.plugins.node_affinity import NodeAffinityArgs
from moorage.plugins.node_resources_fit.args import NodeResourcesFitArgs, ScoringStrategy
from moorage.plugins.pod_topology_spread.constraints import PodTopologySpreadArgs
from moorage.plugins.volume_binding.plugin import DEFAULT_STORAGE_SHAPE, VolumeBindingArgs
from tests.config.builders import IN_TREE, args, load, only_args, problems

CAPACITY = config.FeatureGates.parse("StorageCapacityScoring=true")
NO_DRA = config.FeatureGates.parse("DRASchedulerFilterTimeout=false,DRADeviceBindingConditions=false")


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (
            "DefaultPreemption",
            DefaultPreemptionArgs(min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100),
        ),
        (
            "InterPodAffinity",
            InterPodAffinityArgs(hard_pod_affinity_weight=1, ignore_preferred_terms_of_existing_pods=False),
        ),
        ("NodeAffinity", NodeAffinityArgs(added_affinity=None)),
        (
            "NodeResourcesFit",
            NodeResourcesFitArgs(
                ignored_resources=(),
                ignored_resource_groups=(),
                scoring_strategy=ScoringStrategy(
                    type="LeastAllocated",
                    resources=(ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1)),
                ),
            ),
        ),
        (
            "NodeResourcesBalancedAllocation",
            NodeResourcesBalancedAllocationArgs(
                resources=(ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))
            ),
        ),
        ("PodTopologySpread", PodTopologySpreadArgs(default_constraints=(), defaulting_type="System")),
        ("VolumeBinding", VolumeBindingArgs(bind_timeout_seconds=600, shape=DEFAULT_STORAGE_SHAPE)),
        ("DynamicResources", DynamicResourcesArgs(filter_timeout=10.0, binding_timeout=600.0)),
    ],
)
def test_defaults(plugin, expected):
    assert only_args(args(plugin, "{}"), plugin) == expected
    if plugin != "VolumeBinding":  # its shape depends on a feature gate
        assert IN_TREE[plugin]() == expected


def test_weights_of_zero_and_empty_lists_take_the_default():
    source = args("NodeResourcesFit", "scoringStrategy: {type: MostAllocated, resources: [{name: a, weight: 0}]}")
    strategy = only_args(source, "NodeResourcesFit").scoring_strategy
    assert strategy.resources == (ResourceSpec(name="a", weight=1),)
    source = args("NodeResourcesBalancedAllocation", "resources: []")
    assert [r.name for r in only_args(source, "NodeResourcesBalancedAllocation").resources] == ["cpu", "memory"]


def test_affinity_and_constraints_are_objects_of_the_api():
    source = args(
        "NodeAffinity",
        """
        addedAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: a, operator: In, values: [x]}]
        """,
    )
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="a", operator="In", values=("x",)),))
    assert only_args(source, "NodeAffinity").added_affinity == NodeAffinity(
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=(term,))
    )
    source = args(
        "PodTopologySpread",
        """
        defaultingType: List
        defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
        """,
    )
    assert only_args(source, "PodTopologySpread").default_constraints == (
        TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="ScheduleAnyway"),
    )


RULES = [
    (
        "preemption percentage",
        "DefaultPreemption",
        "minCandidateNodesPercentage: 101",
        "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
    ),
    (
        "preemption absolute",
        "DefaultPreemption",
        "minCandidateNodesAbsolute: -1",
        "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
    ),
    (
        "preemption both zero",
        "DefaultPreemption",
        "{minCandidateNodesAbsolute: 0, minCandidateNodesPercentage: 0}",
        "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
    ),
    (
        "affinity weight",
        "InterPodAffinity",
        "hardPodAffinityWeight: 101",
        "hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
    ),
    (
        "ignored resource",
        "NodeResourcesFit",
        "ignoredResources: [a/b/c]",
        'ignoredResources[0]: Invalid value: "a/b/c": '
        "a qualified name has at most one '/', between a DNS subdomain and the name",
    ),
    (
        "ignored group",
        "NodeResourcesFit",
        "ignoredResourceGroups: [a.b/c]",
        "ignoredResourceGroups[0]: Invalid value: \"a.b/c\": resource group name can't contain '/'",
    ),
    (
        "strategy type",
        "NodeResourcesFit",
        "scoringStrategy: {type: LeastAlocated}",
        'scoringStrategy.type: Unsupported value: "LeastAlocated": supported values: "LeastAllocated", '
        '"MostAllocated", "RequestedToCapacityRatio" (did you mean "LeastAllocated"?)',
    ),
    (
        "strategy without type",
        "NodeResourcesFit",
        "scoringStrategy: {resources: [{name: cpu}]}",
        'scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", "MostAllocated", '
        '"RequestedToCapacityRatio"',
    ),
    (
        "resource weight",
        "NodeResourcesFit",
        "scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 101}]}",
        "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
    ),
    (
        "ratio without shape",
        "NodeResourcesFit",
        "scoringStrategy: {type: RequestedToCapacityRatio}",
        "scoringStrategy.requestedToCapacityRatio: Required value: "
        "must be specified when type is RequestedToCapacityRatio",
    ),
    (
        "ratio with another type",
        "NodeResourcesFit",
        "scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}",
        "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
    ),
    (
        "empty shape",
        "NodeResourcesFit",
        "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {}}",
        "scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified",
    ),
    (
        "shape not increasing",
        "NodeResourcesFit",
        "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "
        "{shape: [{utilization: 5}, {utilization: 5}]}}",
        "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: "
        "values must be sorted in increasing order",
    ),
    (
        "shape utilization",
        "NodeResourcesFit",
        "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 101}]}}",
        "scoringStrategy.requestedToCapacityRatio.shape[0].utilization: Invalid value: 101: "
        "not in valid range [0, 100]",
    ),
    (
        "shape score",
        "NodeResourcesFit",
        "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{score: 11}]}}",
        "scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
    ),
    (
        "balanced weight",
        "NodeResourcesBalancedAllocation",
        "resources: [{name: cpu, weight: 2}]",
        "resources[0].weight: Invalid value: 2: must be 1",
    ),
    (
        "balanced twice",
        "NodeResourcesBalancedAllocation",
        "resources: [{name: cpu}, {name: cpu}]",
        'resources[1].name: Duplicate value: "cpu"',
    ),
    (
        "defaulting type",
        "PodTopologySpread",
        "defaultingType: list",
        'defaultingType: Unsupported value: "list": supported values: "System", "List" (did you mean "List"?)',
    ),
    (
        "constraints with System",
        "PodTopologySpread",
        "defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]",
        'defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
    ),
    (
        "max skew",
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [{topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
        "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
    ),
    (
        "no topology key",
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}",
        "defaultConstraints[0].topologyKey: Required value: can not be empty",
    ),
    (
        "bad topology key",
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: '-', whenUnsatisfiable: X}]}",
        'defaultConstraints[0].topologyKey: Invalid value: "-": name part must consist of alphanumeric '
        "characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    ),
    (
        "no action",
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a}]}",
        "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
    ),
    (
        "bad action",
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Never}]}",
        'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values: '
        '"DoNotSchedule", "ScheduleAnyway"',
    ),
    (
        "selector in a constraint",
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, "
        "whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]}",
        "defaultConstraints[0].labelSelector: Forbidden: "
        "constraint must not define a selector, as they deduced for each pod",
    ),
    (
        "constraint twice",
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: ["
        "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, "
        "{maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
        'defaultConstraints[1]: Duplicate value: "{a, DoNotSchedule}"',
    ),
    (
        "bind timeout",
        "VolumeBinding",
        "bindTimeoutSeconds: -1",
        "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
    ),
    (
        "filter timeout",
        "DynamicResources",
        "filterTimeout: -1s",
        'filterTimeout: Invalid value: "-1s": must be zero or positive',
    ),
    (
        "binding timeout",
        "DynamicResources",
        "bindingTimeout: 999ms",
        'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
    ),
    (
        "unknown field",
        "NodeResourcesFit",
        "ignoredResource: []",
        'ignoredResource: unknown field "ignoredResource" (did you mean "ignoredResources"?)',
    ),
    (
        "kind of another plugin",
        "NodeResourcesFit",
        "kind: InterPodAffinityArgs",
        "kind: args for plugin NodeResourcesFit were not of type NodeResourcesFitArgs."
        "kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io",
    ),
    (
        "version of another file",
        "NodeResourcesFit",
        "apiVersion: kubescheduler.config.k8s.io/v1beta3",
        'apiVersion: no kind "NodeResourcesFitArgs" is registered for version '
        '"kubescheduler.config.k8s.io/v1beta3" (the file is kubescheduler.config.k8s.io/v1)',
    ),
]


@pytest.mark.parametrize(("plugin", "body", "problem"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_rule(plugin, body, problem):
    assert f"profiles[0].pluginConfig[0].args.{problem}" in problems(args(plugin, body))


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        ("{key: a b, operator: Exists}", 'key: Invalid value: "a b": name part must consist of'),
        ("{key: a, operator: Is}", 'operator: Unsupported value: "Is": supported values: "In", "NotIn", '),
        ("{key: a, operator: In}", "for 'in', 'notin' operators, values set can't be empty"),
        ("{key: a, operator: Exists, values: [x]}", 'values: Invalid value: ["x"]: values set must be empty'),
        ("{key: a, operator: Gt, values: ['1', '2']}", "'Lt' operators, exactly one value is required"),
        ("{key: a, operator: Lt, values: [x]}", "for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
    ids=["key", "operator", "In without values", "Exists with values", "Gt with two", "Lt with text"],
)
def test_expressions_of_the_added_affinity(requirement, problem):
    required = args(
        "NodeAffinity",
        "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        f"{{nodeSelectorTerms: [{{matchExpressions: [{requirement}]}}]}}}}",
    )
    preferred = args(
        "NodeAffinity",
        "addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
        f"[{{weight: 1, preference: {{matchExpressions: [{requirement}]}}}}]}}",
    )
    for source in (required, preferred):
        (reported,) = problems(source)
        assert problem in reported
        assert "DuringSchedulingIgnoredDuringExecution" in reported


def test_fields_of_the_added_affinity():
    source = args(
        "NodeAffinity",
        "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "{nodeSelectorTerms: [{matchFields: [{key: metadata.uid, operator: Gt}]}]}}",
    )
    reported = [problem.partition("matchFields[0].")[2] for problem in problems(source)]
    assert reported == [
        'key: Unsupported value: "metadata.uid": supported values: "metadata.name" (did you mean "metadata.name"?)',
        'operator: Unsupported value: "Gt": supported values: "In", "NotIn"',
        "values: Invalid value: []: must have one element",
    ]


def test_a_preferred_term_without_weight_is_not_judged():
    load(
        args(
            "NodeAffinity",
            "addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
            "[{weight: 0, preference: {matchExpressions: [{key: a, operator: Is}]}}]}",
        )
    )


def test_storage_capacity_scoring_brings_a_shape():
    shape = only_args(args("VolumeBinding", "{}"), "VolumeBinding", gates=CAPACITY).shape
    assert [(point.utilization, point.score) for point in shape] == [(0, 10), (100, 0)]
    assert problems(args("VolumeBinding", "shape: [{score: 11}]"), gates=CAPACITY) == [
        "profiles[0].pluginConfig[0].args.shape[0].score: Invalid value: 11: not in valid range [0, 10]"
    ]


def test_dra_timeouts_are_forbidden_while_their_gates_are_off():
    assert problems(args("DynamicResources", "{filterTimeout: 10s, bindingTimeout: 600s}"), gates=NO_DRA) == [
        "profiles[0].pluginConfig[0].args.filterTimeout: Forbidden: "
        "DRASchedulingFilterTimeout feature gate is disabled",
        "profiles[0].pluginConfig[0].args.bindingTimeout: Forbidden: "
        "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
    ]
    off = DynamicResourcesArgs(filter_timeout=None, binding_timeout=None)
    assert only_args(args("DynamicResources", "{}"), "DynamicResources", gates=NO_DRA) == off


def test_args_accept_their_own_kind_and_version():
    source = args("InterPodAffinity", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: InterPodAffinityArgs\n")
    assert only_args(source, "InterPodAffinity") == InterPodAffinityArgs()


def test_args_are_immutable():
    with pytest.raises(AttributeError):
        InterPodAffinityArgs().hard_pod_affinity_weight = 2  # type: ignore[misc]


def test_a_shape_needs_its_gate():
    found = problems(args("VolumeBinding", "shape: []"), gates=config.FeatureGates.of("1.36"))
    assert found == [
        "profiles[0].pluginConfig[0].args.shape: Invalid value: []: unexpected field `shape`, remove it or turn on the "
        "feature gate StorageCapacityScoring"
    ]
