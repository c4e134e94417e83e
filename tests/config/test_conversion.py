"""Old versions keep their meaning, and what has no meaning any more is reported."""

from typing import Any

import pytest

from moorage import config
from moorage.api.node import NodeSelectorRequirement
from moorage.api.resource_weights import ResourceSpec
from moorage.plugins.node_resources_fit.args import NodeResourcesFitArgs, ScoringStrategy
from tests.config.builders import load, notes, only_args, problems, profile, text
from tests.config.in_tree import DEFAULT_ORDER, IMPLEMENTS, with_plugins
from tests.config.test_merging import DEFAULT_ORDER as V1_ORDER
from tests.config.test_merging import written

BETA = ["v1beta1", "v1beta2", "v1beta3"]


def plugins(body: str, version: str) -> str:
    return profile(f"plugins: {{{body}}}", version)


def resolved(source: str, **extra: str) -> config.ResolvedProfile:
    return config.resolve(load(source), with_plugins(**extra))[0]


def scores(source: str, **extra: str) -> dict[str, int]:
    return {ref.name: ref.weight for ref in resolved(source, **extra).points["score"]}


@pytest.mark.parametrize("version", BETA)
def test_an_old_file_runs_the_same_filters_in_the_same_order(version):
    found = resolved(text(version=version)).points
    assert {point: [ref.name for ref in refs] for point, refs in found.items() if refs} == DEFAULT_ORDER


@pytest.mark.parametrize(
    ("version", "weights"), [("v1beta1", (1, 1, 1)), ("v1beta2", (1, 1, 1)), ("v1beta3", (3, 2, 2)), ("v1", (3, 2, 2))]
)
def test_weights_are_those_of_the_version(version, weights):
    found = scores(text(version=version))
    assert (found["TaintToleration"], found["NodeAffinity"], found["InterPodAffinity"]) == weights
    assert found["PodTopologySpread"] == 2


def test_v1beta3_has_the_default_plugins_of_v1():
    (loaded,) = load(text(version="v1beta3")).profiles
    assert written(loaded.plugins.multi_point.enabled) == V1_ORDER


@pytest.mark.parametrize("version", BETA)
def test_a_conversion_is_noted(version):
    first = notes(text(version=version))[0]
    assert first.startswith(f"converted from kubescheduler.config.k8s.io/{version} (Kubernetes 1.")
    assert notes(text()) == []


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_bind_addresses_are_dropped_with_a_note(version):
    reported = notes(text("healthzBindAddress: 0.0.0.0:10251\nmetricsBindAddress: ''", version))
    assert "healthzBindAddress: dropped: the insecure port is gone, use --bind-address" in reported
    assert "metricsBindAddress: dropped: the insecure port is gone, use --bind-address" in reported


def test_bind_addresses_are_unknown_later():
    assert problems(text("healthzBindAddress: x", "v1beta3")) == [
        'healthzBindAddress: unknown field "healthzBindAddress"'
    ]


@pytest.mark.parametrize(
    ("version", "body", "path"),
    [
        ("v1beta3", "delayCacheUntilActive: true", "delayCacheUntilActive"),
        ("v1beta2", "profiles: [{percentageOfNodesToScore: 1}]", "profiles[0].percentageOfNodesToScore"),
        ("v1beta1", "profiles: [{plugins: {multiPoint: {}}}]", "profiles[0].plugins.multiPoint"),
        ("v1beta1", "profiles: [{plugins: {preEnqueue: {}}}]", "profiles[0].plugins.preEnqueue"),
    ],
    ids=["delayCacheUntilActive", "percentage of a profile", "multiPoint", "preEnqueue"],
)
def test_fields_of_later_versions_are_refused(version, body, path):
    name = path.rpartition(".")[2]
    assert problems(text(body, version)) == [f'{path}: unknown field "{name}" ({version} does not have it, v1 does)']


def test_v1beta1_refuses_a_default_that_is_listed_again():
    assert problems(plugins("filter: {enabled: [{name: NodeName}]}", "v1beta1")) == [
        'profiles[0].plugins.filter.enabled[0]: plugin "NodeName" already registered as "FilterPlugin" '
        "(it is enabled by default; disable it here too, or write the file as v1)"
    ]
    assert load(plugins("filter: {enabled: [{name: NodeName}], disabled: [{name: NodeName}]}", "v1beta1"))


