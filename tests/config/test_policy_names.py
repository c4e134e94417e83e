"""Every predicate and priority of a legacy Policy, and the plugins that do its work."""

import json

import pytest

from moorage import config
from moorage.config.policy import DROPPED, PREDICATES, PRIORITIES
from moorage.plugins.registry import DEFAULT
from moorage.runtime.registry import Registry
from tests.config import builders
from tests.config.in_tree import DEFAULT_ORDER

ALWAYS_FILTER = ["NodeUnschedulable", "TaintToleration", "DynamicResources", "NodeDeclaredFeatures"]
IMPLEMENTS = Registry(DEFAULT).implements()
RATIO = {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 10}]}}


def resolved(**policy):
    """The plugins of a Policy at each point; neither predicates nor priorities unless given."""
    text = json.dumps({"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": [], **policy})
    (profile,) = config.resolve(builders.load(config.convert_policy(text).text), IMPLEMENTS)
    return profile


def names(profile, point):
    return [ref.name for ref in profile.points[point]]


def scores(profile):
    return {ref.name: ref.weight for ref in profile.points["score"] if ref.name != "DynamicResources"}


PREDICATE_ROWS = [
    ("CheckNodeUnschedulable", None, ""),
    ("CheckNodeCondition", None, ""),
    ("CheckNodeMemoryPressure", None, ""),
    ("CheckNodeDiskPressure", None, ""),
    ("CheckNodePIDPressure", None, ""),
    ("PodToleratesNodeTaints", None, ""),
    ("PodToleratesNodeNoExecuteTaints", None, ""),
    ("GeneralPredicates", None, "NodeResourcesFit NodeName NodePorts NodeAffinity"),
    ("HostName", None, "NodeName"),
    ("PodFitsHostPorts", None, "NodePorts"),
    ("PodFitsPorts", None, "NodePorts"),
    ("MatchNodeSelector", None, "NodeAffinity"),
    ("PodFitsResources", None, "NodeResourcesFit"),
    ("NoDiskConflict", None, "VolumeRestrictions"),
    ("MaxEBSVolumeCount", None, "NodeVolumeLimits"),
    ("MaxGCEPDVolumeCount", None, "NodeVolumeLimits"),
    ("MaxCSIVolumeCountPred", None, "NodeVolumeLimits"),
    ("MaxAzureDiskVolumeCount", None, "NodeVolumeLimits"),
    ("MaxCinderVolumeCount", None, "NodeVolumeLimits"),
    ("CheckVolumeBinding", None, "VolumeBinding"),
    ("NoVolumeZoneConflict", None, "VolumeZone"),
    ("EvenPodsSpread", None, "PodTopologySpread"),
    ("MatchInterPodAffinity", None, "InterPodAffinity"),
    ("CheckNodeLabelPresence", {"labelsPresence": {"labels": ["zone"], "presence": True}}, "NodeAffinity"),
    ("any name", {"labelsPresence": {"labels": ["zone"], "presence": True}}, "NodeAffinity"),
]


@pytest.mark.parametrize(("name", "argument", "plugins"), PREDICATE_ROWS, ids=[row[0] for row in PREDICATE_ROWS])
def test_a_predicate_becomes_filters_that_do_not_score(name, argument, plugins):
    profile = resolved(predicates=[{"name": name, "argument": argument}])
    assert set(names(profile, "filter")) == {*plugins.split(), *ALWAYS_FILTER}
    assert scores(profile) == {}
    prefilters = set(plugins.split()) & set(DEFAULT_ORDER["preFilter"])
    assert set(names(profile, "preFilter")) == prefilters | {"DynamicResources", "NodeDeclaredFeatures"}


PRIORITY_ROWS = [
    ("BalancedResourceAllocation", None, "NodeResourcesBalancedAllocation"),
    ("EvenPodsSpreadPriority", None, "PodTopologySpread"),
    ("ImageLocalityPriority", None, "ImageLocality"),
    ("InterPodAffinityPriority", None, "InterPodAffinity"),
    ("LeastRequestedPriority", None, "NodeResourcesFit"),
    ("MostRequestedPriority", None, "NodeResourcesFit"),
    ("NodeAffinityPriority", None, "NodeAffinity"),
    ("SelectorSpreadPriority", None, "PodTopologySpread"),
    ("ServiceSpreadingPriority", None, "PodTopologySpread"),
    ("TaintTolerationPriority", None, "TaintToleration"),
    ("RequestedToCapacityRatioPriority", RATIO, "NodeResourcesFit"),
    ("any ratio", RATIO, "NodeResourcesFit"),
    ("any label", {"labelPreference": {"label": "ssd", "presence": True}}, "NodeAffinity"),
    ("any spreading", {"serviceAntiAffinity": {"label": "zone"}}, "PodTopologySpread"),
    ("EqualPriority", None, ""),
    ("NodePreferAvoidPodsPriority", None, ""),
    ("ResourceLimitsPriority", None, ""),
]


@pytest.mark.parametrize(("name", "argument", "plugin"), PRIORITY_ROWS, ids=[row[0] for row in PRIORITY_ROWS])
def test_a_priority_becomes_a_score_that_does_not_filter(name, argument, plugin):
    profile = resolved(priorities=[{"name": name, "weight": 7, "argument": argument}])
    assert scores(profile) == ({plugin: 7} if plugin else {})
    assert set(names(profile, "filter")) == set(ALWAYS_FILTER)
    assert names(profile, "preFilter") == ["DynamicResources", "NodeDeclaredFeatures"]


def test_the_tables_above_have_every_name():
    assert set(PREDICATES) - {"CheckServiceAffinity"} <= {row[0] for row in PREDICATE_ROWS}
    assert {*PRIORITIES, *DROPPED} <= {row[0] for row in PRIORITY_ROWS}


def test_without_lists_the_default_predicates_and_priorities_are_meant():
    profile = resolved(predicates=None, priorities=None)
    assert set(names(profile, "filter")) == set(DEFAULT_ORDER["filter"])
    assert scores(profile) == {
        **dict.fromkeys(
            ("NodeResourcesFit", "NodeAffinity", "TaintToleration", "InterPodAffinity", "ImageLocality"), 1
        ),
        "NodeResourcesBalancedAllocation": 1,
        "PodTopologySpread": 2,
    }


def test_with_empty_lists_only_what_every_policy_has_remains():
    profile = resolved()
    assert names(profile, "filter") == ALWAYS_FILTER
    assert scores(profile) == {}
    assert names(profile, "queueSort") == ["PrioritySort"]
    assert names(profile, "postFilter") == ["DynamicResources", "DefaultPreemption"]
    assert names(profile, "bind") == ["DefaultBinder"]


def test_filters_run_in_the_order_of_predicates_whatever_the_order_of_the_file():
    given = ["MatchInterPodAffinity", "NoDiskConflict", "PodToleratesNodeTaints", "GeneralPredicates"]
    assert names(resolved(predicates=[{"name": name} for name in given]), "filter")[:7] == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
    ]


def test_volumes_are_bound_by_the_predicate_that_checks_them():
    profile = resolved(predicates=[{"name": "CheckVolumeBinding"}])
    assert "VolumeBinding" in names(profile, "reserve")
    assert "VolumeBinding" in names(profile, "preBind")
