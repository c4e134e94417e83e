"""What a user copies for a remedy: it applies the remedy, and no name of a tenant can become a command of its own."""

from __future__ import annotations

import json
import shlex

import pytest
import yaml
from msgspec.structs import replace

from moorage.api import decoding
from moorage.api.kubectl import kubectl, patch
from moorage.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, Unstructured
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS
from moorage.explain.commands import change_command, merge_patch, pod_yaml
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_affinity
from tests.explain.world import ask, load

HOSTILE = "x; rm -rf $HOME #'\""


@pytest.mark.parametrize("name", [HOSTILE, "--all", "a b", "$(id)", "x\ny"])
def test_a_name_stays_one_word(name):
    words = shlex.split(kubectl("delete", name, namespace=name))
    assert [word for word in words if word != "--"] == ["kubectl", "-n", name, "delete", name]
    assert ("--" in words) == name.startswith("-")
    assert shlex.split(patch(f"node/{name}", {"a": name}))[2:] == [
        f"node/{name}", "--type=merge", "-p", json.dumps({"a": name}, separators=(",", ":")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "options", "command"),
    [
        ({"unschedulable": True}, {}, "kubectl uncordon n"),
        ({"taints": ["a=b:NoSchedule"]}, {}, "kubectl taint node n a=b:NoSchedule-"),
        ({}, {"node_selector": {"disk": "ssd"}}, "kubectl label node/n disk=ssd"),
        ({"labels": {"disk": "hdd"}}, {"node_selector": {"disk": "ssd"}}, "kubectl label --overwrite node/n disk=ssd"),
    ],
)
def test_changes_of_nodes_have_the_usual_commands(node, options, command):
    pod = make_pod("p", **options)
    found = ask(load([make_node("n", **node)], [pod]), pod, remedies=10)
    assert command in [remedy.command for remedy in found.remedies]


def test_a_deletion_names_the_namespace():
    pod, busy = make_pod("p", cpu="4"), make_pod("busy", namespace="team", cpu="3", node="n")
    found = ask(load([make_node("n", cpu="4")], [pod, busy]), pod, remedies=10)
    assert "kubectl -n team delete pod/busy" in [remedy.command for remedy in found.remedies]


def test_other_changes_become_a_patch_of_what_differs():
    old = Unstructured({"metadata": {"name": "q", "namespace": "red"}, "spec": {"max": {"cpu": "2"}, "min": {}}})
    new = Unstructured({**old.raw, "spec": {"max": {"cpu": "3"}}})
    words = shlex.split(change_command((ELASTICQUOTAS, old, new)))
    assert words[:5] == ["kubectl", "-n", "red", "patch", "elasticquotas.scheduling.x-k8s.io/q"]
    assert json.loads(words[-1]) == {"spec": {"max": {"cpu": "3"}, "min": None}}


def test_a_new_object_is_a_manifest_and_a_new_node_is_not_for_kubectl():
    claim = decoding.convert(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "c", "namespace": "t"}})
    made = yaml.safe_load(change_command((PERSISTENT_VOLUME_CLAIMS, None, claim)))
    assert (made["apiVersion"], made["kind"], made["metadata"]["name"]) == ("v1", "PersistentVolumeClaim", "c")
    assert change_command((NODES, None, make_node("n"))) == ""


def test_the_patch_leads_from_the_old_to_the_new():
    old, new = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}, {"b": {"c": 3, "d": 2}, "e": [2], "f": 4}
    assert merge_patch(old, new) == {"a": None, "b": {"c": 3}, "e": [2], "f": 4}


def test_yaml_of_a_pod_has_only_what_differs():
    pod = make_pod("p", cpu="2", memory="1Gi", node_selector={"a": "b"}, affinity=make_affinity(nodes={"z": ["a"]}))
    more = replace(pod, spec=replace(pod.spec, node_selector={}, affinity=None))
    assert yaml.safe_load(pod_yaml(pod, more)) == {"spec": {"nodeSelector": None, "affinity": None}}
    assert pod_yaml(pod, pod) == ""


def test_yaml_of_a_container_names_it():
    pod = make_pod("p", cpu="4")
    found = ask(load([make_node("n", cpu="3")], [pod]), pod)
    [remedy] = [remedy for remedy in found.remedies if remedy.text == "Request at most 3 cpu"]
    [container] = yaml.safe_load(remedy.command)["spec"]["containers"]
    assert container == {"name": "main", "resources": {"requests": {"cpu": "3"}}}


def test_commands_are_in_the_data():
    pod = make_pod("p")
    [remedy] = ask(load([make_node("n", unschedulable=True)], [pod]), pod, remedies=1).to_dict()["remedies"]
    assert remedy["command"] == "kubectl uncordon n"