def test_v1beta2_replaces_a_default_that_is_listed_again_in_place():
    source = plugins(
        "filter: {enabled: [{name: NodePorts}]}, score: {enabled: [{name: ImageLocality, weight: 7}]}", "v1beta2"
    )
    assert [ref.name for ref in resolved(source).points["filter"]] == DEFAULT_ORDER["filter"]
    assert scores(source)["ImageLocality"] == 7


def test_v1beta2_profiles_agree_on_the_queue_sort_that_one_of_them_spells_out():
    load(
        text(
            """
            profiles:
            - {schedulerName: a, plugins: {queueSort: {enabled: [{name: PrioritySort}]}}}
            - {schedulerName: b}
            """,
            "v1beta2",
        )
    )


@pytest.mark.parametrize("version", ["v1beta2", "v1beta3"])
@pytest.mark.parametrize(
    "name",
    [
        *("NodeLabel", "NodePreferAvoidPods", "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"),
        *("RequestedToCapacityRatio", "ServiceAffinity"),
    ],
)
def test_plugins_gone_since_v1beta2_are_refused_with_their_successor(version, name):
    (reported,) = problems(plugins(f"score: {{enabled: [{{name: {name}}}]}}", version))
    assert reported.startswith(
        f'profiles[0].plugins.score.enabled[0]: Invalid value: "{name}": was invalid in version '
        '"kubescheduler.config.k8s.io/v1beta2" (KubeSchedulerConfiguration is version '
        f'"kubescheduler.config.k8s.io/{version}") ('
    )


@pytest.mark.parametrize("version", ["v1", *BETA[1:]])
def test_disabling_what_is_not_there_is_noted(version):
    reported = notes(plugins("score: {disabled: [{name: NodeResourcesLeastAllocated}]}", version))
    assert reported[-1] == (
        "profiles[0].plugins.score.disabled[0]: NodeResourcesLeastAllocated is not enabled by default in "
        f"{version}, so disabling it changes nothing; "
        "NodeResourcesFit took its place, with scoringStrategy.type LeastAllocated"
    )


def test_disabling_what_multipoint_brings_is_not_noted():
    assert notes(plugins("multiPoint: {enabled: [{name: p}]}, score: {disabled: [{name: p}]}", "v1")) == []
    assert notes(plugins("score: {disabled: [{name: '*'}, {name: NodeAffinity}]}", "v1")) == []


