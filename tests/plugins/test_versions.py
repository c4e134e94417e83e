"""What the default plugins of 1.36 and 1.37 answer differently, each difference by its name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from moorage.api.pod import Affinity, ImageVolumeSource, PodAffinityTerm, PodAntiAffinity, Volume
from moorage.api.storage import AzureDiskVolumeSource, CSIDriver, CSIDriverSpec
from moorage.app.configuration import configure
from moorage.explain.evaluate import EvaluatedCase, default_configuration
from moorage.framework.events import QueueingHint
from moorage.plugins.image_locality import MIB
from moorage.plugins.inter_pod_affinity.hints import after_pod_change
from moorage.testing.builders import make_affinity, make_namespace, make_node, make_pod
from moorage.testing.volumes import make_csi_node, make_pv, make_pvc
from tests.plugins.volume_world import make_world

BOTH = pytest.mark.parametrize("version", ["1.36", "1.37"])
DRIVER = "disk.example.com"


def answers(version: str, plugin: str, *objects: Any, pod: Any) -> dict[str, Any]:
    return make_world(*objects, pod=pod, version=version).one_plugin(plugin)


@BOTH
def test_node_name_narrows_the_search_since_1_37(version):
    pod = make_pod("p", node="b")
    data = {"pod": msgspec.to_builtins(pod), "nodes": [msgspec.to_builtins(make_node(name)) for name in "ab"]}
    found = EvaluatedCase(data, default_configuration(version)).one_plugin("NodeName")
    expected = {
        "1.36": {
            "filter": {
                "a": {
                    "code": "UnschedulableAndUnresolvable",
                    "reasons": ["node(s) didn't match the requested node name"],
                }
            }
        },
        "1.37": {"preFilterNodes": ["b"]},
    }
    assert found == expected[version]


@BOTH
def test_node_name_comes_before_the_cordon_since_1_37(version):
    points = configure(discover=False, emulated_version=version).profiles[0].points
    names = [ref.name for ref in points["filter"]][:2]
    assert names == (["NodeUnschedulable", "NodeName"] if version == "1.36" else ["NodeName", "NodeUnschedulable"])
    assert ("NodeName" in [ref.name for ref in points["preFilter"]]) is (version == "1.37")


@BOTH
def test_image_volumes_raise_the_ceiling_since_1_37(version):
    pod = make_pod("p", volumes=[Volume(name="v", image=ImageVolumeSource(reference="model"))])
    node = make_node("n", images={"model:latest": 523 * MIB})
    found = answers(version, "ImageLocality", node, pod=pod)
    assert found["score"]["n"] == {"1.36": 51, "1.37": 25}[version]


NOT_PROD = LabelSelector(match_expressions=(LabelSelectorRequirement(key="env", operator="NotIn", values=("prod",)),))


@BOTH
def test_a_namespace_selector_does_not_leak_into_all_namespaces_since_1_37(version):
    term = PodAffinityTerm(
        topology_key="kubernetes.io/hostname",
        label_selector=LabelSelector(match_labels={"app": "web"}),
        namespace_selector=NOT_PROD,
    )
    away = PodAntiAffinity(required_during_scheduling_ignored_during_execution=(term,))
    pod = make_pod("p", affinity=Affinity(pod_anti_affinity=away))
    other = make_pod("o", namespace="live", labels={"app": "web"}, node="n")
    namespaces = (make_namespace("live", labels={"env": "prod"}), make_namespace("default"))
    found = answers(version, "InterPodAffinity", make_node("n"), *namespaces, other, pod=pod)
    assert ("filter" in found) is (version == "1.36")


def test_one_anti_affinity_term_is_enough_to_wake_since_1_37():
    both = make_affinity(away={"app": "web"}).pod_anti_affinity
    assert both is not None
    [first] = both.required_during_scheduling_ignored_during_execution
    second = msgspec.structs.replace(first, label_selector=LabelSelector(match_labels={"app": "db"}))
    away = PodAntiAffinity(required_during_scheduling_ignored_during_execution=(first, second))
    pod = make_pod("p", affinity=Affinity(pod_anti_affinity=away))
    web, other = (make_pod("o", labels={"app": app}, node="n") for app in ("web", "other"))
    for new in (None, other):
        assert after_pod_change(pod, web, new, one_is_enough=True) is QueueingHint.QUEUE
        assert after_pod_change(pod, web, new, one_is_enough=False) is QueueingHint.SKIP


def driver(prevents: bool | None) -> CSIDriver:
    spec = CSIDriverSpec(prevent_pod_scheduling_if_missing=prevents)
    return CSIDriver(kind="CSIDriver", metadata=ObjectMeta(name=DRIVER, uid=DRIVER), spec=spec)


MISSING = {"code": "Unschedulable", "reasons": [f"{DRIVER} CSI driver is not installed on the node"]}


@pytest.mark.parametrize(
    ("version", "prevents", "refused"),
    [("1.37", True, {"b": MISSING, "c": MISSING}), ("1.37", False, {}), ("1.37", None, {}), ("1.36", True, {})],
)
def test_a_driver_may_demand_to_be_on_the_node_since_1_37(version, prevents, refused):
    claim = make_pvc("claim", volume="volume")
    objects = [claim, make_pv("volume", claim=claim, driver=DRIVER), driver(prevents)]
    nodes = [make_node(name) for name in "abc"]
    drivers = [make_csi_node("a", {DRIVER: 5}), make_csi_node("b", {"other": 5})]
    world = make_world(*nodes, *drivers, *objects, pod=make_pod("p", claims=["claim"]), version=version)
    assert world.one_plugin("NodeVolumeLimits").get("filter", {}) == refused


@BOTH
def test_a_volume_of_a_placed_pod_that_cannot_be_counted_fails_the_attempt_on_limited_nodes(version):
    """As upstream, also on a node that is far below its limit, and if it limits another driver."""
    shared = Volume(name="v", azure_disk=AzureDiskVolumeSource(disk_name="d", disk_uri="d", kind="Shared"))
    claim = make_pvc("claim", volume="volume")
    objects = [claim, make_pv("volume", claim=claim, driver=DRIVER), make_csi_node("a", {"other": 99})]
    odd = make_pod("odd", node="a", volumes=[shared])
    world = make_world(make_node("a"), *objects, odd, pod=make_pod("p", claims=["claim"]), version=version)
    assert "error" in world.one_plugin("NodeVolumeLimits")
