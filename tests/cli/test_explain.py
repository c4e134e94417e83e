"""`moorage explain --snapshot` and `moorage what-if --snapshot`: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from moorage.api import decoding
from moorage.cli.root import app
from moorage.testing import make_node, make_pod
from tests.cli.running import runner

NODES = [make_node("cpu", cpu="4"), make_node("gpu", cpu="8", taints=["gpu=true:NoSchedule"])]
PODS = [
    make_pod("busy", cpu="3", node="cpu"),
    make_pod("train", cpu="2"),
    make_pod("small", cpu="500m"),
    make_pod("gated", gates=["quota"], cpu="9"),
    make_pod("foreign", scheduler="volcano", cpu="9"),
    make_pod("high", cpu="2", priority=100),
]
PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
"""


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    objects: dict[str, Any] = {"nodes": NODES, "pods": PODS}
    raw = {key: [decoding.to_builtins(obj) for obj in listed] for key, listed in objects.items()}
    (tmp_path / "cluster.json").write_text(json.dumps(raw))
    (tmp_path / "lax.yaml").write_text(PACKED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str) -> Result:
    return runner.invoke(app, [*args, "--snapshot", "cluster.json"], env={"COLUMNS": "160"})


def lines(result: Result) -> list[str]:
    return [line.rstrip() for line in result.stdout.splitlines()]


def test_a_pending_pod_has_message_refusals_and_remedies(snapshot):
    result = run("explain", "pod/train")
    assert result.exit_code == 3
    printed = lines(result)
    assert printed[0] == "default/train is pending: 0 of 2 nodes are feasible."
    assert printed[1] == "2 cpu requested; most free: 8 on gpu; 1 on cpu."
    assert printed[2].startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).")
    assert printed[3:9] == [
        "nodes  sole reason  plugin            reason",
        "1      1            TaintToleration   node(s) had untolerated taint(s)",
        "                                        taint gpu=true:NoSchedule",
        "1      1            NodeResourcesFit  Insufficient cpu",
        "                                        cpu: 2 requested, 1 free (1 short)",
        "",
    ]
    assert printed[9] == "What would help (each was tried on a copy of this cluster):"
    assert printed[10:18] == [
        "  - Tolerate taint gpu=true:NoSchedule. Makes 1 node feasible (gpu).",
        "      spec:",
        "        tolerations:",
        "        - key: gpu",
        "          operator: Equal",
        "          value: 'true'",
        "          effect: NoSchedule",
        "  - Request at most 1 cpu. Makes 1 node feasible (cpu).",
    ]


def test_a_pod_that_fits_has_scores(snapshot):
    result = run("explain", "small")
    assert result.exit_code == 0
    assert lines(result)[0] == "default/small can be scheduled: 1 of 2 nodes are feasible."
    assert "What would help" not in result.stdout


def test_a_running_pod_is_marked_in_the_scores(snapshot):
    printed = lines(run("explain", "po/busy"))
    assert printed[0] == "default/busy runs on cpu. If it were created now, 1 of 2 nodes would be feasible."
    assert any(line.startswith("cpu *") for line in printed)


def test_a_gated_pod_says_so(snapshot):
    result = run("explain", "gated")
    assert result.exit_code == 3
    assert lines(result)[:2] == [
        "default/gated is gated by the scheduling gate quota. The scheduler does not try it until it is removed.",
        "Without it, 0 of 2 nodes would be feasible.",
    ]


def test_a_pod_of_another_scheduler_says_which_profile_was_asked(snapshot):
    result = run("explain", "foreign")
    assert result.exit_code == 3
    printed = lines(result)
    assert printed[0] == "default/foreign waits for the scheduler volcano; default-scheduler does not schedule it."
    assert "No node has 9 cpu: the largest is gpu with 8." in printed
    assert printed[3] == "The pod names scheduler 'volcano'; profile 'default-scheduler' was asked instead."


def test_preemption_is_a_table_of_candidates(snapshot):
    printed = lines(run("explain", "high"))
    start = printed.index("Preemption would nominate the pod to cpu:")
    assert printed[start + 1].split() == ["node", "victims", "spared", "PDB", "violations"]
    assert printed[start + 2].split() == ["cpu", "default/busy", "0"]


def test_a_node_shows_every_refusal_or_that_there_is_none(snapshot):
    printed = lines(run("explain", "train", "--node", "gpu", "--remedies", "0"))
    assert printed[-3:] == [
        "gpu:",
        "  TaintToleration: node(s) had untolerated taint(s)",
        "    taint gpu=true:NoSchedule",
    ]
    assert "cpu: no plugin refuses it." in lines(run("explain", "small", "--node", "cpu"))


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_answer_as_data(snapshot, form):
    result = run("explain", "train", "-o", form)
    answer = json.loads(result.stdout) if form == "json" else yaml.safe_load(result.stdout)
    assert result.exit_code == 3
    assert (answer["pod"], answer["nodes"]) == ("default/train", {"total": 2, "feasible": 0})
    [cpu] = [group for group in answer["refusals"] if group["plugin"] == "NodeResourcesFit"]
    assert cpu["details"] == ["cpu: 2 requested, 1 free (1 short)"]


