"""`moorage what-if --upgrade-to`: the report, its exit codes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.api import decoding
from moorage.cli.root import app
from moorage.testing import make_node, make_pod
from tests.cli.running import runner

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def plain(*objects: Any) -> list[Any]:
    return [decoding.to_builtins(obj) for obj in objects]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    nodes = plain(make_node("n", cpu="4"))
    (tmp_path / "fits.json").write_text(json.dumps({"nodes": nodes, "pods": plain(make_pod("p", cpu="1"))}))
    waiting = [make_pod(f"p-{number:02d}", cpu="8") for number in range(50)]
    (tmp_path / "waits.json").write_text(json.dumps({"nodes": nodes, "pods": plain(*waiting)}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(*arguments: str) -> tuple[int, str]:
    result = runner.invoke(app, ["what-if", "--upgrade-to", *arguments])
    return result.exit_code, " ".join(result.output.split())


def test_nothing_that_has_an_effect_is_exit_code_0(folder):
    code, text = ask("1.37", "--snapshot", "fits.json")
    assert code == 0
    assert "No pod would be decided differently by kube-scheduler 1.37 than by 1.36. 1 was judged." in text
    assert "profile default-scheduler: NodeName runs before NodeUnschedulable at filter." in text
    assert "-o json lists them" in text


def test_pods_that_differ_are_grouped_by_reason_in_at_most_40_rows(folder):
    code, text = ask("1.37", "--snapshot", "waits.json")
    assert code == 3
    assert "50 of 50 pods would be decided differently by kube-scheduler 1.37 than by 1.36." in text
    assert '50 pods: The message of an unschedulable pod no longer says "no new claims to deallocate".' in text
    assert text.count("default/p-") == 40
    assert "and 10 more; -o json shows all" in text
    assert "1.36: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption:" in text


def test_json_has_all_pods_with_both_answers(folder):
    code, text = ask("1.37", "--snapshot", "waits.json", "-o", "json")
    answer = json.loads(text)
    assert code == 3
    assert (answer["from"], answer["to"], answer["judged"], len(answer["pods"])) == ("1.36", "1.37", 50, 50)
    assert answer["reasons"] == [
        {
            "change": "reports_no_idle_claims",
            "text": 'The message of an unschedulable pod no longer says "no new claims to deallocate".',
            "pods": 50,
        }
    ]
    assert answer["pods"][0]["differs"] == ["message"]


def test_gates_and_configuration_that_the_new_version_refuses_are_listed(folder):
    (folder / "scheduler.yaml").write_text(HEAD)
    gates = "--feature-gates=SidecarContainers=true,NodeDeclaredFeatures=false"
    code, text = ask("1.37", "--snapshot", "fits.json", "--config", "scheduler.yaml", gates)
    assert code == 3
    assert "SidecarContainers: 1.37 refuses this: unrecognized feature gate: SidecarContainers; kube-scheduler" in text
    assert "NodeDeclaredFeatures: 1.37 refuses this: cannot set feature gate NodeDeclaredFeatures to false" in text
    assert "NodeDeclaredFeatures: It is on instead of off." in text


def test_a_recording_is_judged_as_it_ends(folder):
    node, pod = make_node("n", cpu="4"), make_pod("p", cpu="8")
    gone = make_pod("gone", cpu="8")
    changes = [("Add", "Node", node), ("Add", "Pod", pod), ("Add", "Pod", gone), ("Delete", "Pod", gone)]
    lines = [
        json.dumps(
            {
                "time": f"2026-01-01T00:00:0{second}Z",
                "event": event,
                "resource": {**decoding.to_builtins(obj), "apiVersion": "v1", "kind": kind},
            }
        )
        for second, (event, kind, obj) in enumerate(changes)
    ]
    (folder / "day.jsonl").write_text("\n".join(lines) + "\n")
    code, text = ask("1.37", "--snapshot", "day.jsonl", "-o", "json")
    assert code == 3
    assert [pod["pod"] for pod in json.loads(text)["pods"]] == ["default/p"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["1.36", "--emulated-version", "1.37"], "1.36 is not newer than 1.37, so this is not an upgrade"),
        (["1.36"], "1.36 is the oldest version that Moorage knows"),
        (["1.99"], 'version "1.99" is not supported; Moorage answers as kube-scheduler 1.36 or 1.37'),
        (["1.37", "--emulated-version", "1.35"], 'version "1.35" is not supported'),
        (["1.37", "--drain", "n"], "--upgrade-to compares two versions on the cluster as it is"),
        (["1.37", "--profile", "x"], "need --config"),
        (["1.37", "--config", "none.yaml"], "none.yaml"),
    ],
)
def test_what_cannot_be_previewed_is_refused_with_a_sentence(folder, arguments, says):
    code, text = ask(*arguments, "--snapshot", "fits.json")
    assert code == 1
    assert says in text


def test_feature_gates_alone_are_refused(folder):
    result = runner.invoke(app, ["what-if", "--feature-gates=A=true", "--snapshot", "fits.json"])
    assert result.exit_code == 1
    assert "--feature-gates needs --upgrade-to" in " ".join(result.output.split())
