"""A scheduler with a published Policy places pods as the plugins that it names say, and no others."""

import json

import pytest

from moorage import config
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_affinity, make_service
from tests.config.builders import POLICY

PUBLISHED = {**json.loads(POLICY), "extenders": []}
"""Without its extender, which no test has running."""


FULL_AND_EMPTY = [make_node("full"), make_node("empty"), make_pod("before", node="full", cpu="3", memory="12Gi")]


def placed(policy, pod, *objects):
    """Where a scheduler with this Policy puts a pod beside what is there already."""
    with Cluster(config=config.convert_policy(json.dumps(policy)).text) as cluster:
        cluster.add(*objects)
        cluster.settle()
        cluster.add(pod)
        cluster.settle()
        return cluster.node_of(pod.name)


def test_nodes_are_filtered_by_the_predicates_and_by_the_mandatory_ones():
    objects = [
        make_node("small", cpu="1"),
        make_node("tainted", taints=["dedicated=x:NoSchedule"]),
        make_node("cordoned", unschedulable=True),
        make_node("taken"),
        make_node("free"),
        make_pod("before", node="taken", ports=[80]),
    ]
    assert placed(PUBLISHED, make_pod("p", cpu="2", ports=[80]), *objects) == "free"


@pytest.mark.parametrize(("extra", "node"), [([], "bare"), ([{"name": "EvenPodsSpread"}], "")])
def test_a_strict_spread_constraint_refuses_nodes_only_with_its_predicate(extra, node):
    policy = {**PUBLISHED, "predicates": [*PUBLISHED["predicates"], *extra]}
    pod = make_pod("p", labels={"app": "a"}, spread="topology.kubernetes.io/zone")
    assert placed(policy, pod, make_node("bare")) == node


@pytest.mark.parametrize(
    ("priorities", "node"),
    [(PUBLISHED["priorities"], "empty"), ([{"name": "MostRequestedPriority", "weight": 1}], "full")],
    ids=["published", "most requested"],
)
def test_nodes_are_scored_by_the_priorities(priorities, node):
    policy = {**PUBLISHED, "priorities": priorities}
    assert placed(policy, make_pod("p", cpu="500m", memory="2Gi"), *FULL_AND_EMPTY) == node


@pytest.mark.parametrize(("present", "node"), [(True, "labelled"), (False, "plain")])
def test_nodes_are_filtered_by_the_presence_of_a_label(present, node):
    argument = {"labelsPresence": {"labels": ["zone"], "presence": present}}
    policy = {"predicates": [{"name": "ZoneRequired", "argument": argument}], "priorities": []}
    nodes = [make_node("labelled", labels={"zone": "a"}), make_node("plain")]
    assert placed(policy, make_pod("p"), *nodes) == node


@pytest.mark.parametrize(("present", "node"), [(True, "labelled"), (False, "plain")])
def test_nodes_are_scored_by_the_presence_of_a_label_without_its_filter(present, node):
    argument = {"labelPreference": {"label": "zone", "presence": present}}
    policy = {"predicates": [], "priorities": [{"name": "Zone", "weight": 1, "argument": argument}]}
    nodes = [make_node("labelled", labels={"zone": "a"}), make_node("plain")]
    assert placed(policy, make_pod("p", node_selector={"no": "node"}), *nodes) == node


def test_pods_of_a_service_are_spread_over_the_values_of_a_label():
    argument = {"serviceAntiAffinity": {"label": "rack"}}
    policy = {"predicates": [], "priorities": [{"name": "Racks", "weight": 1, "argument": argument}]}
    objects = [
        make_service("web", selector={"app": "web"}),
        make_node("a1", labels={"rack": "a"}),
        make_node("a2", labels={"rack": "a"}),
        make_node("b1", labels={"rack": "b"}),
        make_pod("before", node="a1", labels={"app": "web"}),
    ]
    assert placed(policy, make_pod("p", labels={"app": "web"}), *objects) == "b1"


@pytest.mark.parametrize(
    ("name", "pod"),
    [
        ("InterPodAffinityPriority", make_pod("p", affinity=make_affinity(near={"app": "none"}))),
        ("LeastRequestedPriority", make_pod("p", cpu="64")),
    ],
)
def test_a_score_works_without_its_filter(name, pod):
    policy = {"predicates": [], "priorities": [{"name": name, "weight": 1}]}
    assert placed(policy, pod, *FULL_AND_EMPTY) in ("full", "empty")