class TestResourceScores:
    """NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio of v1beta1."""

    def strategy(self, source: str) -> Any:
        return only_args(source, "NodeResourcesFit").scoring_strategy

    def test_least_allocated_is_the_default(self):
        source = text(version="v1beta1")
        assert self.strategy(source).type == "LeastAllocated"
        assert scores(source)["NodeResourcesFit"] == 1

    def test_most_allocated_in_its_place(self):
        source = plugins(
            "score: {disabled: [{name: NodeResourcesLeastAllocated}], "
            "enabled: [{name: NodeResourcesMostAllocated, weight: 5}]}",
            "v1beta1",
        )
        assert self.strategy(source).type == "MostAllocated"
        assert scores(source)["NodeResourcesFit"] == 5
        assert (
            "profiles[0].plugins.score.enabled[0]: NodeResourcesMostAllocated became NodeResourcesFit, "
            "scoring by MostAllocated" in notes(source)
        )

    def test_disabling_it_disables_its_successor(self):
        source = plugins("score: {disabled: [{name: NodeResourcesLeastAllocated}]}", "v1beta1")
        assert "NodeResourcesFit" not in scores(source)
        assert "NodeResourcesFit" in [ref.name for ref in resolved(source).points["filter"]]
        assert not any("changes nothing" in note for note in notes(source))

    def test_disabling_all_scores_disables_it_too(self):
        assert scores(plugins("score: {disabled: [{name: '*'}]}", "v1beta1")) == {}

    def test_two_at_once_have_no_equivalent(self):
        source = plugins("score: {enabled: [{name: NodeResourcesMostAllocated}]}", "v1beta1")
        assert problems(source) == [
            "profiles[0].plugins.score.enabled[0]: NodeResourcesLeastAllocated and "
            "NodeResourcesMostAllocated "
            "are both enabled, but NodeResourcesFit scores by one strategy only "
            "(disable NodeResourcesLeastAllocated)"
        ]

    def test_args_move_to_fit_beside_its_own(self):
        source = profile(
            """
            pluginConfig:
            - name: NodeResourcesFit
              args: {ignoredResources: [a.b/c]}
            - name: NodeResourcesLeastAllocated
              args: {resources: [{name: cpu, weight: 3}, {name: memory}]}
            """,
            "v1beta1",
        )
        assert only_args(source, "NodeResourcesFit") == NodeResourcesFitArgs(
            ignored_resources=("a.b/c",),
            scoring_strategy=ScoringStrategy(
                type="LeastAllocated",
                resources=(ResourceSpec(name="cpu", weight=3), ResourceSpec(name="memory", weight=1)),
            ),
        )

    def test_ratio_keeps_its_shape(self):
        source = profile(
            """
            plugins:
              score:
                disabled: [{name: NodeResourcesLeastAllocated}]
                enabled: [{name: RequestedToCapacityRatio}]
            pluginConfig:
            - name: RequestedToCapacityRatio
              args:
                apiVersion: kubescheduler.config.k8s.io/v1beta1
                kind: RequestedToCapacityRatioArgs
                shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
            """,
            "v1beta1",
        )
        strategy = self.strategy(source)
        assert strategy.type == "RequestedToCapacityRatio"
        shape = strategy.requested_to_capacity_ratio.shape
        assert [(point.utilization, point.score) for point in shape] == [(0, 0), (100, 10)]

    @pytest.mark.parametrize(
        ("name", "args", "problem"),
        [
            ("RequestedToCapacityRatio", "{}", "shape: Required value: at least one point must be specified"),
            (
                "NodeResourcesMostAllocated",
                "{resources: [{name: a, weight: 101}]}",
                "resources[0].weight: Invalid value: 101: resource weight of a not in valid range (0, 100]",
            ),
            ("NodeResourcesMostAllocated", "{shape: []}", 'shape: unknown field "shape"'),
        ],
        ids=["no shape", "weight", "field of another"],
    )
    def test_args_are_judged_where_they_stand(self, name, args, problem):
        source = profile(f"pluginConfig: [{{name: {name}, args: {args}}}]", "v1beta1")
        assert problems(source) == [f"profiles[0].pluginConfig[0].args.{problem}"]

    def test_args_of_a_score_that_is_not_enabled_are_dropped_with_a_note(self):
        source = profile("pluginConfig: [{name: NodeResourcesMostAllocated}]", "v1beta1")
        dropped = "profiles[0].pluginConfig[0]: dropped, because NodeResourcesMostAllocated is not enabled"
        assert dropped in notes(source)
        assert self.strategy(source).type == "LeastAllocated"


