"""Every default plugin's refusal, with the figures behind it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.node import HOSTNAME, ZONE
from moorage.api.pod import Volume
from moorage.api.storage import GCEPersistentDiskVolumeSource
from moorage.explain.judging import MAX_DETAILS
from moorage.explain.refusals import detail_text, summary
from moorage.framework.optional import Detail
from moorage.testing import make_node, make_pod
from moorage.testing.builders import host_port, make_affinity, spread_over
from moorage.testing.volumes import make_csi_node, make_pv, make_pvc, make_storage_class
from tests.explain.world import ask, load

WEB = {"app": "web"}
GPU = ["gpu=true:NoSchedule"]
DISK = Volume(name="d", gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name="disk-1"))


def bound(name: str, volume: str, **options: Any) -> list[Any]:
    claim = make_pvc(name, volume=volume)
    return [claim, make_pv(volume, claim=claim, **options)]


REFUSALS: list[Any] = [
    pytest.param(
        {}, make_node("n", unschedulable=True), [], [],
        "NodeUnschedulable", "node(s) were unschedulable", [],
        id="cordoned node",
    ),
    pytest.param(
        {}, make_node("n", taints=GPU), [], [],
        "TaintToleration", "node(s) had untolerated taint(s)", ["taint gpu=true:NoSchedule"],
        id="taint",
    ),
    pytest.param(
        {}, make_node("n", taints=["a:NoSchedule", "b=1:NoExecute", "c:PreferNoSchedule"]), [], [],
        "TaintToleration", "node(s) had untolerated taint(s)", ["taint a:NoSchedule", "taint b=1:NoExecute"],
        id="every hard taint, no soft one",
    ),
    pytest.param(
        {"node_selector": {"disk": "ssd"}}, make_node("n", labels={"disk": "hdd"}), [], [],
        "NodeAffinity", "node(s) didn't match Pod's node affinity/selector",
        ["nodeSelector disk=ssd: found hdd"],
        id="node selector, another value",
    ),
    pytest.param(
        {"node_selector": {"disk": "ssd"}}, make_node("n"), [], [],
        "NodeAffinity", "node(s) didn't match Pod's node affinity/selector",
        ["nodeSelector disk=ssd: no label"],
        id="node selector, no label",
    ),
    pytest.param(
        {"affinity": make_affinity(nodes={"zone": ["a", "b"]})}, make_node("n", labels={"zone": "c"}), [], [],
        "NodeAffinity", "node(s) didn't match Pod's node affinity/selector",
        ["zone In (a, b): found c"],
        id="required node affinity",
    ),
    pytest.param(
        {"cpu": "2"}, make_node("n", cpu="4"), [make_pod("busy", cpu="3", node="n")], [],
        "NodeResourcesFit", "Insufficient cpu", ["cpu: 2 requested, 1 free (1 short)"],
        id="cpu in whole cores",
    ),
    pytest.param(
        {"cpu": "2500m"}, make_node("n", cpu="2"), [], [],
        "NodeResourcesFit", "Insufficient cpu", ["cpu: 2500m requested, 2 free (500m short)"],
        id="cpu in thousandths",
    ),
    pytest.param(
        {"memory": "5Gi"}, make_node("n", memory="4Gi"), [make_pod("busy", memory="512Mi", node="n")], [],
        "NodeResourcesFit", "Insufficient memory", ["memory: 5Gi requested, 3.5Gi free (1.5Gi short)"],
        id="memory in binary units",
    ),
    pytest.param(
        {"requests": {"nvidia.com/gpu": 4}}, make_node("n", extended={"nvidia.com/gpu": 2}), [], [],
        "NodeResourcesFit", "Insufficient nvidia.com/gpu",
        ["nvidia.com/gpu: 4 requested, 2 free (2 short)"],
        id="extended resource in pieces",
    ),
    pytest.param(
        {}, make_node("n", pods=1), [make_pod("only", node="n")], [],
        "NodeResourcesFit", "Too many pods", ["pods: 1 requested, 0 free (1 short)"],
        id="number of pods",
    ),
    pytest.param(
        {"ports": [80]}, make_node("n"), [make_pod("web", node="n", ports=[80])], [],
        "NodePorts", "node(s) didn't have free ports for the requested pod ports",
        ["port TCP/80: in use by default/web"],
        id="host port",
    ),
    pytest.param(
        {"ports": [host_port(53, "UDP", "10.0.0.1")]}, make_node("n"),
        [make_pod("dns", node="n", ports=[host_port(53, "UDP")])], [],
        "NodePorts", "node(s) didn't have free ports for the requested pod ports",
        ["port UDP/10.0.0.1:53: in use by default/dns"],
        id="host port of one address",
    ),
    pytest.param(
        {"affinity": make_affinity(away=WEB)}, make_node("n"),
        [make_pod(f"w{i}", node="n", labels=WEB) for i in range(2)], [],
        "InterPodAffinity", "node(s) didn't match pod anti-affinity rules",
        [f"anti-affinity app=web per {HOSTNAME}: 2 conflicting (default/w0, default/w1)"],
        id="anti-affinity of the pod",
    ),
    pytest.param(
        {"labels": WEB}, make_node("n"),
        [make_pod("alone", node="n", affinity=make_affinity(away=WEB))], [],
        "InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules",
        [f"anti-affinity of running pods against app=web per {HOSTNAME}: 1 conflicting (default/alone)"],
        id="anti-affinity of a running pod",
    ),
    pytest.param(
        {"affinity": make_affinity(near=WEB)}, make_node("n"), [], [],
        "InterPodAffinity", "node(s) didn't match pod affinity rules",
        [f"affinity app=web per {HOSTNAME}: no matching pod anywhere"],
        id="affinity",
    ),
    pytest.param(
        {"host_network": True, "host_users": False}, make_node("n"), [], [],
        "NodeDeclaredFeatures", None, ["feature UserNamespacesHostNetworkSupport: not declared"],
        id="feature",
    ),
    pytest.param(
        {"claims": ["gone"]}, make_node("n"), [], [],
        "VolumeBinding", 'persistentvolumeclaim "gone" not found', ["claim default/gone: not found"],
        id="missing claim",
    ),
    pytest.param(
        {"claims": ["new"]}, make_node("n"), [],
        [make_pvc("new", storage_class="csi"), make_storage_class("csi")],
        "VolumeBinding", "pod has unbound immediate PersistentVolumeClaims",
        ["claim default/new of class csi: not bound"],
        id="claim that is not bound",
    ),
    pytest.param(
        {"claims": ["data"]}, make_node("n", zone="b"), [], bound("data", "v", labels={ZONE: "a"}),
        "VolumeZone", "node(s) had no available volume zone",
        [f"claim default/data: volume in {ZONE} a: found b"],
        id="volume in another zone",
    ),
    pytest.param(
        {"volumes": [DISK]}, make_node("n"), [make_pod("db", node="n", volumes=[DISK])], [],
        "VolumeRestrictions", "node(s) had no available disk", ["disk gce disk-1: in use by default/db"],
        id="disk of another pod",
    ),
    pytest.param(
        {"claims": ["c2", "c3"]}, make_node("n"), [make_pod("db", node="n", claims=["c1"])],
        [make_csi_node("n", {"d": 2}), *(o for i in (1, 2, 3) for o in bound(f"c{i}", f"v{i}", driver="d"))],
        "NodeVolumeLimits", "node(s) exceed max volume count",
        ["volumes of d: 2 required, 1 available (1 short)"],
        id="volume limit of a driver",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("options", "node", "pods", "others", "plugin", "reason", "details"), REFUSALS)
def test_a_refusal_has_its_reason_and_its_figures(options, node, pods, others, plugin, reason, details):
    pod = make_pod("p", **options)
    answer = ask(load([node], [*pods, pod], *others), pod, nodes=["n"], remedies=0)
    assert answer.feasible == 0
    [group] = [group for group in answer.groups if plugin in group.plugin.split(", ")]
    assert (group.nodes, group.names) == (1, ("n",))
    assert reason is None or group.reasons == (reason,)
    assert list(group.details) == details
    [on_node] = [each for each in answer.nodes["n"] if each["plugin"] == plugin]
    assert [each["text"] for each in on_node["details"]] == details
    assert reason is None or reason in answer.message


def test_topology_spread_gives_the_limit_and_the_actual_skew():
    pod = make_pod("p", labels=WEB, spread=[spread_over(ZONE, WEB)])
    nodes = [make_node("a", zone="x"), make_node("b", zone="y", unschedulable=True)]
    running = [make_pod(f"w{i}", node="a", labels=WEB) for i in range(2)]
    answer = ask(load(nodes, [*running, pod]), pod, nodes=["a"], remedies=0)
    [refusal] = answer.nodes["a"]
    assert refusal["plugin"] == "PodTopologySpread"
    assert [each["text"] for each in refusal["details"]] == [
        f"{ZONE}=x spread of app=web, maxSkew 1: limit 1, actual 3 (2 over)"
    ]


def test_a_node_shows_every_plugin_that_refuses_it_in_the_order_of_the_profile():
    node = make_node("n", cpu="1", taints=GPU, unschedulable=True, labels={"disk": "hdd"})
    pod = make_pod("p", cpu="2", ports=[80], node_selector={"disk": "ssd"})
    web = make_pod("web", node="n", ports=[80])
    answer = ask(load([node], [web, pod]), pod, nodes=["n"])
    assert [each["plugin"] for each in answer.nodes["n"]] == [
        "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    ]  # fmt: skip
    assert {group.only for group in answer.groups} == {0}, "no plugin is the sole reason"
    assert answer.message.startswith("0/1 nodes are available: 1 node(s) were unschedulable.")


def test_the_sole_reason_counts_nodes_that_nothing_else_refuses():
    nodes = [make_node("both", cpu="1", taints=GPU), make_node("taint", taints=GPU), make_node("cpu", cpu="1")]
    pod = make_pod("p", cpu="2")
    groups = {group.plugin: group for group in ask(load(nodes, [pod]), pod).groups}
    assert {name: (group.nodes, group.only) for name, group in groups.items()} == {
        "TaintToleration": (2, 1),
        "NodeResourcesFit": (2, 1),
    }


def test_one_plugin_with_two_reasons_has_two_groups_the_larger_first():
    nodes = [make_node("a", cpu="1"), make_node("b", cpu="1"), make_node("c", memory="1Gi")]
    pod = make_pod("p", cpu="2", memory="2Gi")
    groups = ask(load(nodes, [pod]), pod).groups
    assert [(group.plugin, group.reasons, group.nodes) for group in groups] == [
        ("NodeResourcesFit", ("Insufficient cpu",), 2),
        ("NodeResourcesFit", ("Insufficient memory",), 1),
    ]
    assert groups[0].details == ("cpu: 1 short on 2 nodes",)


def test_the_codes_say_on_which_nodes_preemption_may_help():
    nodes = [make_node("never", cpu="1"), make_node("perhaps", cpu="4")]
    pod = make_pod("p", cpu="2")
    busy = make_pod("busy", cpu="3", node="perhaps")
    [group] = ask(load(nodes, [busy, pod]), pod).groups
    assert group.codes == {"UnschedulableAndUnresolvable": 1, "Unschedulable": 1}


def test_a_group_names_the_first_nodes_only():
    nodes = [make_node(f"n{i}", cpu="1") for i in range(20)]
    pod = make_pod("p", cpu="2")
    [group] = ask(load(nodes, [pod]), pod, remedies=0).groups
    assert (group.nodes, group.names) == (20, tuple(f"n{i}" for i in range(5)))


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        pytest.param(Detail("taint a:NoSchedule"), "taint a:NoSchedule", id="subject alone"),
        pytest.param(Detail("cpu", 2000, 1500, 500, "m"), "cpu: 2 requested, 1500m free (500m short)", id="cpu"),
        pytest.param(
            Detail("memory", 1 << 31, 1 << 20, (1 << 31) - (1 << 20), "B"),
            "memory: 2Gi requested, 1Mi free (2Gi short)",
            id="rounded",
        ),
        pytest.param(Detail("pods", 1, 0, 1), "pods: 1 requested, 0 free (1 short)", id="a resource without unit"),
        pytest.param(
            Detail("pods of PodGroup t/g", 3, 2, 1),
            "pods of PodGroup t/g: 3 required, 2 available (1 short)",
            id="a number of objects",
        ),
        pytest.param(Detail("temperature", 70, 75, 5, "°C"), "temperature: limit 70, actual 75 (5 over)", id="limit"),
        pytest.param(Detail("maxSkew 1", 1, 1, 1), "maxSkew 1: limit 1, actual 1 (1 over)", id="limit reached"),
        pytest.param(
            Detail("anti-affinity", 0, 2, 2, "", ("t/a", "t/b")), "anti-affinity: 2 conflicting (t/a, t/b)", id="none"
        ),
        pytest.param(Detail("port 80", pods=("t/a",)), "port 80: in use by t/a", id="pods alone"),
        pytest.param(Detail("label x", there="hdd"), "label x: found hdd", id="a value"),
        pytest.param(Detail("claim t/c", there="not found"), "claim t/c: not found", id="a phrase"),
        pytest.param(Detail("nodeName", "a", "b"), "nodeName: a requested, found b", id="two texts"),
        pytest.param(
            Detail("gpu in one zone", 2, "none on the node"),
            "gpu in one zone: 2 requested, none on the node",
            id="mixed",
        ),
    ],
)
def test_a_detail_is_one_phrase(detail, text):
    assert detail_text(detail) == text


@pytest.mark.parametrize(
    ("per_node", "lines"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([[Detail("cpu", 2, 1, 1)]], ["cpu: 2 requested, 1 free (1 short)"], id="one node"),
        pytest.param(
            [[Detail("cpu", 2, 1, 1)], [Detail("cpu", 2, 1, 1)]], ["cpu: 1 short on 2 nodes"], id="equal figures"
        ),
        pytest.param(
            [[Detail("cpu", 9, 1, 8)], [Detail("cpu", 9, 4, 5)]], ["cpu: 5 to 8 short on 2 nodes"], id="a range"
        ),
        pytest.param(
            [[Detail("skew", 1, 3, 2)], [Detail("skew", 1, 2, 1)]], ["skew: 1 to 2 over on 2 nodes"], id="a limit"
        ),
        pytest.param(
            [[Detail("taint a")], [Detail("taint b"), Detail("taint a")]],
            ["taint a (2 nodes)", "taint b (1 node)"],
            id="the most common first",
        ),
    ],
)
def test_details_of_many_nodes_are_merged_by_subject(per_node, lines):
    assert summary(per_node) == lines


def test_a_pod_with_thousands_of_labels_has_few_details():
    pod = make_pod("p", node_selector={f"k{number}": "v" for number in range(3000)})
    answer = ask(load([make_node("n")], [pod]), pod, nodes=["n"], remedies=0)
    [group] = answer.groups
    assert len(group.details) == MAX_DETAILS
    assert len(answer.nodes["n"][0]["details"]) == MAX_DETAILS
