"""get, describe, events, logs, top: what users look at."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.kubectl.cluster import NODES
from tests.kubectl.manifests import CONFIG_MAP, DEPLOYMENT, PICKY_POD, POD
from tests.kubectl.runner import Kubectl

pytestmark = pytest.mark.slow


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    """A namespace in which a Deployment runs."""
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    return kubectl


def test_nodes(admin):
    header, *rows = admin.run("get", "nodes", "--selector", "kubernetes.io/os=linux").rows()
    assert header == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [row[0] for row in rows] == list(NODES)
    assert all(row[2] == "<none>" and row[4].startswith("v1.") for row in rows)
    wide = admin.run("get", "nodes", "-o", "wide").rows()[0]
    assert wide[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]


def test_pods_plain_and_wide(web):
    header, *rows = web.run("get", "pods").rows()
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[1:4] for row in rows] == [["1/1", "Running", "0"]] * 2
    header, *rows = web.run("get", "pods", "-o", "wide").rows()
    assert header[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert all(row[6] in NODES and row[7:] == ["<none>", "<none>"] for row in rows)


def test_the_kinds_of_a_deployment(web):
    assert web.run("get", "deployments").rows()[1][:4] == ["web", "2/2", "2", "2"]
    assert web.run("get", "rs").rows()[1][1:4] == ["2", "2", "2"]
    wide = web.run("get", "deploy", "-o", "wide").rows()
    assert wide[0][5:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1][5:] == ["main", "web:1", "app=web"]
    everything = web("get", "all")
    for kind in ("pod/web-", "deployment.apps/web", "replicaset.apps/web-"):
        assert kind in everything


def test_other_forms_of_output(web):
    deployment = yaml.safe_load(web("get", "deployment", "web", "-o", "yaml"))
    assert (deployment["apiVersion"], deployment["kind"]) == ("apps/v1", "Deployment")
    assert deployment == json.loads(web("get", "deployment", "web", "-o", "json"))
    pods = json.loads(web("get", "pods", "-o", "json"))
    assert pods["kind"] == "List"
    assert len(pods["items"]) == 2
    assert web("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "2"
    assert web("get", "deploy", "web", "-o", "name") == "deployment.apps/web\n"
    assert web("get", "deploy", "-o", "custom-columns=N:.metadata.name", "--no-headers") == "web\n"
    assert web("get", "deploy", "web", "-o", "go-template={{.metadata.name}}") == "web"


def test_selectors(web):
    assert len(web.run("get", "pods", "-l", "app=web").rows()) == 3
    assert web.run("get", "pods", "-l", "app!=web").err == f"No resources found in {web.namespace} namespace.\n"
    assert len(web.run("get", "pods", "-l", "app in (web,db)", "--field-selector", "status.phase=Running").rows()) == 3
    assert web.run("get", "pods", "--field-selector", "spec.nodeName=none").out == ""
    assert "field label not supported: spec.color" in web.refused("get", "pods", "--field-selector", "spec.color=x")
    assert "a=b=c" in web.refused("get", "pods", "-l", "a=b=c")


def test_labels_as_columns(web):
    header, row = web.run("get", "deploy", "-L", "team", "--show-labels").rows()
    assert header[-2:] == ["TEAM", "LABELS"]
    assert row[-2:] == ["blue", "team=blue"]


def test_all_namespaces(web):
    rows = web.run("get", "pods", "-A").rows()
    assert rows[0][:2] == ["NAMESPACE", "NAME"]
    assert [row[0] for row in rows].count(web.namespace) == 2


def test_watch(kubectl):
    with kubectl.start("get", "configmaps", "--watch", "--output-watch-events") as watch:
        assert watch.stdout is not None
        kubectl("create", "configmap", "late", "--from-literal=a=b")
        seen = []
        for line in watch.stdout:
            seen.append(line.split()[:2])
            if line.split()[1] == "late" and line.startswith("ADDED"):
                kubectl("delete", "configmap", "late")
            if line.startswith("DELETED"):
                break
        watch.terminate()
    assert ["EVENT", "NAME"] in seen
    assert ["ADDED", "late"] in seen
    assert ["DELETED", "late"] in seen


def test_what_is_not_there(kubectl):
    assert kubectl.refused("get", "pod", "none") == 'Error from server (NotFound): pods "none" not found\n'
    assert 'the server doesn\'t have a resource type "gadgets"' in kubectl.refused("get", "gadgets")
    assert kubectl.run("get", "pods").err == f"No resources found in {kubectl.namespace} namespace.\n"
    assert kubectl("get", "pod", "none", "--ignore-not-found") == ""


def test_describe_pod(kubectl):
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=20s")
    described = kubectl.until(lambda out: "Started" in out, "describe", "pod", "one")
    for line in (
        r"^Name:\s+one$",
        rf"^Namespace:\s+{kubectl.namespace}$",
        r"^Priority:\s+0$",
        r"^Node:\s+node-\d/",
        r"^Labels:\s+app=one$",
        r"^Status:\s+Running$",
        r"^  PodScheduled\s+True",
        r"^QoS Class:\s+BestEffort$",
        rf"Scheduled\s.*default-scheduler\s+Successfully assigned {kubectl.namespace}/one to node-\d$",
    ):
        assert re.search(line, described, re.MULTILINE), f"{line} is not in:\n{described}"


def test_describe_tells_why_a_pod_is_pending(kubectl):
    kubectl("apply", "-f", "-", stdin=PICKY_POD)
    described = kubectl.until(lambda out: "FailedScheduling" in out, "describe", "pod", "picky")
    assert re.search(
        r"Warning\s+FailedScheduling\s.*default-scheduler\s+0/3 nodes are available: "
        r"3 node\(s\) didn't match Pod's node affinity/selector\.",
        described,
    )
    assert kubectl.run("get", "pod", "picky").rows()[1][1:3] == ["0/1", "Pending"]


def test_describe_node(admin):
    described = admin("describe", "node", "node-0")
    for line in (r"^Name:\s+node-0$", r"^Taints:\s+<none>$", r"^  Ready\s+True", r"^  pods:\s+110$"):
        assert re.search(line, described, re.MULTILINE), f"{line} is not in:\n{described}"
    assert "Non-terminated Pods:" in described
    assert "Allocated resources:" in described


def test_describe_other_kinds(web):
    web("apply", "-f", "-", stdin=CONFIG_MAP)
    deployment = web("describe", "deployment", "web")
    assert re.search(r"^Replicas:\s+2 desired \| 2 updated \| 2 total \| 2 available", deployment, re.MULTILINE)
    assert re.search(r"^StrategyType:\s+RollingUpdate$", deployment, re.MULTILINE)
    assert "ScalingReplicaSet" in deployment
    assert re.search(r"^Replicas:\s+2 current / 2 desired$", web("describe", "rs"), re.MULTILINE)
    assert "mode:\n----\nfast\n" in web("describe", "configmap", "settings")
    assert re.search(r"^Status:\s+Active$", web("describe", "namespace", web.namespace), re.MULTILINE)


def test_describe_services_and_ingresses(web):
    web("expose", "deployment", "web", "--port=80", "--target-port=8080")
    web.until(lambda out: "10." in out, "get", "endpointslices")
    described = web.until(lambda out: ":8080" in out, "describe", "service", "web")
    assert re.search(r"^Endpoints:\s+10\.\S+:8080,10\.\S+:8080$", described, re.MULTILINE), described
    web("create", "ingress", "front", "--rule=a.example.com/*=web:80")
    assert re.search(
        r"a\.example\.com\s+/\s+web:80 \(10\.\S+:8080", re.sub("\n", " ", web("describe", "ingress", "front"))
    )


def test_events_by_both_commands(web):
    for command in (["get", "events"], ["events"]):
        out = web(*command)
        assert "SuccessfulCreate" in out
        assert "Scheduled" in out
    only = web("get", "events", "--field-selector", "involvedObject.kind=Deployment")
    assert "ScalingReplicaSet" in only
    assert "SuccessfulCreate" not in only
    assert "SuccessfulCreate" in web("get", "events.events.k8s.io")
    for field in (".lastTimestamp", ".metadata.creationTimestamp"):
        assert "SuccessfulCreate" in web("get", "events", f"--sort-by={field}")
    assert "ScalingReplicaSet" in web("events", "--for", "deployment/web")
    assert "SuccessfulCreate" not in web("events", "--for", "deployment/web")


def test_logs_of_a_simulated_pod_say_that_there_are_none(kubectl):
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=20s")
    assert "is simulated: no process runs, so there is no log" in kubectl("logs", "one")


def test_top(web):
    header, *rows = web.run("top", "nodes").rows()
    assert header[:2] == ["NAME", "CPU(cores)"]
    assert [row[0] for row in rows] == list(NODES)
    assert all(re.fullmatch(r"\d+m", row[1]) for row in rows)
    header, *rows = web.run("top", "pods").rows()
    assert header == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert len(rows) == 2
    containers = web.run("top", "pods", "--containers", "-l", "app=web").rows()
    assert containers[1][1] == "main"