class TestNodeLabel:
    """NodeLabel of v1beta1 becomes addedAffinity of NodeAffinity."""

    ARGS = """
    pluginConfig:
    - name: NodeLabel
      args: {presentLabels: [a], absentLabels: [b], presentLabelsPreference: [c], absentLabelsPreference: [d]}
    """

    def source(self, points: str) -> str:
        return profile(f"plugins: {{{points}}}" + self.ARGS.replace("\n    ", "\n"), "v1beta1")

    def added(self, points: str) -> Any:
        return only_args(self.source(points), "NodeAffinity").added_affinity

    def test_filtering(self):
        added = self.added("filter: {enabled: [{name: NodeLabel}]}")
        (term,) = added.required_during_scheduling_ignored_during_execution.node_selector_terms
        assert term.match_expressions == (
            NodeSelectorRequirement(key="a", operator="Exists"),
            NodeSelectorRequirement(key="b", operator="DoesNotExist"),
        )
        assert added.preferred_during_scheduling_ignored_during_execution == ()

    def test_scoring(self):
        added = self.added("score: {enabled: [{name: NodeLabel, weight: 2}]}")
        assert added.required_during_scheduling_ignored_during_execution is None
        preferred = added.preferred_during_scheduling_ignored_during_execution
        assert [(term.weight, term.preference.match_expressions[0].key) for term in preferred] == [(1, "c"), (1, "d")]

    def test_the_plugin_itself_is_gone_and_reported(self):
        source = self.source("filter: {enabled: [{name: NodeLabel}]}, score: {enabled: [{name: NodeLabel}]}")
        assert "NodeLabel" not in resolved(source).plugin_names
        reported = [note for note in notes(source) if "NodeLabel" in note]
        assert reported == [
            "profiles[0].plugins.filter.enabled[0]: NodeLabel became addedAffinity of NodeAffinity",
            "profiles[0].plugins.score.enabled[0]: NodeLabel became addedAffinity of NodeAffinity, "
            "which scores with its own weight",
        ]

    def test_demands_join_each_term_that_was_there(self):
        term = "{matchExpressions: [{key: %s, operator: Exists}]}"
        source = self.source("filter: {enabled: [{name: NodeLabel}]}") + (
            "  - name: NodeAffinity\n    args: {addedAffinity: "
            "{requiredDuringSchedulingIgnoredDuringExecution: "
            f"{{nodeSelectorTerms: [{term % 'x'}, {term % 'y'}]}}}}}}\n"
        )
        required = only_args(source, "NodeAffinity").added_affinity
        terms = required.required_during_scheduling_ignored_during_execution.node_selector_terms
        assert [[e.key for e in term.match_expressions] for term in terms] == [["x", "a", "b"], ["y", "a", "b"]]

    def test_not_enabled(self):
        source = self.source("")
        assert "profiles[0].pluginConfig[0]: dropped, because NodeLabel is not enabled" in notes(source)
        assert only_args(source, "NodeAffinity").added_affinity is None

    def test_without_node_affinity_there_is_no_equivalent(self):
        points = "filter: {enabled: [{name: NodeLabel}], disabled: [{name: NodeAffinity}]}"
        assert problems(self.source(points)) == [
            "profiles[0].plugins.filter.enabled[0]: NodeLabel cannot become part of NodeAffinity, which is "
            "disabled at filter (enable NodeAffinity, or remove NodeLabel)"
        ]

    def test_a_label_cannot_be_present_and_absent(self):
        source = profile(
            "pluginConfig: [{name: NodeLabel, args: {presentLabels: [a, b/c/d], absentLabels: [a]}}]", "v1beta1"
        )
        assert problems(source) == [
            'profiles[0].pluginConfig[0].args.presentLabels[0]: Invalid value: "a": cannot be both present and absent',
            'profiles[0].pluginConfig[0].args.presentLabels[1]: Invalid value: "b/c/d": '
            "a qualified name has at most one '/', between a DNS subdomain and the name",
        ]


def test_service_affinity_has_no_equivalent():
    assert problems(plugins("filter: {enabled: [{name: ServiceAffinity}]}", "v1beta1")) == [
        "profiles[0].plugins.filter.enabled[0]: ServiceAffinity does not exist in v1: "
        "it has no equivalent; pod affinity and PodTopologySpread come nearest"
    ]
    source = profile("pluginConfig: [{name: ServiceAffinity, args: {affinityLabels: [a]}}]", "v1beta1")
    assert "profiles[0].pluginConfig[0]: dropped, because ServiceAffinity is not enabled" in notes(source)


@pytest.mark.parametrize(
    ("score", "path"),
    [
        ("", "profiles[0].plugins.score"),
        (
            "disabled: [{name: NodePreferAvoidPods}], enabled: [{name: NodePreferAvoidPods, weight: 3}]",
            "profiles[0].plugins.score.enabled[0]",
        ),
        ("disabled: [{name: NodePreferAvoidPods}]", None),
        ("disabled: [{name: '*'}]", None),
    ],
    ids=["by default", "listed", "disabled", "all disabled"],
)
def test_node_prefer_avoid_pods_is_dropped_with_a_note(score, path):
    source = plugins(f"score: {{{score}}}", "v1beta1")
    reported = [note for note in notes(source) if "NodePreferAvoidPods" in note]
    text = "NodePreferAvoidPods is gone: it has no equivalent; mark the nodes with taints"
    assert reported == ([f"{path}: {text}"] if path else [])
    assert "NodePreferAvoidPods" not in scores(source)


