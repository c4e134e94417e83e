"""`moorage run` on the command line: what it says before it starts anything."""

import pytest

from moorage.cli.root import app
from tests.cli.running import run_in, runner


def invoke(*args: str):
    return runner.invoke(app, ["run", *args])


def test_help_lists_the_flags_in_groups():
    shown = invoke("--help").output
    for text in ("Leader election flags:", "--leader-elect-lease-duration duration", "(default 15s)", "-v, --v int"):
        assert text in shown


def test_unknown_flags_fail_with_a_suggestion():
    result = invoke("--kubeconfg=x", "--bind-adress=y")
    assert result.exit_code == 1
    assert '"kubeconfig"' in result.output
    assert '"bind-address"' in result.output


def test_write_config_to_prints_the_completed_configuration_and_stops():
    result = invoke("--write-config-to=-", "--leader-elect-resource-name=mine")
    assert result.exit_code == 0
    assert "resourceName: mine" in result.output
    assert "kind: KubeSchedulerConfiguration" in result.output


def test_a_bad_configuration_is_reported_with_its_places(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparalelism: 3\n")
    result = invoke(f"--config={file}")
    assert result.exit_code == 1
    assert "paralelism" in result.output


@pytest.mark.parametrize("flag", ["--version", "--version=true"])
def test_version(flag):
    result = invoke(flag)
    assert result.exit_code == 0
    assert "v1.37" in result.output


def test_without_credentials_one_line_says_what_to_do(tmp_path):
    result = run_in(tmp_path, "run", "--secure-port=0", KUBECONFIG="", HOME=str(tmp_path), KUBERNETES_SERVICE_HOST="")
    assert result.returncode == 1
    assert "--kubeconfig" in result.stderr
    assert "Traceback" not in result.stderr


def test_flags_that_have_no_effect_are_warned_about(tmp_path):
    result = run_in(tmp_path, "run", "--contention-profiling=true", "--write-config-to=-")
    assert result.returncode == 0
    assert "--contention-profiling has no effect" in result.stderr


def test_logging_flags_before_and_behind_the_command_mean_the_same(tmp_path):
    for args in (["--logging-format=json", "run"], ["run", "--logging-format=json"]):
        result = run_in(tmp_path, *args, "--contention-profiling=true", "--write-config-to=-")
        assert '"msg": "--contention-profiling has no effect' in result.stderr
