"""`moorage check`: what it prints, where, and with which exit code."""

import itertools
import json
from pathlib import Path

import pytest

from moorage.app import configuration
from moorage.app.configuration import configure
from moorage.cli.root import app
from moorage.plugins.registry import DEFAULT
from tests.cli.running import run_in, runner

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
DATA = Path(__file__).parent.parent / "config" / "data"
SCORES = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
"""The score plugins of kube-scheduler's default profile, in order, with their weights."""
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "01-sample-plugin"


def check(*args: object):
    return runner.invoke(app, ["check", *map(str, args)])


@pytest.fixture
def file(tmp_path):
    def write(text: str | bytes) -> Path:
        path: Path = tmp_path / "scheduler.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def row(output: str, point: str) -> str:
    """The plugins of one point in the first table; long lists are folded over several lines."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines()]
    [start] = [number for number, cells in enumerate(rows) if cells[:1] == [point]]
    folded = itertools.takewhile(lambda cells: cells[:1] == [""], rows[start + 1 :])
    return " ".join(cells[1] for cells in (rows[start], *folded))


def test_shows_the_plugins_of_each_point_in_order_with_weights(file):
    result = check(file(HEAD))
    assert result.exit_code == 0
    assert row(result.output, "filter") == (
        "NodeName, NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, "
        "VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, "
        "InterPodAffinity, DynamicResources, NodeDeclaredFeatures"
    )
    assert row(result.output, "score") == ", ".join(f"{name} ({weight})" for name, weight in SCORES.items())
    assert "valid, 1 profile" in result.output


def test_no_default_plugin_is_missing(file):
    assert "Not implemented" not in check(file(HEAD)).output
    [profile] = json.loads(check(file(HEAD), "-o", "json").stdout)["profiles"]
    assert profile["missing"] == []


def test_names_the_default_plugins_that_are_not_built(file, monkeypatch):
    built = [cls for cls in DEFAULT if cls.name not in ("NodePorts", "ImageLocality")]
    monkeypatch.setattr(configuration, "DEFAULT", tuple(built))
    result = check(file(HEAD))
    [line] = [line for line in result.output.splitlines() if line.startswith("Not implemented")]
    missing = line.partition(": ")[2].split(", ")
    assert missing == ["NodePorts", "ImageLocality"]
    assert list(configure(HEAD, discover=False).profiles[0].missing) == missing
    assert "NodePorts" not in row(result.output, "filter")
    [profile] = json.loads(check(file(HEAD), "-o", "json").stdout)["profiles"]
    assert profile["missing"] == missing


def test_one_table_per_profile():
    result = check(DATA / "two-profiles-v1beta2.yaml")
    assert "profile default-scheduler" in result.output
    assert "profile no-scoring-scheduler" in result.output
    assert "note: converted from kubescheduler.config.k8s.io/v1beta2" in result.output


def test_all_mistakes_come_at_once_on_stderr_with_path_and_hint(file):
    result = check(
        file(
            HEAD + "parallelism: 0\npercentageOfNodesToScore: 101\nprofiles:\n- schedulerName: a\n  plugins:\n"
            "    filtr:\n      enabled: [{name: NodeName}]\n"
        )
    )
    assert result.exit_code == 1
    assert result.stdout == ""
    for path in ("parallelism", "percentageOfNodesToScore", "profiles[0].plugins"):
        assert path in result.stderr
    assert 'did you mean "filter"?' in result.stderr


def test_an_unknown_plugin_gets_the_nearest_name(file):
    profile = "profiles:\n- plugins:\n    filter:\n      enabled:\n      - name: NodeNmae\n"
    result = check(file(HEAD + profile))
    assert result.exit_code == 1
    assert 'FilterPlugin "NodeNmae" does not exist (did you mean "NodeName"?)' in result.stderr


@pytest.mark.parametrize(
    ("url", "code", "sentence"),
    [
        ("http://localhost:8888", 0, "valid, 1 profile"),
        ("https://x:1\n  tlsConfig: {caFile: /none/ca.crt}", 0, "valid, 1 profile"),
        ("localhost:8888", 1, "extenders[0]: 'localhost:8888' is not the address of a server"),
    ],
)
def test_extenders_are_checked_as_far_as_they_can_be_without_asking_them(file, url, code, sentence):
    result = check(file(HEAD + f"extenders:\n- urlPrefix: {url}\n  filterVerb: filter\n"))
    assert (result.exit_code, sentence in result.output + result.stderr) == (code, True)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(bytes(range(256)), "not UTF-8", id="binary"),
        pytest.param(b"", "", id="empty"),
        pytest.param(b"a: [", "", id="broken YAML"),
        pytest.param(b"[1, 2]", "", id="a list"),
        pytest.param(b"\x00\x01", "", id="control characters"),
    ],
)
def test_a_file_that_is_no_configuration_gives_a_sentence(file, content, sentence):
    result = check(file(content))
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_a_file_that_is_not_there_or_a_folder_gives_one_line(tmp_path):
    missing, folder = check(tmp_path / "none.yaml"), check(tmp_path)
    assert missing.stderr == f"Error: {tmp_path}/none.yaml: cannot be read: No such file or directory\n"
    assert folder.stderr == f"Error: {tmp_path}: cannot be read: Is a directory\n"
    assert (missing.exit_code, folder.exit_code) == (1, 1)


def test_file_contents_cannot_drive_the_terminal(file):
    result = check(file(HEAD + 'profiles:\n- schedulerName: "a\\e[31mb"\n'))
    assert "\x1b" not in result.stdout + result.stderr


def test_json_describes_the_same(file):
    result = check(file(HEAD), "--output", "json")
    shown = json.loads(result.stdout)
    [profile] = shown["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert profile["plugins"]["score"] == [
        {"name": name, "weight": weight, "default": True} for name, weight in SCORES.items()
    ]
    assert profile["pluginConfig"]["InterPodAffinity"] == {
        "hardPodAffinityWeight": 1,
        "ignorePreferredTermsOfExistingPods": False,
    }
    assert shown["problems"] == []


def test_json_lists_mistakes_too(file):
    result = check(file(HEAD + "parallelism: 0\n"), "-o", "json")
    assert result.exit_code == 1
    [problem] = json.loads(result.stdout)["problems"]
    assert problem["path"] == "parallelism"


def test_writes_the_completed_configuration_that_reads_back(file, tmp_path):
    target = tmp_path / "written.yaml"
    result = check(file(HEAD), "--write-config-to", target)
    assert (result.exit_code, result.stdout) == (0, "")
    assert configure(target.read_text(), discover=False).config == configure(HEAD, discover=False).config


def test_writes_to_standard_output_with_a_dash(file):
    result = check(file(HEAD), "--write-config-to", "-")
    assert result.exit_code == 0
    assert result.stdout.startswith("apiVersion: kubescheduler.config.k8s.io/v1\n")


def test_a_target_that_cannot_be_written_gives_one_line(file, tmp_path):
    result = check(file(HEAD), "--write-config-to", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: Cannot write {tmp_path}: Is a directory.\n"


def test_a_wrong_configuration_is_not_written(file, tmp_path):
    target = tmp_path / "written.yaml"
    assert check(file(HEAD + "parallelism: 0\n"), "--write-config-to", target).exit_code == 1
    assert not target.exists()


def test_references_are_found_in_the_current_folder():
    result = run_in(EXAMPLE, "check", "scheduler.yaml")
    assert result.returncode == 0, result.stderr
    assert row(result.stdout, "filter").endswith("NodeDeclaredFeatures, sample*")


def test_plugins_are_made_known_by_option():
    result = run_in(EXAMPLE, "check", str(DATA / "sample-v1.yaml"), "--plugin", "sample:Sample")
    assert result.returncode == 0, result.stderr
    assert row(result.stdout, "filter").endswith("NodeDeclaredFeatures, sample*")


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("nowhere:Plugin", "cannot import plugin"),
        ("json:dumps", "is not a plugin"),
        ("no-reference", "cannot import plugin"),
    ],
)
def test_a_plugin_that_cannot_be_used_gives_one_sentence(file, reference, sentence):
    result = check(file(HEAD), "--plugin", reference)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert sentence in result.stderr


def test_arguments_of_running_plugins_are_shown(tmp_path):
    module = tmp_path / "quota_plugin.py"
    module.write_text(
        "import msgspec\n"
        "from moorage.framework import FilterPlugin\n"
        "class Args(msgspec.Struct):\n"
        "    limit: int = 3\n"
        "    teams: list[str] = []\n"
        "class Quota(FilterPlugin):\n"
        "    name = 'Quota'\n"
        "    Args = Args\n"
        "    def filter(self, state, pod, node): return None\n"
    )
    (tmp_path / "c.yaml").write_text(
        HEAD + "profiles:\n- plugins: {filter: {enabled: [{name: 'quota_plugin:Quota'}]}}\n"
        "  pluginConfig: [{name: 'quota_plugin:Quota', args: {teams: [a, b]}}]\n"
    )
    shown = json.loads(run_in(tmp_path, "check", "c.yaml", "-o", "json").stdout)
    given = shown["profiles"][0]["pluginConfig"]
    assert given["Quota"] == {"limit": 3, "teams": ["a", "b"]}
    assert given["DefaultPreemption"] == {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}
    assert '["a", "b"]' in run_in(tmp_path, "check", "c.yaml").stdout