@pytest.mark.parametrize("version", BETA)
def test_selector_spread_becomes_system_defaulting(version):
    source = plugins(
        "preScore: {enabled: [{name: SelectorSpread}]}, score: {enabled: [{name: SelectorSpread, weight: 4}]}", version
    )
    assert scores(source)["PodTopologySpread"] == 2
    assert only_args(source, "PodTopologySpread").defaulting_type == "System"
    assert (
        "profiles[0].plugins.score.enabled[0]: SelectorSpread became PodTopologySpread with "
        "defaultingType System" in notes(source)
    )


@pytest.mark.parametrize("version", BETA)
def test_selector_spread_brings_its_successor_where_that_is_off(version):
    source = plugins(
        "score: {disabled: [{name: '*'}], enabled: [{name: SelectorSpread, weight: 4}, {name: p}]}", version
    )
    assert scores(source, p="score") == {"PodTopologySpread": 4, "p": 1}


def test_selector_spread_beside_constraints_of_one_s_own():
    source = profile(
        """
        plugins: {score: {enabled: [{name: SelectorSpread}]}}
        pluginConfig:
        - name: PodTopologySpread
          args: {defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}
        """,
        "v1beta1",
    )
    assert only_args(source, "PodTopologySpread").defaulting_type == "List"
    assert any("spreads by the defaultConstraints in its args" in note for note in notes(source))


def test_constraints_without_a_type_are_a_mistake_after_v1beta1():
    source = profile(
        "pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: "
        "[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}]",
        "v1beta2",
    )
    assert problems(source) == [
        'profiles[0].pluginConfig[0].args.defaultingType: Invalid value: "System": '
        "when .defaultConstraints are not empty"
    ]


LIMITS = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"]


@pytest.mark.parametrize("version", BETA)
@pytest.mark.parametrize("name", LIMITS)
def test_limits_become_node_volume_limits(version, name):
    body = f"filter: {{disabled: [{{name: '*'}}], enabled: [{{name: {name}}}, {{name: p}}]}}"
    source = plugins(body, version)
    assert [ref.name for ref in resolved(source, p="filter").points["filter"]] == ["NodeVolumeLimits", "p"]
    assert f"profiles[0].plugins.filter.enabled[0]: {name} became NodeVolumeLimits" in notes(source)


def test_several_limits_become_one():
    listed = ", ".join(f"{{name: {name}}}" for name in LIMITS)
    source = plugins(f"filter: {{disabled: [{{name: '*'}}], enabled: [{listed}]}}", "v1beta3")
    assert [ref.name for ref in resolved(source).points["filter"]] == ["NodeVolumeLimits"]


def test_limits_beside_the_defaults_change_nothing():
    source = plugins("multiPoint: {enabled: [{name: CinderLimits}]}", "v1beta3")
    assert [ref.name for ref in resolved(source).points["filter"]] == DEFAULT_ORDER["filter"]


@pytest.mark.parametrize("version", BETA)
def test_disabling_a_limit_leaves_its_successor_on(version):
    source = plugins("filter: {disabled: [{name: EBSLimits}]}", version)
    assert "NodeVolumeLimits" in [ref.name for ref in resolved(source).points["filter"]]
    assert notes(source)[-1] == (
        "profiles[0].plugins.filter.disabled[0]: disabling EBSLimits has no effect: "
        "NodeVolumeLimits counts all volumes now"
    )


def test_args_of_a_limit_are_dropped_with_a_note():
    source = profile("pluginConfig: [{name: EBSLimits, args: {a: 1}}]", "v1beta3")
    assert "profiles[0].pluginConfig[0]: dropped, because NodeVolumeLimits takes no args" in notes(source)


@pytest.mark.parametrize("version", BETA)
def test_args_of_plugins_that_are_not_enabled_are_noted(version):
    assert notes(profile("pluginConfig: [{name: p, args: {a: 1}}]", version))[-1] == (
        "profiles[0].pluginConfig[0]: p is not enabled at any extension point, so its args are not used"
    )


def test_in_tree_plugins_are_complete():
    assert {name.partition(":")[0] for name in V1_ORDER} == set(IMPLEMENTS)
