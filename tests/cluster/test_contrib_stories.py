"""Plugins of contrib that decide without measured load: what a user sees with kubectl, on the real API server
with exactly the rights and kinds that `moorage manifests` prints, and on the embedded one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from moorage.api.node import REGION, ZONE
from moorage.app.configuration import configure
from moorage.contrib.gpu.requests import GPU_COUNT, GPU_INDEX, GPU_MILLI
from moorage.contrib.network_aware.app_groups import GROUP, WORKLOAD
from moorage.contrib.preemption_toleration import MINIMUM, SECONDS
from moorage.contrib.sysched import SECCOMP_PROFILES
from moorage.manifests import DeployOptions, manifests
from tests.cluster import objects
from tests.cluster.conftest import RIGHTS, clean
from tests.cluster.controlplane import ControlPlane
from tests.cluster.embedded_plane import EmbeddedPlane
from tests.cluster.kubelet import StandIn
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.objects import Json
from tests.cluster.worlds import World
from tests.contrib.configs import enabling
from tests.contrib.network_aware.shop import app_group, topology
from tests.kubectl.runner import Kubectl

NAME = "stories"
DEFINITION = "CustomResourceDefinition"


class Stage:
    """A cluster that is seen through kubectl, and a Moorage with one plugin more than the default ones."""

    def __init__(self, plane: ControlPlane | EmbeddedPlane, program: Path, folder: Path) -> None:
        self._plane = plane
        admin = plane.kubeconfig if isinstance(plane, EmbeddedPlane) else plane.admin_config
        self.kubectl = Kubectl(program, admin, folder)
        self.world = World(NAME, plane.api, folder, admin)
        self._profile: Json = {}
        self._definitions: list[str] = []

    def install(
        self,
        plugin: str,
        args: Mapping[str, Any] | None = None,
        *,
        weight: int = 1,
        without: tuple[str, ...] = (),
        beside: tuple[str, ...] = (),
    ) -> None:
        """The rights, as far as the cluster knows any, and the kinds."""
        text = enabling(plugin, args, weight=weight, without=without, beside=beside)
        self._profile = {**json.loads(text)["profiles"][0], "schedulerName": "moorage"}
        wanted = (DEFINITION,) if isinstance(self._plane, EmbeddedPlane) else (DEFINITION, *RIGHTS)
        options = DeployOptions(name=NAME, image="moorage:test")
        for obj in manifests(configure(text, discover=False), text, options):
            if obj["kind"] in wanted:
                self.apply(obj, namespace=obj["metadata"].get("namespace", "default"))
            if obj["kind"] == DEFINITION:
                self.wait_established(obj["metadata"]["name"])
        if isinstance(self._plane, ControlPlane):
            self.world.kubeconfig = self._plane.kubeconfig(NAME, token=self._plane.token(NAME, NAMESPACE))

    def wait_established(self, definition: str) -> None:
        self._definitions.append(definition)
        self.kubectl("wait", "--for=condition=Established", f"crd/{definition}", "--timeout=20s")

    def start(self) -> None:
        lease = (f"--leader-elect-resource-name={NAME}", f"--leader-elect-resource-namespace={NAMESPACE}")
        self.world.moorage(self._profile, arguments=lease)

    def stop(self) -> None:
        self.world.stop()
        clean(self.world.api)
        if self._definitions:
            self.kubectl("delete", "crd", *self._definitions)

    def apply(self, *items: Json, namespace: str = "default") -> None:
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        self.kubectl.within(namespace)("apply", "-f", "-", stdin=manifest)

    def pod(self, name: str, *, namespace: str = "default", **spec: Any) -> None:
        self.apply(made_pod(name, **spec), namespace=namespace)

    def wait_bound(self, name: str, namespace: str = "default") -> str:
        return self._read(name, "{.spec.nodeName}", namespace)

    def wait_refused(self, name: str, namespace: str = "default") -> str:
        return self._read(name, '{.status.conditions[?(@.type=="PodScheduled")].message}', namespace)

    def _read(self, name: str, path: str, namespace: str) -> str:
        return self.kubectl.within(namespace).until(bool, "get", "pod", name, "-o", f"jsonpath={path}")


def made_pod(name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    pod = objects.pod(name, **{"scheduler": "moorage", **spec})
    pod["metadata"]["annotations"] = annotations or {}
    return pod


@pytest.fixture(params=["shared_plane", "shared_embedded"], ids=["real", "embedded"])
def stage(request: pytest.FixtureRequest, programs: dict[str, str], tmp_path: Path) -> Iterator[Stage]:
    made = Stage(request.getfixturevalue(request.param), Path(programs["kubectl"]), tmp_path)
    try:
        yield made
    finally:
        made.stop()


def test_network_overhead_keeps_pods_near_those_they_depend_on(stage: Stage) -> None:
    stage.install("NetworkOverhead", weight=100)
    stage.apply(
        objects.node("near", labels={REGION: "r", ZONE: "z1"}),
        objects.node("far", labels={REGION: "r", ZONE: "z2"}),
        app_group(needs={"cart": [("db", 5)]}),
        topology({("z1", "z2"): 10, ("z2", "z1"): 10}),
        made_pod("db", cpu="2", labels={GROUP: "shop", WORKLOAD: "db"}, nodeName="near"),
    )
    stage.start()
    cart = {GROUP: "shop", WORKLOAD: "cart"}
    stage.pod("cart", labels=cart)
    assert stage.wait_bound("cart") == "near"
    stage.pod("no-member")
    assert stage.wait_bound("no-member") == "far"
    stage.kubectl("cordon", "near")
    stage.pod("late", labels=cart)
    refusal = (
        "1 Node far does not meet several network requirements from Workload dependencies: Satisfied: 0 Violated: 1"
    )
    assert refusal in stage.wait_refused("late")
    cheaper = json.dumps({"spec": topology({("z2", "z1"): 5})["spec"]})
    stage.kubectl("patch", "networktopology", "nt-default", "--type=merge", f"--patch={cheaper}")
    assert stage.wait_bound("late") == "far"


def test_topological_sort_takes_pods_in_the_order_of_their_group(stage: Stage) -> None:
    stage.install("TopologicalSort", without=("PrioritySort",))
    stage.apply(objects.node("two-places", pods="2"), app_group(order=("web", "db", "cart")))
    assert "web" in stage.kubectl("get", "ag", "shop", "-o", "jsonpath={.status.topologyOrder}")
    for name in ("cart", "db", "web"):
        stage.pod(name, labels={GROUP: "shop", WORKLOAD: name})
    stage.start()
    assert "1 Too many pods" in stage.wait_refused("cart")
    assert stage.wait_bound("web") == stage.wait_bound("db") == "two-places"


def test_tenant_isolation_keeps_pods_in_the_pool_of_their_tenant(stage: Stage) -> None:
    stage.install("TenantIsolation", {"namespaceLabel": "tenant"})
    stage.apply(objects.node("pool-a", cpu="2", labels={"tenant": "a"}), objects.node("pool-b", labels={"tenant": "b"}))
    for tenant in ("a", "c"):
        stage.apply(objects.namespace(f"team-{tenant}", {"tenant": tenant}))
    stage.start()
    stage.pod("p", namespace="team-a")
    assert stage.wait_bound("p", "team-a") == "pool-a"
    stage.pod("p", namespace="team-c")
    assert "2 node(s) were not in the pool of the tenant" in stage.wait_refused("p", "team-c")
    stage.kubectl("label", "--overwrite", "node", "pool-b", "tenant=c")
    assert stage.wait_bound("p", "team-c") == "pool-b"


def test_app_affinity_limits_the_pods_of_an_application_per_node(stage: Stage) -> None:
    stage.install("AppAffinity", {"limits": [{"maxPods": 1}]})
    stage.apply(objects.node("n1"), objects.node("n2"))
    stage.start()
    for number in (0, 1):
        stage.pod(f"web-{number}", labels={"AppID": "web"})
    nodes = [stage.wait_bound(f"web-{number}") for number in (0, 1)]
    assert sorted(nodes) == ["n1", "n2"]
    stage.pod("web-2", labels={"AppID": "web"})
    refusal = "2 node(s) had 1 pods of application web per kubernetes.io/hostname"
    assert refusal in stage.wait_refused("web-2")
    stage.kubectl("delete", "pod", "web-0")
    assert stage.wait_bound("web-2") == nodes[0]


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SECCOMP_DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": DEFINITION,
    "metadata": {"name": f"{SECCOMP_PROFILES.plural}.{SECCOMP_PROFILES.group}"},
    "spec": {
        "group": SECCOMP_PROFILES.group,
        "scope": "Namespaced",
        "names": {"kind": SECCOMP_PROFILES.kind, "plural": SECCOMP_PROFILES.plural},
        "versions": [
            {
                "name": SECCOMP_PROFILES.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING}}},
            }
        ],
    },
}
"""The operator's own is longer."""