def test_another_configuration_gives_another_answer(snapshot):
    result = run("explain", "train", "--config", "lax.yaml")
    assert result.exit_code == 0
    assert lines(result)[0] == "default/train can be scheduled: 1 of 2 nodes are feasible."


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("absent",), "pod 'absent' does not exist in namespace 'default'"),
        (("train", "-n", "team"), "pod 'train' does not exist in namespace 'team'; found default/train"),
        (("node/cpu",), "node/cpu: only pods and their owners can be explained; write pod/NAME"),
        (("train", "--node", "absent"), "node 'absent' does not exist; `kubectl get nodes` lists the nodes"),
        (("train", "--profile", "x"), "--profile, --plugin and --plugin-path need --config"),
        (("train", "--config", "lax.yaml", "--profile", "x"), "has no profile 'x'"),
        (("train", "--kubeconfig", "k"), "--snapshot excludes --kubeconfig, --context and --server"),
        (("train", "--token-file", "t"), "need --server"),
    ],
)
def test_a_question_that_cannot_be_answered_is_one_sentence(snapshot, args, problem):
    result = run("explain", *args)
    assert (result.exit_code, result.stdout) == (1, "")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


# What if


def deployment(replicas: int, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def apply(folder: Path, replicas: int = 1, cpu: str = "100m") -> tuple[str, str]:
    (folder / "app.yaml").write_text(yaml.safe_dump(deployment(replicas, cpu)))
    return "-f", "app.yaml"


def test_pods_are_listed_with_their_nodes(snapshot):
    result = run("what-if", *apply(snapshot), "--remove", "high")
    assert result.exit_code == 0
    printed = lines(result)
    assert printed[0].split() == ["pod", "would", "go", "to"]
    assert ["default/web-0", "cpu"] in [line.split() for line in printed]


def test_many_pods_are_counted_by_node(snapshot):
    printed = lines(run("what-if", *apply(snapshot, 50, "1m"), "--cordon", "gpu"))
    assert printed[0] == "52 pods would be placed on 1 nodes:"
    assert printed[2].split() == ["52", "cpu"]


def test_pods_that_stay_pending_have_message_and_refusals(snapshot):
    result = run("what-if", *apply(snapshot, 2, "9"))
    assert result.exit_code == 3
    assert "default/web-0 and 1 more would stay pending: 0/2 nodes are available:" in result.stdout
    assert "nodes  sole reason  plugin" in result.stdout


def test_the_largest_number_of_replicas(snapshot):
    result = run("what-if", *apply(snapshot, 1, "400m"), "--replicas", "max", "--remove", "busy")
    assert result.exit_code == 0
    assert "replicas fit." in lines(result)[0]
    assert "default/busy would be preempted" not in result.stdout


def test_a_drained_pod_without_a_controller_is_lost(snapshot):
    result = run("what-if", "--drain", "cpu")
    assert "default/busy would be lost: no controller recreates it." in lines(result)


def test_victims_are_named(snapshot):
    assert "default/busy would be preempted." in lines(run("what-if", "--cordon", "gpu"))


def test_nothing_changes_where_nothing_can(snapshot):
    cluster = {"nodes": [decoding.to_builtins(NODES[0])], "pods": [decoding.to_builtins(PODS[0])]}
    (snapshot / "cluster.json").write_text(json.dumps(cluster))
    assert lines(run("what-if")) == ["Nothing would change: every pod stays where it is."]


def test_running_pods_that_another_configuration_places_elsewhere(snapshot):
    result = run("what-if", "--with-config", "lax.yaml")
    assert result.exit_code == 0
    assert lines(result)[0] == "1 running pods would be placed elsewhere:"
    assert lines(result)[2].split()[:3] == ["default/busy", "cpu", "gpu"]
    data = json.loads(run("what-if", "--with-config", "lax.yaml", "-o", "json").stdout)
    assert data["elsewhere"][0]["pod"] == "default/busy"


def test_an_outcome_as_data(snapshot):
    data = json.loads(run("what-if", *apply(snapshot), "--add-nodes", "1", "--like", "cpu", "-o", "json").stdout)
    assert data["placed"]["default/train"] == "cpu-copy-0"
    assert data["explanation"] is None


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--add-nodes", "1"), "--add-nodes and --like need each other"),
        (("--replicas", "2"), "--replicas needs -f"),
        (("-f", "app.yaml", "--replicas", "many"), "--replicas: 'many' is neither a number nor \"max\""),
        (("--drain", "absent"), "node 'absent' does not exist"),
        (("--remove", "team/absent"), "pod 'absent' does not exist in namespace 'team'"),
        (("-f", "absent.yaml"), "the file absent.yaml cannot be read"),
    ],
)
def test_a_change_that_cannot_be_tried_is_one_sentence(snapshot, args, problem):
    apply(snapshot)
    result = run("what-if", *args)
    assert (result.exit_code, result.stdout) == (1, "")
    assert problem in result.stderr
