"""Snapshots with hashed names: no name is in the file, and questions have the same answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage import snapshots
from moorage.api.resources import NODES, PODS, Unstructured, custom
from moorage.app.configuration import configure
from moorage.app.offline import question_engine
from moorage.cli.root import app
from moorage.explain.explanation import explain
from moorage.explain.judging import Judge
from moorage.explain.what_if import ClusterCopy
from moorage.snapshots.anonymize import hash_names
from moorage.snapshots.cluster import ClusterObjects
from tests.cli.running import runner

SALT = "pepper"
GROUPS = custom("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
SECRET = (
    "oak", "elm", "ash", "team-red", "team-blue", "ledger", "payroll", "archive", "disk-oak", "keep-local",
    "urgent", "budget-one", "invoices", "10.1.2.3", "machine-7", "oak.corp",
)  # fmt: skip
"""Texts of which none may be in the file."""
CLUSTER = """
namespaces:
- {metadata: {name: team-red, labels: {kubernetes.io/metadata.name: team-red, tier: gold}}}
- {metadata: {name: team-blue, labels: {kubernetes.io/metadata.name: team-blue}}}
nodes:
- &oak
  metadata: {name: oak, labels: {kubernetes.io/hostname: oak.corp, topology.kubernetes.io/zone: eu-1, cards: "4"}}
  spec: {providerID: machine-7}
  status:
    allocatable: {cpu: "4", memory: 8Gi, pods: "10"}
    addresses: [{type: InternalIP, address: 10.1.2.3}]
    nodeInfo: {machineID: machine-7}
- metadata: {name: elm, labels: {kubernetes.io/hostname: elm, topology.kubernetes.io/zone: eu-1, cards: "8"}}
  spec: {taints: [{key: gpu, value: "true", effect: NoSchedule}]}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
- metadata: {name: ash, labels: {kubernetes.io/hostname: ash, topology.kubernetes.io/zone: eu-2}}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
storageClasses:
- {metadata: {name: keep-local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}
priorityClasses:
- {metadata: {name: urgent}, value: 100}
pvs:
- metadata: {name: disk-oak}
  spec:
    capacity: {storage: 1Gi}
    accessModes: [ReadWriteOnce]
    storageClassName: keep-local
    claimRef: {kind: PersistentVolumeClaim, namespace: team-red, name: archive, uid: u-archive}
    nodeAffinity:
      required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [oak.corp]}]}]}
    local: {path: /mnt}
  status: {phase: Bound}
pvcs:
- metadata: {name: archive, namespace: team-red, uid: u-archive, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
  spec: {volumeName: disk-oak, storageClassName: keep-local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  status: {phase: Bound}
- metadata: {name: payroll-1-scratch, namespace: team-red, uid: u-scratch}
  spec: {storageClassName: keep-local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  status: {phase: Pending}
services:
- {metadata: {name: ledger, namespace: team-red}, spec: {selector: {app: ledger}}}
replicaSets:
- metadata: {name: ledger-5d8f, namespace: team-red, uid: u-rs}
  spec: {replicas: 3, selector: {matchLabels: {app: ledger}}}
pdbs:
- metadata: {name: budget-one, namespace: team-red}
  spec: {selector: {matchExpressions: [{key: app, operator: In, values: [ledger]}]}}
  status: {disruptionsAllowed: 1}
pods:
- metadata: {name: ledger-1, namespace: team-red, uid: p1, generateName: ledger-, labels: {app: ledger}, ownerReferences: &rs [{apiVersion: apps/v1, kind: ReplicaSet, name: ledger-5d8f, uid: u-rs, controller: true}]}
  spec: {nodeName: oak, containers: [&one {name: c, resources: {requests: {cpu: "1"}}}]}
  status: {phase: Running, hostIP: 10.1.2.3, conditions: [{type: Ready, status: "True", message: on oak}]}
- metadata: {name: ledger-2, namespace: team-red, uid: p2, labels: {app: ledger}, ownerReferences: *rs}
  spec: {nodeName: ash, containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
  status: {phase: Running}
- metadata: {name: invoices, namespace: team-blue, uid: p3, labels: {app: invoices}}
  spec: {nodeName: elm, priority: 5, containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
  status: {phase: Running}
- metadata: {name: by-hostname, namespace: team-red, uid: q1}
  spec: {nodeSelector: {kubernetes.io/hostname: elm}, containers: [*one]}
- metadata: {name: by-field, namespace: team-red, uid: q2}
  spec:
    containers: [{name: c, resources: {requests: {cpu: "3500m"}}}]
    affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [oak]}]}]}}}
- metadata: {name: by-number, namespace: team-red, uid: q3}
  spec:
    containers: [*one]
    affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: cards, operator: Gt, values: ["5"]}]}]}}}
- metadata: {name: away-from-ledger, namespace: team-blue, uid: q4}
  spec:
    containers: [*one]
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, namespaces: [team-red], labelSelector: {matchLabels: {app: ledger}}}]}}
- metadata: {name: near-red, namespace: team-blue, uid: q5}
  spec:
    containers: [{name: c, resources: {requests: {cpu: "5"}}}]
    affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-red}}, labelSelector: {matchLabels: {app: ledger}}}]}}
- metadata: {name: with-disk, namespace: team-red, uid: q6}
  spec: {priority: 1000, priorityClassName: urgent, containers: [{name: c, resources: {requests: {cpu: "4"}}}], volumes: [{name: v, persistentVolumeClaim: {claimName: archive}}]}