def seccomp_profile(name: str, *calls: str) -> Json:
    allowed = {"action": "SCMP_ACT_ALLOW", "names": [*calls]}
    header = {"apiVersion": SECCOMP_PROFILES.api_version, "kind": SECCOMP_PROFILES.kind}
    return {**header, "metadata": {"name": name}, "spec": {"syscalls": [allowed]}}


def with_profile(name: str) -> Json:
    return {"seccompProfile": {"type": "Localhost", "localhostProfile": f"operator/default/{name}.json"}}


def test_sysched_prefers_the_node_whose_pods_use_the_same_system_calls(stage: Stage) -> None:
    stage.install("SySched", weight=100)
    stage.apply(SECCOMP_DEFINITION)
    stage.wait_established(SECCOMP_DEFINITION["metadata"]["name"])
    stage.apply(seccomp_profile("web", "read", "write"), seccomp_profile("debug", "read", "ptrace", "mount"))
    stage.apply(objects.node("alike"), objects.node("unlike"))
    stage.pod("running-web", nodeName="alike", cpu="3", securityContext=with_profile("web"))
    stage.pod("running-debug", nodeName="unlike", securityContext=with_profile("debug"))
    with StandIn(stage.world.api):
        running = ("pod/running-web", "pod/running-debug")
        stage.kubectl("wait", "--for=jsonpath={.status.phase}=Running", *running, "--timeout=20s")
        stage.start()
        stage.pod("web", securityContext=with_profile("web"))
        assert stage.wait_bound("web") == "alike"


