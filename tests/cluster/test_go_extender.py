"""Moorage and an extender in Go that reads with kube-scheduler's own types, and strictly.

The extender (tools/controlplane/extender) writes down what it understood of each request. That is compared
with what the API server has: a field that Moorage writes under another name or with another value is found
either there or here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import objects
from tests.cluster.api import Json
from tests.cluster.controlplane import ControlPlane, Missing, find_programs
from tests.cluster.processes import Daemon
from tests.cluster.worlds import SCHEDULER, World

ADMIN = "admin"
"""As whom the extender binds."""
OPTIONS = ("--label=passes", "--suffix=-ok", "--prefer=c-ok", "--drop=b-ok")


class GoExtender(Daemon):
    @property
    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    @property
    def url(self) -> str:
        return f"http://{self.lines[0]['Listening']}"

    def asked(self, verb: str) -> list[Json]:
        """The arguments of all requests of a verb, in order."""
        return [line["Args"] for line in self.lines if line.get("Verb") == verb]


@pytest.fixture
def extender(plane: ControlPlane, tmp_path: Path) -> Iterator[GoExtender]:
    try:
        program = find_programs(names=("extender",))["extender"]
    except Missing as missing:
        pytest.skip(str(missing))
    command = [program, *OPTIONS, f"--kubeconfig={plane.admin_config}"]
    daemon = GoExtender("go-extender", command, tmp_path)
    daemon.start()
    daemon.wait_until(lambda: bool(daemon.log.read_text()), 10)
    yield daemon
    daemon.stop()
    assert [line for line in daemon.lines if "Error" in line] == []


def configured(extender: GoExtender, *verbs: str, names: bool) -> Json:
    offered = {f"{verb}Verb": verb for verb in verbs}
    return {"urlPrefix": extender.url, "weight": 5, "nodeCacheCapable": names, "httpTimeout": "10s", **offered}


WAYS = pytest.mark.parametrize("names", [True, False], ids=["names", "nodes"])


@WAYS
def test_filter_prioritize_and_bind(world: World, plane: ControlPlane, extender: GoExtender, names: bool) -> None:
    have = {name: world.api.create(rich_node(name)) for name in ("a-ok", "b-ok", "c-ok", "d")}
    world.moorage(extenders=[configured(extender, "filter", "prioritize", "bind", names=names)])
    pod = world.api.create(rich_pod(f"bound-by-go-{names}".lower()))
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    assert world.wait_bound(name) == "c-ok"

    (filtered,), (scored,), (bound,) = (extender.asked(verb) for verb in ("filter", "prioritize", "bind"))
    assert sorted(node_names(filtered)) == sorted(have)
    assert sorted(node_names(scored)) == ["a-ok", "b-ok", "c-ok"]
    assert filtered["Pod"] == scored["Pod"]
    assert_within(filtered["Pod"], pod)
    for field in ("affinity", "tolerations", "topologySpreadConstraints", "nodeSelector"):
        assert filtered["Pod"]["spec"][field] == pod["spec"][field]
    for node in (filtered["Nodes"] or {}).get("items", ()):
        stored = have[node["metadata"]["name"]]
        assert_within(node, stored)
        assert node["spec"] == stored["spec"]
        for field in ("labels", "annotations", "uid", "resourceVersion", "creationTimestamp"):
            assert node["metadata"][field] == stored["metadata"][field]
        for field in ("allocatable", "conditions", "addresses", "images", "nodeInfo"):
            assert node["status"][field] == stored["status"][field]
    assert bound == {"PodName": name, "PodNamespace": "default", "PodUID": uid, "Node": "c-ok"}
    binds = [call for call in plane.calls() if (call.resource, call.name) == ("pods/binding", name)]
    assert [(call.user, call.code) for call in binds] == [(ADMIN, 201)]

    world.pod("refused", nodeSelector={"kubernetes.io/hostname": "d"})
    reason = "the name does not end in -ok" if names else "there is no label passes"
    assert f"1 {reason}" in world.wait_refused("refused")


@WAYS
def test_preempt(world: World, extender: GoExtender, names: bool) -> None:
    """The victim on b is the cheaper one; the extender drops the node."""
    world.nodes("a-ok", "b-ok", cpu="1")
    for name, value in (("low", 1), ("middle", 10), ("high", 100)):
        world.api.create(objects.priority_class(name, value))
    low = {
        node: world.api.create(objects.pod(f"on-{node}", cpu="900m", nodeName=node, priorityClassName=priority))
        for node, priority in (("a-ok", "middle"), ("b-ok", "low"))
    }
    world.moorage(extenders=[configured(extender, "preempt", names=names)])
    created = world.pod("urgent", cpu="500m", priorityClassName="high")
    assert world.wait_bound("urgent") == "a-ok"
    assert world.node_of("on-b-ok") == "b-ok"

    asked = extender.asked("preempt")[0]
    assert_within(asked["Pod"], created)
    offered, other = asked["NodeNameToVictims"], asked["NodeNameToMetaVictims"]
    if names:
        offered, other = other, offered
    assert (sorted(offered), other) == (["a-ok", "b-ok"], None)
    for node, pod in low.items():
        (victim,) = offered[node]["Pods"]
        assert offered[node]["NumPDBViolations"] == 0
        assert_within(victim, {"UID": pod["metadata"]["uid"]} if names else pod)


@WAYS
def test_kube_scheduler_asks_the_same(world: World, plane: ControlPlane, extender: GoExtender, names: bool) -> None:
    for name in ("a-ok", "b-ok", "c-ok", "d"):
        world.api.create(rich_node(name))
    extenders = [configured(extender, "filter", "prioritize", "bind", names=names)]
    kube = plane.start_kube_scheduler(objects.scheduler_config(extenders=extenders))
    try:
        world.moorage(extenders=extenders)
        for scheduler in ("default-scheduler", SCHEDULER):
            world.api.create(objects.pod(f"by-{scheduler}", scheduler=scheduler))
            assert world.wait_bound(f"by-{scheduler}") == "c-ok"
    finally:
        kube.stop()
    for verb in ("filter", "prioritize"):
        theirs, ours = extender.asked(verb)
        assert [key for key, value in theirs.items() if value is None] == [
            key for key, value in ours.items() if value is None
        ]
        assert sorted(node_names(theirs)) == sorted(node_names(ours))
        assert_within(ours["Pod"]["spec"], theirs["Pod"]["spec"] | {"schedulerName": SCHEDULER})
        stored = {node["metadata"]["name"]: node for node in (theirs["Nodes"] or {}).get("items", ())}
        for node in (ours["Nodes"] or {}).get("items", ()):
            # Go's client takes the type out of the objects that it keeps.
            assert_within(node, stored[node["metadata"]["name"]] | {"apiVersion": "v1", "kind": "Node"})
    theirs, ours = extender.asked("bind")
    assert theirs.keys() == ours.keys()


def node_names(args: Json) -> list[str]:
    """Of a request that has either names or nodes."""
    names: list[str] = args["NodeNames"] or [node["metadata"]["name"] for node in args["Nodes"]["items"]]
    return names


def assert_within(sent: Any, stored: Any, path: str = "$") -> None:
    """Whatever was sent is what the API server has; what Go adds by itself is empty."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, value in sent.items():
            if key in stored or not is_empty(value):
                assert_within(value, stored.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for index, pair in enumerate(zip(sent, stored, strict=True)):
            assert_within(*pair, f"{path}[{index}]")
    else:
        assert sent == stored, path


def is_empty(value: Any) -> bool:
    return not value or (isinstance(value, dict) and all(map(is_empty, value.values())))


def rich_node(name: str) -> Json:
    """With everything that a kubelet and a cloud write."""
    node = objects.node(
        name,
        labels={"kubernetes.io/os": "linux", **({"passes": "yes"} if name.endswith("-ok") else {})},
        taints=[{"key": "dedicated", "value": "batch", "effect": "PreferNoSchedule"}],
        images=[{"names": [f"registry.example/app@sha256:{'0' * 64}", "registry.example/app:1"], "sizeBytes": 9 << 20}],
        extended={"example.com/gpu": "2"},
    )
    node["metadata"]["annotations"] = {"example.com/rack": "r1"}
    node["spec"] |= {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": f"example://{name}"}
    node["status"] |= {
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": name}],
        "nodeInfo": {
            "machineID": "m", "systemUUID": "s", "bootID": "b", "kernelVersion": "6.1.0", "osImage": "Linux",
            "containerRuntimeVersion": "containerd://2.0", "kubeletVersion": "v1.36.4",
            "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
        },
    }  # fmt: skip
    return node


def rich_pod(name: str) -> Json:
    """With everything that decides where it can run."""
    alike = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
    passes = {"key": "passes", "operator": "In", "values": ["yes", "maybe"]}
    return objects.pod(
        name,
        scheduler=SCHEDULER,
        labels={"app": name},
        ports=[{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}],
        nodeSelector={"kubernetes.io/os": "linux"},
        tolerations=[{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
        topologySpreadConstraints=[{"maxSkew": 3, "whenUnsatisfiable": "DoNotSchedule", **alike}],
        affinity={
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchExpressions": [passes]}}
                ]
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alike]},
        },
        volumes=[{"name": "scratch", "emptyDir": {}}],
    )
