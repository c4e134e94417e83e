"""`moorage evaluate` on a live API server: listed once, never written to."""

import json
from pathlib import Path
from typing import Any

import pytest

from moorage import snapshots
from moorage.api.resources import NODES, PODS
from moorage.cli.root import app
from moorage.snapshots.cluster import ClusterObjects
from moorage.testing import make_node
from tests.cli.running import runner
from tests.run.api_thread import ApiThread

POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "x"}]}}
CPU = {"requests": {"cpu": "3"}}


@pytest.fixture
def api(tmp_path):
    with ApiThread(tmp_path) as running:
        running.add_node("a")
        running.add_node("b")
        spec = {"nodeName": "a", "containers": [{"name": "c", "image": "x", "resources": CPU}]}
        running.request("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "old"}, "spec": spec})
        yield running


def pod(name: str, cpu: str = "2", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    return {**POD, "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def answers(*args: str, text: str = "") -> list[dict[str, Any]]:
    result = runner.invoke(app, ["evaluate", *args], input=text)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def versions(api: ApiThread) -> list[str]:
    lists = [api.request("GET", f"/api/v1/{plural}")["items"] for plural in ("pods", "nodes")]
    return [item["metadata"]["resourceVersion"] for items in lists for item in items]


def test_pods_of_a_file_are_judged_on_the_cluster_which_stays_as_it_is(api, tmp_path):
    before = versions(api)
    file = tmp_path / "pods.yaml"
    items = [pod("web"), pod("small", cpu="1")]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    web, small = answers("--kubeconfig", str(api.kubeconfig), "-f", str(file))
    assert (web["id"], web["feasible"]) == ("default/web", ["b"])
    assert (small["id"], small["feasible"]) == ("default/small", ["a", "b"])
    assert versions(api) == before


def test_one_preemption_does_not_change_what_the_next_pod_is_answered(api, tmp_path):
    file = tmp_path / "pods.yaml"
    only_a = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only_a]}}
    huge = pod("huge", cpu="4", priority=10, affinity={"nodeAffinity": required})
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [huge, huge]}))
    found = answers("--kubeconfig", str(api.kubeconfig), "--context", "test", "-f", str(file))
    assert [answer["preemption"] for answer in found] == [{"code": "Success", "node": "a", "victims": ["old"]}] * 2


def test_cases_bring_a_pod_and_arguments_alone(api):
    fit = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    lines = [
        {"id": 1, "pod": pod("p", "500m")},
        {"id": 2, "pod": pod("p", "500m"), "args": {"NodeResourcesFit": fit}},
        {"id": 3, "pod": pod("p"), "nodes": []},
    ]
    text = "\n".join(map(json.dumps, lines))
    least, most, bad = answers("--kubeconfig", str(api.kubeconfig), text=text)
    assert least["plugins"]["NodeResourcesFit"]["score"]["b"] > 50
    assert most["plugins"]["NodeResourcesFit"]["score"] == {"a": 87, "b": 12}
    assert bad["error"] == "input.nodes: the cluster is that of the API server; leave this out"


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--context", "none"), "none"),
        (("-f", "nowhere.yaml"), "the file nowhere.yaml cannot be read"),
        (("-f", "sa.yaml"), "the file sa.yaml has the ServiceAccount default/s: only pods are judged"),
        (("-f", "sa.yaml", "cases.jsonl"), "-f and the cases of cases.jsonl exclude each other"),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(api, args, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sa.yaml").write_text("{apiVersion: v1, kind: ServiceAccount, metadata: {name: s}}")
    result = runner.invoke(app, ["evaluate", "--kubeconfig", str(api.kubeconfig), *args], input="")
    assert result.exit_code == 1
    assert error in result.stderr


@pytest.fixture
def snapshot_file(tmp_path: Path) -> Path:
    objects = ClusterObjects({NODES: [make_node("a", cpu="1"), make_node("b", cpu="8")], PODS: []})
    snapshots.save(objects, tmp_path / "c.json", taken="2026-01-01T00:00:00Z")
    return tmp_path / "c.json"


def test_a_pod_is_judged_on_a_snapshot(snapshot_file, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(pod("p", cpu="4")))
    result = runner.invoke(app, ["evaluate", "--snapshot", str(snapshot_file), "-f", str(tmp_path / "p.json")])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["feasible"] == ["b"]


def test_a_snapshot_excludes_a_live_cluster(snapshot_file):
    result = runner.invoke(app, ["evaluate", "--snapshot", str(snapshot_file), "--context", "x"])
    assert (result.exit_code, "--snapshot excludes" in result.stderr) == (1, True)


def test_moorage_snapshot_replaces_no_file_unless_forced(snapshot_file):
    before = snapshot_file.read_bytes()
    result = runner.invoke(app, ["snapshot", str(snapshot_file), "--kubeconfig", "/none"])
    assert (result.exit_code, "exists; name another file, or" in result.stderr) == (1, True)
    result = runner.invoke(app, ["snapshot", str(snapshot_file), "--kubeconfig", "/none", "--force"])
    assert "exists;" not in result.stderr
    assert snapshot_file.read_bytes() == before
