"""The details that each default plugin gives of the nodes that it refuses; that there are details for every
refusal holds in random clusters."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.meta import LabelSelector
from moorage.api.node import HOSTNAME, ZONE, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.pod import Affinity, NodeAffinity, Pod, PodAffinityTerm, PodAntiAffinity, Volume
from moorage.api.storage import (
    AWSElasticBlockStoreVolumeSource,
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
    GCEPersistentDiskVolumeSource,
    RBDVolumeSource,
)
from moorage.framework.optional import Detail, ExplainingPlugin
from moorage.plugins.csi_translation import MIGRATED_PLUGINS
from moorage.plugins.registry import DEFAULT
from moorage.plugins.volumes import SELECTED_NODE
from moorage.testing import make_node, make_pod
from moorage.testing.builders import host_port, make_affinity, make_metadata, spread_over
from moorage.testing.volumes import make_csi_node, make_pv, make_pvc, make_storage_class
from tests.plugins import one_plugin
from tests.plugins.explained import explained
from tests.plugins.volume_world import make_world

GIB = 1 << 30


def details(plugin: str, pod: Pod, *objects: Any) -> dict[str, list[Detail]]:
    world = make_world(*objects, pod=pod)
    return explained(world.profile.plugins[plugin], world.pod, world.nodes)


def one(plugin: str, pod: Pod, *objects: Any) -> list[Detail]:
    """Of the only node that is refused."""
    [found] = details(plugin, pod, *objects).values()
    return found


def test_resources_are_asked_for_free_and_missing():
    pod, full = make_pod(cpu="3", memory="1Gi"), make_pod("full", node="n", cpu="2")
    assert one("NodeResourcesFit", pod, make_node("n"), full) == [Detail("cpu", 3000, 2000, 1000, "m")]


def test_every_taint_that_is_not_tolerated_is_named_as_kubectl_writes_it():
    node = make_node("n", taints=["gpu=true:NoSchedule", "old:NoExecute", "ok:NoSchedule", "x:PreferNoSchedule"])
    found = one("TaintToleration", make_pod(tolerations=["ok:NoSchedule"]), node)
    assert found == [Detail("taint gpu=true:NoSchedule"), Detail("taint old:NoExecute")]


def test_the_node_that_a_pod_names_is_said():
    pod = make_pod(node="b", phase="Pending")
    assert details("NodeName", pod, make_node("a"), make_node("b")) == {"a": [Detail("nodeName", asked="b", there="a")]}


def term(*expressions: tuple[str, str, str], fields: tuple[tuple[str, str, str], ...] = ()) -> NodeSelectorTerm:
    """Each as key, operator and values in one text."""
    listed = [
        tuple(NodeSelectorRequirement(key=k, operator=o, values=tuple(v.split())) for k, o, v in given)
        for given in (expressions, fields)
    ]
    return NodeSelectorTerm(match_expressions=listed[0], match_fields=listed[1])


def needing(*terms: NodeSelectorTerm, **options: Any) -> Pod:
    required = NodeSelector(node_selector_terms=terms)
    node_affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    return make_pod(affinity=Affinity(node_affinity=node_affinity), **options)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            make_pod(node_selector={"disk": "ssd", "os": "linux", "rack": "1"}),
            [Detail("nodeSelector disk=ssd", there="hdd"), Detail("nodeSelector rack=1", there="no label")],
            id="nodeSelector",
        ),
        pytest.param(
            needing(term(("disk", "In", "ssd nvme"), ("os", "Exists", ""), ("cores", "Gt", "8"))),
            [Detail("disk In (nvme, ssd)", there="hdd"), Detail("cores Gt 8", there="4")],
            id="what fails in a term",
        ),
        pytest.param(
            needing(term(("gpu", "Exists", "")), node_selector={"os": "bsd"}),
            [Detail("nodeSelector os=bsd", there="linux"), Detail("gpu Exists", there="no label")],
            id="selector and term",
        ),
        pytest.param(
            needing(term(("disk", "In", "ssd")), term(fields=(("metadata.name", "In", "m"),))),
            [
                Detail("term 1 of 2, one must match: disk In (ssd)", there="hdd"),
                Detail("term 2 of 2, one must match: metadata.name In (m)", there="n"),
            ],
            id="one of several terms is enough",
        ),
        pytest.param(
            needing(term(("os", "DoesNotExist", ""), ("disk", "NotIn", "hdd"))),
            [Detail("os DoesNotExist", there="linux"), Detail("disk NotIn (hdd)", there="hdd")],
            id="what must not be there",
        ),
        pytest.param(
            needing(term()), [Detail("node affinity without terms, which no node matches")], id="an empty term"
        ),
        pytest.param(
            needing(term(("disk", "Near", "ssd"))),
            [
                Detail(
                    "nodeSelectorTerms[0].matchExpressions[0].operator: unknown operator 'Near'; use one of "
                    "In, NotIn, Exists, DoesNotExist, Gt, Lt"
                )
            ],
            id="a term that cannot be read",
        ),
    ],
)
def test_node_affinity_names_what_does_not_match_and_what_the_node_has(pod, expected):
    node = make_node("n", labels={"disk": "hdd", "os": "linux", "cores": "4"})
    assert one("NodeAffinity", pod, node) == expected


def test_an_affinity_that_the_profile_adds_is_said_to_be_one():
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    asked = one_plugin.ask("NodeAffinity", make_pod(), [make_node("n")], (), {"addedAffinity": required})
    assert explained(asked.plugin, asked.pod, asked.world.nodes) == {
        "n": [Detail("addedAffinity of the profile: pool In (batch)", there="no label")]
    }


def test_ports_name_the_pods_that_hold_them():
    pod = make_pod(ports=[80, host_port(53, "UDP", "10.0.0.1"), 81])
    holders = [
        make_pod("web", node="n", ports=[80]),
        make_pod("dns", node="n", ports=[host_port(53, "UDP")]),
        make_pod("elsewhere", node="m", ports=[81]),
    ]
    assert details("NodePorts", pod, make_node("n"), make_node("m"), *holders) == {
        "n": [Detail("port TCP/80", pods=("default/web",)), Detail("port UDP/10.0.0.1:53", pods=("default/dns",))],
        "m": [Detail("port TCP/81", pods=("default/elsewhere",))],
    }


def test_a_few_pods_are_enough():
    crowd = [make_pod(f"p{i}", node="n", labels={"app": "web"}) for i in range(9)]
    pod = make_pod(affinity=make_affinity(away={"app": "web"}))
    [found] = one("InterPodAffinity", pod, make_node("n"), *crowd)
    assert (found.there, found.missing, len(found.pods)) == (9, 9, 5)


def test_spread_gives_the_skew_that_would_result():
    pod = make_pod(labels={"app": "web"}, spread=[spread_over(ZONE, {"app": "web"}, max_skew=2)])
    nodes = [make_node("a", zone="x"), make_node("b", zone="y"), make_node("c")]
    crowd = [make_pod(f"p{i}", node="a", labels={"app": "web"}) for i in range(4)]
    assert details("PodTopologySpread", pod, *nodes, *crowd) == {
        "a": [Detail(f"{ZONE}=x spread of app=web, maxSkew 2", asked=2, there=5, missing=3)],
        "c": [Detail(f"label {ZONE}", there="no label")],
    }


def test_spread_names_every_constraint_that_fails():
    spread = [spread_over(key, {"app": "web"}) for key in (ZONE, HOSTNAME)]
    pod = make_pod(labels={"app": "web"}, spread=spread)
    nodes = [make_node("a", zone="x"), make_node("b", zone="y")]
    running = make_pod("p", node="a", labels={"app": "web"})
    assert details("PodTopologySpread", pod, *nodes, running) == {
        "a": [
            Detail(f"{key}={value} spread of app=web, maxSkew 1", asked=1, there=2, missing=1)
            for key, value in ((ZONE, "x"), (HOSTNAME, "a"))
        ]
    }


WEB, DB = {"app": "web"}, {"app": "db"}
ALONE = Detail(f"affinity app=db per {HOSTNAME}", there="no matching pod anywhere")
ZONES = [make_node("a", zone="x"), make_node("b", zone="x"), make_node("c", zone="y"), make_node("d")]


def pods_in_the_way(rule: str, key: str, *names: str) -> Detail:
    number, pods = len(names), tuple(f"default/{name}" for name in names)
    return Detail(f"anti-affinity {rule} per {key}", asked=0, there=number, missing=number, pods=pods)


@pytest.mark.parametrize(
    ("pod", "running", "expected"),
    [
        pytest.param(
            make_pod(affinity=make_affinity(near=DB, topology=ZONE)),
            [make_pod("p", node="a", labels=DB)],
            {
                "c": [Detail(f"affinity app=db per {ZONE}", there="no matching pod in y")],
                "d": [Detail(f"affinity app=db per {ZONE}", there="no label")],
            },
            id="affinity",
        ),
        pytest.param(
            make_pod(affinity=make_affinity(near=DB)),
            [make_pod("p", node="a", labels=DB, namespace="other")],
            {node: [ALONE] for node in "abcd"},
            id="affinity to pods that do not exist",
        ),
        pytest.param(
            make_pod(labels=DB, affinity=make_affinity(near=DB, topology=ZONE)),
            [],
            {"d": [Detail(f"affinity app=db per {ZONE}", there="no label")]},
            id="the first of its kind needs the label only",
        ),
        pytest.param(
            make_pod(affinity=make_affinity(away=WEB, topology=ZONE)),
            [make_pod(f"p-{node}", node=node, labels=WEB) for node in "abd"],
            {node: [pods_in_the_way("app=web", ZONE, "p-a", "p-b")] for node in "ab"},
            id="anti-affinity",
        ),
        pytest.param(
            make_pod(labels=WEB),
            [
                make_pod("p", node="a", affinity=make_affinity(away=WEB, topology=ZONE)),
                make_pod("q", node="b", affinity=make_affinity(away=DB, topology=ZONE)),
            ],
            {node: [pods_in_the_way("of running pods against app=web", ZONE, "p")] for node in "ab"},
            id="anti-affinity of others",
        ),
        pytest.param(
            make_pod(),
            [make_pod("p", node="a", affinity=make_affinity(away={}))],
            {"a": [pods_in_the_way("of running pods against all pods", HOSTNAME, "p")]},
            id="anti-affinity of others to all pods",
        ),
        pytest.param(
            make_pod(labels=WEB, affinity=make_affinity(near=DB, away=WEB)),
            [make_pod("p", node="a", labels=WEB, affinity=make_affinity(away=WEB))],
            {
                "a": [
                    ALONE,
                    pods_in_the_way("app=web", HOSTNAME, "p"),
                    pods_in_the_way("of running pods against app=web", HOSTNAME, "p"),
                ],
                **{node: [ALONE] for node in "bcd"},
            },
            id="all three",
        ),
    ],
)
def test_affinity_names_the_rule_and_the_pods(pod, running, expected):
    assert details("InterPodAffinity", pod, *ZONES, *running) == expected


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"namespaces": ("x", "y")}, "app=web in namespaces x, y"),
        ({"namespace_selector": LabelSelector()}, "app=web in all namespaces"),
    ],
)
def test_affinity_names_namespaces_other_than_the_own(given, text):
    term = PodAffinityTerm(topology_key=HOSTNAME, label_selector=LabelSelector(match_labels=WEB), **given)
    away = PodAntiAffinity(required_during_scheduling_ignored_during_execution=(term,))
    running = make_pod("p", node="n", namespace="x", labels=WEB)
    found = one("InterPodAffinity", make_pod(affinity=Affinity(pod_anti_affinity=away)), make_node("n"), running)
    assert found == [Detail(f"anti-affinity {text} per {HOSTNAME}", 0, 1, 1, "", ("x/p",))]


def test_features_that_a_node_does_not_declare_are_named():
    pod = make_pod(host_network=True, host_users=False)
    expected = [Detail("feature UserNamespacesHostNetworkSupport", there="not declared")]
    assert one("NodeDeclaredFeatures", pod, make_node("n")) == expected


def bound(name: str, volume: str = "v", **options: Any) -> list[Any]:
    claim = make_pvc(name, volume=volume)
    return [claim, make_pv(volume, claim=claim, **options)]


def test_volume_limits_give_the_remaining_volumes_of_a_driver():
    running = make_pod("p", node="n", claims=["c1"])
    objects = [*bound("c1", "v1", driver="d"), *bound("c2", "v2", driver="d"), *bound("c3", "v3", driver="d")]
    pod = make_pod("in", claims=["c1", "c2", "c3"])
    found = one("NodeVolumeLimits", pod, make_node("n"), make_csi_node("n", {"d": 2}), running, *objects)
    assert found == [Detail("volumes of d", asked=2, there=1, missing=1)]


@pytest.mark.parametrize("plugin", ["NodeVolumeLimits", "VolumeZone", "VolumeRestrictions", "VolumeBinding"])
def test_all_claims_that_do_not_exist_are_named(plugin):
    pod = make_pod(claims=["gone", "here", "lost"])
    found = details(plugin, pod, make_node("n"), *bound("here"))
    assert found["n"] == [Detail(f"claim default/{name}", there="not found") for name in ("gone", "lost")]


def test_volume_zone_names_the_claim_and_the_zones_of_its_volume():
    objects = bound("data", labels={ZONE: "x__y"})
    nodes = [make_node("a", zone="x"), make_node("b", zone="z"), make_node("c", region="r"), make_node("d")]
    subject = f"claim default/data: volume in {ZONE} x, y"
    assert details("VolumeZone", make_pod(claims=["data"]), *nodes, *objects) == {
        "b": [Detail(subject, there="z")],
        "c": [Detail(subject, there="no label")],
    }


def test_disks_name_the_pods_that_have_them():
    disk = Volume(name="d", gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name="disk-1"))
    image = Volume(name="i", rbd=RBDVolumeSource(monitors=("m1", "m2"), pool="pool", image="image"))
    running = [make_pod("p", node="n", volumes=[disk]), make_pod("q", node="n", volumes=[image])]
    assert one("VolumeRestrictions", make_pod("in", volumes=[disk, image]), make_node("n"), *running) == [
        Detail("disk gce disk-1", pods=("default/p",)),
        Detail("disk rbd pool/image", pods=("default/q",)),
    ]


def test_a_claim_for_one_pod_names_the_pod_that_uses_it():
    claim = make_pvc("data", access_modes=["ReadWriteOncePod"])
    running = make_pod("p", node="a", claims=["data"])
    expected = [Detail("claim default/data with ReadWriteOncePod", pods=("default/p",))]
    found = details("VolumeRestrictions", make_pod(claims=["data"]), claim, running, make_node("a"), make_node("b"))
    assert found == {"a": expected, "b": expected}


WAITING = make_storage_class("local", provisioner="kubernetes.io/no-provisioner", wait=True)
DYNAMIC = make_storage_class("fast", provisioner="driver", wait=True)
MIGRATED = msgspec.structs.replace(
    make_csi_node("a"),
    metadata=make_metadata("CSINode", "a", "", annotations={MIGRATED_PLUGINS: "kubernetes.io/aws-ebs"}),
)


def capacity(zone: str, size: str) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        kind="CSIStorageCapacity",
        metadata=make_metadata("CSIStorageCapacity", zone + size, "default"),
        storage_class_name="fast",
        node_topology=LabelSelector(match_labels={ZONE: zone}),
        capacity=size,
    )


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            bound("data", nodes={ZONE: ["z"]}),
            [Detail(f"claim default/data, volume v: {ZONE} In (z)", there="x")],
            id="the volume is elsewhere",
        ),
        pytest.param(
            [
                MIGRATED,
                *bound(
                    "data",
                    nodes={ZONE: ["z"]},
                    aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id="vol-1"),
                ),
            ],
            [Detail("claim default/data, volume v: topology.ebs.csi.aws.com/zone In (z)", there="no label")],
            id="by the topology of the driver",
        ),
        pytest.param(
            [make_pvc("data", volume="v")],
            [Detail("claim default/data: volume v", there="not found")],
            id="the volume is gone",
        ),
        pytest.param(
            [make_pvc("data", storage_class="local", size="2Gi"), WAITING],
            [Detail("a volume of class local for claim default/data", asked=2 * GIB, unit="B")],
            id="no volume is free",
        ),
        pytest.param(
            [make_pvc("data", storage_class="fast", annotations={SELECTED_NODE: "b"}), DYNAMIC],
            [Detail("claim default/data", there="to be provisioned on node b")],
            id="provisioned for another node",
        ),
        pytest.param(
            [make_pvc("data", storage_class="local")],
            [Detail("claim default/data of class local", there="not bound")],
            id="unbound although nothing waits",
        ),
    ],
)
def test_volume_binding_names_the_claim_and_what_it_lacks(objects, expected):
    assert one("VolumeBinding", make_pod(claims=["data"]), make_node("a", zone="x"), *objects) == expected


def test_volume_binding_gives_the_largest_volume_that_can_be_made():
    driver = CSIDriver(
        kind="CSIDriver", metadata=make_metadata("CSIDriver", "driver", ""), spec=CSIDriverSpec(storage_capacity=True)
    )
    claim = make_pvc("data", storage_class="fast", size="5Gi")
    sizes = [capacity("x", "2Gi"), capacity("x", "3Gi"), capacity("y", "9Gi")]
    subject = "storage of class fast for claim default/data"
    found = details("VolumeBinding", make_pod(claims=["data"]), *ZONES[1:], claim, DYNAMIC, driver, *sizes)
    assert found == {
        "b": [Detail(subject, 5 * GIB, 3 * GIB, 2 * GIB, "B")],
        "d": [Detail(subject, 5 * GIB, 0, 5 * GIB, "B")],
    }


def test_every_default_filter_explains_itself_or_says_all_in_its_reason():
    silent = [
        found.name for found in DEFAULT if hasattr(found, "filter_nodes") and not issubclass(found, ExplainingPlugin)
    ]
    assert silent == ["DynamicResources"]
