"""The options that every command has, and what happens without a command or with a wrong one."""

import json
import logging

import pytest

import moorage
from moorage.cli.root import app
from moorage.telemetry import logs
from tests.cli.running import run_in, runner


@pytest.fixture(autouse=True)
def _restore_logging():
    yield
    logs.remove()


def test_help_names_every_command():
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("check", "new", "demo", "evaluate", "extender", "bench", "version", "--logging-format"):
        assert command in result.output


@pytest.mark.parametrize("command", ["check", "new", "demo", "evaluate", "extender", "bench", "version"])
def test_every_command_explains_itself(command):
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"moorage {command}" in result.output or command in result.output


@pytest.mark.parametrize("args", [["nope"], ["--nope"], ["check"], ["check", "a", "--nope"], ["demo", "--speed", "-1"]])
def test_wrong_usage_is_reported_with_exit_code_2(args):
    result = runner.invoke(app, args)
    assert result.exit_code == 2
    assert "Error" in result.stderr


def test_version_is_printed_by_command_and_option():
    for args in (["version"], ["--version"]):
        result = runner.invoke(app, args)
        assert result.exit_code == 0
        assert result.stdout == f"moorage {moorage.__version__} (behaves as kube-scheduler v1.37)\n"


def test_version_as_json():
    facts = json.loads(runner.invoke(app, ["version", "-o", "json"]).stdout)
    assert facts["moorage"] == moorage.__version__
    assert facts["kubeScheduler"] == "v1.37"


@pytest.mark.parametrize("option", [["-v", "3"], ["-v3"], ["-v=3"], ["--v", "3"], ["--v=3"]])
def test_verbosity_is_set_in_every_spelling(option):
    assert runner.invoke(app, [*option, "version"]).exit_code == 0
    assert logging.getLogger(logs.ROOT).level == logging.INFO - 3


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "٣"])
def test_a_verbosity_that_is_not_a_number_is_reported(value):
    result = runner.invoke(app, [f"--v={value}", "version"])
    assert result.exit_code == 2
    assert "is not a verbosity" in result.stderr


def test_logs_tell_attempts_as_text_and_as_json(tmp_path):
    text = run_in(tmp_path, "-v", "3", "demo", "--speed", "0")
    assert '"Attempting to schedule pod" pod="default/test-scheduler-' in text.stderr
    lines = run_in(tmp_path, "-v", "3", "--logging-format", "json", "demo", "--speed", "0").stderr.splitlines()
    assert "Attempting to schedule pod" in [json.loads(line)["msg"] for line in lines]


def test_terminals_of_any_encoding_are_served(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: größe\n",
        encoding="utf-8",
    )
    result = run_in(tmp_path, "check", "c.yaml", PYTHONIOENCODING="ascii")
    assert "Traceback" not in result.stderr
    assert "+-" in result.stdout or "problem" in result.stderr