- metadata: {name: payroll-1, namespace: team-red, uid: q7}
  spec: {containers: [*one], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: keep-local}}}}]}
- metadata: {name: missing-claim, namespace: team-red, uid: q8}
  spec: {containers: [*one], volumes: [{name: v, persistentVolumeClaim: {claimName: payroll}}]}
- metadata: {name: spread, namespace: team-red, uid: q9, labels: {app: ledger}, ownerReferences: *rs}
  spec: {containers: [*one], topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: ledger}}}]}
moorage: {namespace: team-red}
"""  # noqa: E501 (objects are read by the line)


HUGE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "huge"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100"}}}]},
}


@pytest.fixture
def plain(tmp_path) -> ClusterObjects:
    file = tmp_path / "plain.yaml"
    file.write_text(CLUSTER)
    return snapshots.load(file)


@pytest.fixture
def hashed(tmp_path, plain) -> Path:
    path: Path = tmp_path / "hashed.json"
    snapshots.save(plain, path, taken="", salt=SALT)
    return path


@pytest.fixture
def undone(plain) -> Any:
    """Any answer about the hashed cluster, with the names of the plain one."""
    objects = {kind: msgspec.to_builtins(items) for kind, items in plain.objects.items()}
    _, names = hash_names(objects, SALT)

    def undo(value: Any) -> Any:
        text = json.dumps(value)
        for name, hashed in names.items():
            text = text.replace(hashed, name)
        return json.loads(text)

    return undo


def unordered(value: Any) -> Any:
    """Lists of names are sorted, and hashes sort otherwise."""
    if isinstance(value, dict):
        return {key: unordered(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(unordered, value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def explained(cluster: ClusterObjects) -> list[Any]:
    """Remedies without the objects that they change: fields are missing there."""
    loaded = question_engine(configure(discover=False), cluster.changes())
    pending = [pod for pod in cluster.objects[PODS] if not pod.spec.node_name]
    found = [asyncio.run(explain(Judge.of(loaded, pod), pod)).to_dict() for pod in pending]
    for remedy in (each for answer in found for each in answer["remedies"]):
        del remedy["pod"], remedy["changes"]
    return found


def test_no_name_is_in_the_file(hashed):
    text = hashed.read_text()
    assert [name for name in SECRET if name in text] == []
    for kept in ("eu-1", "topology.kubernetes.io/zone", "kubernetes.io/no-provisioner", "tier", "gold"):
        assert kept in text


def test_explain_gives_the_same_answers(plain, hashed, undone):
    expected = explained(plain)
    found = explained(snapshots.load(hashed))
    assert len(expected) == 9
    for one, other in zip(expected, undone(found), strict=True):
        assert unordered(other) == unordered(one)
    texts = json.dumps(expected)
    for reason in ("Insufficient cpu", "untolerated taint", "node affinity", "anti-affinity", "not found"):
        assert reason in texts  # the questions are of all kinds


def test_what_if_gives_the_same_answers(plain, hashed, undone):
    outcomes = []
    for cluster in (plain, snapshots.load(hashed)):
        with ClusterCopy(cluster, configure(discover=False)) as copy:
            copy.drain(cluster.objects[NODES][2].name)
            copy.add_nodes(3, cluster.objects[NODES][0].name)
            copy.add([HUGE])
            outcomes.append(copy.settle().to_dict())
    expected, found = outcomes
    assert expected["placed"]
    assert expected["pending"]
    assert expected["preempted"]
    assert expected["moved"]
    assert unordered(undone(found)) == unordered(expected)


def test_the_namespace_of_the_credentials_is_hashed_and_that_of_every_cluster_is_not(tmp_path, plain, hashed):
    assert snapshots.load(hashed).namespace == plain_hash("team-red")
    snapshots.save(ClusterObjects(plain.objects), tmp_path / "d.json", taken="", salt=SALT)
    assert snapshots.load(tmp_path / "d.json").namespace == "default"


def plain_hash(name: str) -> str:
    _, names = hash_names({NODES: [{"metadata": {"name": name}}]}, SALT)
    return names[name]


def test_hashes_are_equal_with_one_salt_and_differ_with_another():
    objects = {NODES: [{"metadata": {"name": "oak"}}]}
    assert hash_names(objects, "a") == hash_names(objects, "a")
    assert hash_names(objects, "a")[1]["oak"] != hash_names(objects, "b")[1]["oak"]


def test_custom_objects_and_labels_that_name_them_stay_together(tmp_path):
    group = {"metadata": {"name": "train", "namespace": "ml"}, "spec": {"minMember": 2, "near": "oak", "mode": "Any"}}
    raw = Unstructured({"apiVersion": GROUPS.api_version, "kind": GROUPS.kind, **group})
    pod = {"metadata": {"name": "p", "namespace": "ml", "labels": {"scheduling.x-k8s.io/pod-group": "train"}}}
    objects = {GROUPS: [raw.raw], PODS: [pod], NODES: [{"metadata": {"name": "oak"}}]}
    made, names = hash_names(objects, SALT)
    assert made[PODS][0]["metadata"]["labels"] == {"scheduling.x-k8s.io/pod-group": names["train"]}
    assert made[GROUPS][0]["metadata"]["name"] == names["train"]
    assert made[GROUPS][0]["spec"] == {"minMember": 2, "near": names["oak"], "mode": "Any"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--hash-names", "--annotations"], "--hash-names and --annotations exclude each other"),
        (["--salt", "x"], "--salt needs --hash-names"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, says):
    result = runner.invoke(app, ["snapshot", *options])
    assert result.exit_code == 1
    assert says in " ".join(result.output.split())