def test_preemption_toleration_protects_the_pods_of_a_priority_class(stage: Stage) -> None:
    """The protected pod has the lowest priority, so that otherwise it would be the victim."""
    stage.install("PreemptionToleration", without=("DefaultPreemption",))
    guarded = objects.priority_class("guarded", 1)
    guarded["metadata"]["annotations"] = {MINIMUM: "10000", SECONDS: "-1"}
    stage.apply(guarded, objects.priority_class("low", 5), objects.priority_class("urgent", 1000))
    stage.start()
    for name in ("guarded", "low"):
        stage.apply(objects.node(f"with-{name}", cpu="2"))
        stage.pod(name, cpu="1500m", priorityClassName=name)
        assert stage.wait_bound(name) == f"with-{name}"
    with StandIn(stage.world.api):
        stage.pod("urgent-0", cpu="1500m", priorityClassName="urgent")
        assert stage.wait_bound("urgent-0") == "with-low"
        assert stage.wait_bound("guarded") == "with-guarded"
        stage.kubectl("annotate", "--overwrite", "priorityclass", "guarded", f"{SECONDS}=0")
        stage.pod("urgent-1", cpu="1500m", priorityClassName="urgent")
        assert stage.wait_bound("urgent-1") == "with-guarded"


def test_gpu_share_hands_out_parts_of_a_card(stage: Stage) -> None:
    stage.install("GpuShare")
    stage.apply(objects.node("gpu", extended={GPU_COUNT: "1", GPU_MILLI: "1000"}), objects.node("none", cpu="32"))
    stage.start()
    half = {GPU_MILLI: "500"}
    for number in (0, 1):
        stage.pod(f"half-{number}", annotations=half)
        assert stage.wait_bound(f"half-{number}") == "gpu"
    index = "jsonpath={.metadata.annotations." + GPU_INDEX.replace(".", r"\.") + "}"
    assert stage.kubectl("get", "pod", "half-0", "-o", index) == "0"
    stage.pod("half-2", annotations=half)
    assert "1 node(s) had too few GPUs with 500 of 1000 milli free" in stage.wait_refused("half-2")
    stage.kubectl("delete", "pod", "half-0")
    assert stage.wait_bound("half-2") == "gpu"


HALF = {GPU_MILLI: "500"}


@pytest.mark.parametrize(
    ("policy", "first", "second"),
    [
        ("FGD", HALF, HALF),
        ("BestFit", HALF, HALF),
        ("DotProduct", {GPU_COUNT: "6", GPU_MILLI: "1000"}, {GPU_COUNT: "2", GPU_MILLI: "1000"}),
        ("GpuPacking", HALF, HALF),
        ("GpuClustering", HALF, HALF),
        ("GpuLeastFree", HALF, HALF),
    ],
)
def test_policies_of_gpus_fill_nodes_that_are_in_use(
    stage: Stage, policy: str, first: dict[str, str], second: dict[str, str]
) -> None:
    """Where the default plugins would take the idle node."""
    typical = {"typicalPods": [{"cpu": 1, "gpuMilli": 500}, {"cpu": 1, "gpuMilli": 1000}]}
    stage.install(policy, typical if policy == "FGD" else None, weight=100, beside=("GpuShare",))
    cards = {GPU_COUNT: "8", GPU_MILLI: "8000"}
    stage.apply(objects.node("idle", extended=cards), objects.node("in-use", extended=cards))
    stage.start()
    stage.pod("first", annotations=first, cpu="1", nodeSelector={"kubernetes.io/hostname": "in-use"})
    assert stage.wait_bound("first") == "in-use"
    stage.pod("second", annotations=second, cpu="1")
    assert stage.wait_bound("second") == "in-use"
