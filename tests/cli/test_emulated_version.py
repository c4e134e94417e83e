"""`--emulated-version`: the commands that have it, what it changes, and versions that do not exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage.api import decoding
from moorage.api.versions import BEHAVIOURS
from moorage.cli.root import app
from moorage.testing import make_node, make_pod
from tests.cli.running import runner

COMMANDS = {
    "evaluate": ["evaluate"],
    "explain": ["explain", "pod/p", "--snapshot", "cluster.json"],
    "what-if": ["what-if", "--snapshot", "cluster.json"],
    "simulate": ["simulate", "scenario.yaml"],
    "check": ["check", "scheduler.yaml"],
    "up": ["up"],
    "run": ["run"],
}
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
POD = decoding.to_builtins(make_pod("p", cpu="8"))
CLUSTER = {"nodes": [decoding.to_builtins(make_node("n", cpu="4"))], "pods": [POD]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "scheduler.yaml").write_text(HEAD)
    (tmp_path / "pods.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_a_version_that_does_not_exist_is_refused_with_those_that_do(folder, command):
    result = runner.invoke(app, [*command, "--emulated-version=1.35"], input="")
    assert result.exit_code == 1
    text = " ".join(result.output.split())
    assert '--emulated-version: version "1.35" is not supported; Moorage answers as kube-scheduler 1.36 or 1.37' in text


@pytest.mark.parametrize("version", BEHAVIOURS)
def test_explain_and_what_if_say_the_text_of_the_version(folder, version):
    for command in ("explain", "what-if"):
        result = runner.invoke(app, [*COMMANDS[command], "--emulated-version", version, "-o", "json"])
        assert result.exit_code == 3 if command == "explain" else result.exit_code in (0, 3), result.output
        if command == "explain":
            assert ("no new claims to deallocate" in result.output) is (version == "1.36")


@pytest.mark.parametrize("version", BEHAVIOURS)
def test_check_and_run_show_the_defaults_of_the_version(folder, version):
    for command in (["check", "scheduler.yaml"], ["run", "--config=scheduler.yaml"]):
        result = runner.invoke(app, [*command, f"--emulated-version={version}", "--write-config-to=-"])
        assert result.exit_code == 0, result.output
        written = result.stdout
        assert (written.index("NodeName") < written.index("NodeUnschedulable")) is (version == "1.37")
        assert ("shape:" in written) is (version == "1.37")


def test_evaluate_answers_as_the_version():
    case = json.dumps({"id": 1, "input": {"pod": POD, "nodes": CLUSTER["nodes"]}})
    for version in BEHAVIOURS:
        result = runner.invoke(app, ["evaluate", "--emulated-version", version], input=case)
        answer = json.loads(result.stdout)
        assert ("VolumeBinding" in answer["plugins"]) is (version == "1.37")
