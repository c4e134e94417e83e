"""delete, scale, rollout, wait, cordon, drain, taint: how users run things."""

from __future__ import annotations

import re

import pytest

from tests.kubectl.manifests import CONFIG_MAP, DEPLOYMENT, PICKY_POD, POD
from tests.kubectl.runner import Kubectl

pytestmark = pytest.mark.slow

BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: web}}
"""


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    return kubectl


def names(kubectl: Kubectl, *what: str) -> list[str]:
    return kubectl("get", *what, "-o", "name").split()


# delete


def test_delete_and_all_that_belongs_to_it(web):
    assert web("delete", "deployment", "web").startswith('deployment.apps "web" deleted')
    web.until(lambda out: not out, "get", "pods,rs", "-o", "name")


def test_delete_with_orphans(web):
    web("delete", "deployment", "web", "--cascade=orphan")
    assert len(names(web, "rs")) == 1
    assert len(names(web, "pods")) == 2
    assert web("get", "rs", "-o", "jsonpath={.items[0].metadata.ownerReferences}") == ""
    web("delete", "rs", "--all", "--cascade=foreground")
    assert names(web, "pods") == []


def test_delete_all_of_a_kind_and_by_label(kubectl):
    for name in ("a", "b", "c"):
        kubectl("create", "configmap", name)
    kubectl("label", "configmap", "a", "pick=me")
    assert '"a" deleted' in kubectl("delete", "configmap", "-l", "pick=me")
    out = kubectl("delete", "configmap", "--all")
    assert '"b" deleted' in out
    assert '"c" deleted' in out


def test_delete_waits_for_finalizers(kubectl):
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP.replace("name: settings", "name: s, finalizers: [example.io/wait]"))
    kubectl("delete", "configmap", "s", "--wait=false")
    assert kubectl("get", "cm", "s", "-o", "jsonpath={.metadata.deletionTimestamp}")
    kubectl("patch", "cm", "s", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "NotFound" in kubectl.refused("get", "configmap", "s")


@pytest.mark.parametrize("options", [[], ["--grace-period=1"], ["--now"], ["--force"]], ids=str)
def test_delete_a_running_pod(kubectl, options):
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=20s")
    assert 'pod "one"' in kubectl("delete", "pod", "one", *options)
    assert "NotFound" in kubectl.refused("get", "pod", "one")


def test_delete_what_is_not_there(kubectl):
    assert 'pods "none" not found' in kubectl.refused("delete", "pod", "none")
    assert kubectl("delete", "pod", "none", "--ignore-not-found") == ""


def test_delete_dry_run(kubectl):
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP)
    assert "(server dry run)" in kubectl("delete", "cm", "settings", "--dry-run=server")
    assert names(kubectl, "cm/settings") == ["configmap/settings"]


def test_delete_of_a_namespace_takes_everything(admin):
    admin("create", "namespace", "short")
    admin.within("short")("apply", "-f", "-", stdin=DEPLOYMENT)
    admin("delete", "namespace", "short", "--timeout=20s")
    assert admin.run("get", "all", "-n", "short").out == ""


# scale and rollout


def test_scale(web):
    assert web("scale", "deployment", "web", "--replicas=3") == "deployment.apps/web scaled\n"
    web("rollout", "status", "deployment/web", "--timeout=20s")
    assert web.run("get", "deploy").rows()[1][1] == "3/3"
    assert "expected replicas" in web.refused("scale", "deploy", "web", "--current-replicas=9", "--replicas=1").lower()
    web("scale", "deployment/web", "--replicas=0")
    web.until(lambda out: not out, "get", "pods", "-o", "name")


def test_rollouts(web):
    first = names(web, "rs")
    assert web("rollout", "restart", "deployment/web") == "deployment.apps/web restarted\n"
    assert web("rollout", "status", "deployment/web", "--timeout=20s").endswith("successfully rolled out\n")
    assert len(names(web, "rs")) == 2
    web("set", "image", "deployment/web", "main=web:3")
    web("rollout", "status", "deployment/web", "--timeout=20s")
    history = web("rollout", "history", "deployment/web").split()
    assert history[history.index("CHANGE-CAUSE") + 1 :: 2] == ["1", "2", "3"]
    assert "web:3" in web("rollout", "history", "deployment/web", "--revision=3")
    assert web("rollout", "undo", "deployment/web", "--to-revision=1") == "deployment.apps/web rolled back\n"
    web("rollout", "status", "deployment/web", "--timeout=20s")
    assert web("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}") == "web:1"
    live = web("get", "rs", "-o", "jsonpath={.items[?(@.status.replicas==2)].metadata.name}")
    assert [f"replicaset.apps/{live}"] == first


def test_pause_and_resume(web):
    assert web("rollout", "pause", "deployment/web") == "deployment.apps/web paused\n"
    web("set", "image", "deployment/web", "main=web:4")
    assert len(names(web, "rs")) == 1
    assert web("rollout", "resume", "deployment/web") == "deployment.apps/web resumed\n"
    web("rollout", "status", "deployment/web", "--timeout=20s")
    assert len(names(web, "rs")) == 2


def test_wait(web):
    assert "condition met" in web("wait", "--for=condition=Available", "deployment/web", "--timeout=20s")
    assert "condition met" in web("wait", "--for=jsonpath={.status.readyReplicas}=2", "deploy/web", "--timeout=20s")
    assert "timed out" in web.refused("wait", "--for=condition=Nothing", "deploy/web", "--timeout=1s")
    pod = names(web, "pods")[0]
    web("delete", pod, "--wait=false")
    web("wait", "--for=delete", pod, "--timeout=20s")
    assert pod not in names(web, "pods")


def test_jobs_complete(kubectl):
    kubectl("create", "job", "sum", "--image=web")
    assert "condition met" in kubectl("wait", "--for=condition=Complete", "job/sum", "--timeout=20s")
    assert kubectl.run("get", "jobs").rows()[1][:3] == ["sum", "Complete", "1/1"]
    assert kubectl.run("get", "pods").rows()[1][1:3] == ["0/1", "Completed"]


# nodes


def test_cordon_and_uncordon(admin):
    assert admin("cordon", "node-2") == "node/node-2 cordoned\n"
    assert admin.run("get", "node", "node-2").rows()[1][1] == "Ready,SchedulingDisabled"
    assert admin("cordon", "node-2") == "node/node-2 already cordoned\n"
    assert admin("uncordon", "node-2") == "node/node-2 uncordoned\n"
    assert admin.run("get", "node", "node-2").rows()[1][1] == "Ready"


def test_taint(admin):
    assert admin("taint", "node", "node-2", "gpu=yes:NoSchedule") == "node/node-2 tainted\n"
    assert "gpu=yes:NoSchedule" in admin("describe", "node", "node-2")
    assert "already has gpu taint" in admin.refused("taint", "node", "node-2", "gpu=no:NoSchedule")
    assert admin("taint", "node", "node-2", "gpu:NoSchedule-") == "node/node-2 untainted\n"
    assert "gpu" not in admin("describe", "node", "node-2")


def test_drain(web, admin):
    node = web("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")
    try:
        out = admin("drain", node, "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=20s")
        assert f"evicting pod {web.namespace}/web-" in out + admin.namespace or "evicted" in out
        assert out.endswith(f"node/{node} drained\n")
        web("rollout", "status", "deployment/web", "--timeout=20s")
        assert node not in web("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}")
    finally:
        admin("uncordon", node)


def test_drain_respects_budgets(web, admin):
    web("apply", "-f", "-", stdin=BUDGET)
    web.until(lambda out: out == "2", "get", "pdb", "web", "-o", "jsonpath={.status.currentHealthy}")
    node = web("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")
    try:
        refused = admin.refused("drain", node, "--ignore-daemonsets", "--force", "--timeout=2s")
        assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    finally:
        admin("uncordon", node)
    assert web.run("get", "pdb").rows()[1][:4] == ["web", "N/A", "0", "0"]


def test_a_pod_is_scheduled_as_soon_as_a_node_fits(kubectl, admin):
    kubectl("apply", "-f", "-", stdin=PICKY_POD)
    kubectl.until(lambda out: "FailedScheduling" in out, "events", "--for", "pod/picky")
    admin("label", "node", "node-1", "disk=ssd")
    try:
        kubectl("wait", "--for=condition=Ready", "pod/picky", "--timeout=20s")
        assert kubectl.run("get", "pod", "picky", "-o", "wide").rows()[1][6] == "node-1"
    finally:
        admin("label", "node", "node-1", "disk-")


def test_connections_to_a_pod_say_that_it_is_simulated(kubectl, tmp_path):
    kubectl("run", "plain", "--image=x")
    kubectl("wait", "--for=condition=Ready", "pod/plain", "--timeout=20s")
    for command in (
        ("exec", "plain", "--", "ls"),
        ("attach", "plain"),
        ("cp", "plain:/etc/hosts", str(tmp_path / "hosts")),
        ("port-forward", "pod/plain", ":80"),
    ):
        assert f"Pod {kubectl.namespace}/plain is simulated: no process runs" in kubectl.refused(*command), command


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_pod_to_attach_to_ends(kubectl, policy):
    """kubectl waits for the end of a pod that is not restarted, deletes it, and does not wait until it is gone."""
    kubectl("run", "once", "--image=x", "--rm", "--stdin", f"--restart={policy}", "--", "echo")
    kubectl("wait", "--for=delete", "pod/once", "--timeout=20s")


def test_a_claim_without_a_class_gets_a_volume(kubectl):
    assert re.search(r"^standard \(default\)\s", kubectl("get", "storageclass"), re.MULTILINE)
    kubectl("apply", "-f", "-", stdin=CLAIM_AND_POD)
    kubectl("wait", "--for=condition=Ready", "pod/user", "--timeout=20s")
    shown = kubectl("get", "pvc", "data", "--output=jsonpath={.spec.storageClassName} {.status.phase}")
    assert shown == "standard Bound"


CLAIM_AND_POD = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  containers: [{name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""
