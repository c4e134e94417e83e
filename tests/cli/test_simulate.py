"""`moorage simulate`: what it prints, and its exit code."""

import json
from pathlib import Path

import pytest

from moorage.cli.root import app
from tests.cli.running import run_in, runner

SCENARIO = """
nodes: [{name: node, count: 4, zones: 2, allocatable: {cpu: 4, memory: 16Gi}}]
workloads:
- {name: a, rate: 1/s, arrival: poisson, shape: {cpu: 500m, memory: 1Gi}, lifetime: {exponential: 20s}}
- {name: b, as: job, rate: 6/m, arrival: burst, burst: 3, priority: 5, shape: {cpu: 3}}
events: [{at: 1m, failNode: {random: 1}}]
duration: 2m
"""
PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packed
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "packed.yaml").write_text(PACKED)
    (tmp_path / "plain.yaml").write_text(PACKED.partition("profiles")[0])
    (tmp_path / "own.py").write_text("def idle(view):\n    return (view.nodes.requested('pods') == 0).sum()\n")
    return tmp_path


def invoke(*args):
    return runner.invoke(app, ["simulate", *args])


def test_prints_measures_and_keeps_results(folder):
    result = invoke("s.yaml", "--output-dir", "out", "--measure", "idle=own:idle")
    assert result.exit_code == 0, result.output
    for text in ("2m0s of virtual time", "scheduled", "utilisation.cpu (mean)", "wait.p99", "idle"):
        assert text in result.stdout
    kept = {path.name for path in (folder / "out").iterdir()}
    assert kept == {"summary.json", "series.csv", "placements.csv", "comparison.json", "report.html"}


def test_compares_configurations_with_the_first(folder):
    configs = ("--config", "plain.yaml", "--config", "packed.yaml", "--config", "packed.yaml")
    result = invoke("s.yaml", *configs, "--seeds", "2", "--jobs", "1", "--output-dir", "out")
    assert result.exit_code == 0, result.output
    for text in ("2 seeds", "change", "packed-2", "Pods placed differently", "differences.csv"):
        assert text in result.stdout
    kept = {path.name for path in (folder / "out").iterdir() if path.is_dir()}
    assert kept == {f"{name}-{seed}" for name in ("plain", "packed", "packed-2") for seed in (0, 1)}


def test_parquet_has_the_rows_of_csv(folder):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    configs = ("--config", "plain.yaml", "--config", "packed.yaml", "--jobs", "1")
    printed = []
    for form in ("csv", "parquet"):
        result = invoke("s.yaml", *configs, "--output-dir", form, "--format", form)
        assert result.exit_code == 0, result.output
        printed.append(result.stdout.partition("measure")[2].replace(form, ""))
    assert printed[0] == printed[1]
    for table in ("differences", "plain/placements", "packed/series"):
        rows = (folder / "csv" / f"{table}.csv").read_text().splitlines()
        found = parquet.read_table(folder / "parquet" / f"{table}.parquet")
        assert ",".join(found.column_names) == rows[0]
        assert found.num_rows == len(rows) - 1 > 10


def test_json_has_runs_and_comparison(folder):
    result = invoke("s.yaml", "--output", "json", "--seed", "7", "--until", "30s")
    found = json.loads(result.stdout)
    [run] = found["runs"]
    assert (run["seed"], run["virtualSeconds"], run["measures"]["nodes"]) == (7, 30.0, 4)
    assert found["comparison"]["nodes"]["default"]["value"] == 4


def test_an_assertion_that_does_not_hold_gives_exit_code_1_and_figures(folder):
    (folder / "s.yaml").write_text(SCENARIO + "assertions: [{at: 30s, measure: nodes, op: '>', value: 4}]")
    result = invoke("s.yaml")
    assert result.exit_code == 1
    assert "Assertion failed (default, seed 0): nodes > 4 at 30 s: the value is 4" in result.stderr


def test_problems_are_reported_and_do_not_end_the_run(folder):
    (folder / "s.yaml").write_text(SCENARIO.replace("failNode: {random: 1}", "drain: nope"))
    result = invoke("s.yaml")
    assert result.exit_code == 0
    assert "default, seed 0: at 60 s: there is no node 'nope'" in result.stderr


def test_a_speed_paces_the_run(folder, monkeypatch):
    speeds: list[float] = []
    seconds: list[float] = []

    def pace(speed):
        speeds.append(speed)
        return seconds.append

    monkeypatch.setattr("moorage.sim.jobs.RealTimePace", pace)
    assert invoke("s.yaml", "--speed", "10").exit_code == 0
    assert speeds == [10.0]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < 120 <= seconds[-1]


def test_a_record_is_replayed_up_to_a_moment(folder):
    assert invoke("s.yaml", "--record", "r.jsonl.gz").exit_code == 0
    for until in ("45s", "2026-01-01T00:00:45Z"):
        [run] = json.loads(invoke("r.jsonl.gz", "--until", until, "--output", "json").stdout)["runs"]
        assert run["virtualSeconds"] == 45.0
    early = invoke("r.jsonl.gz", "--until", "2025-12-31T00:00:00Z")
    assert early.exit_code == 1
    assert (
        "--until: 2025-12-31T00:00:00Z is not after the beginning of the recording (2026-01-01T00:00:00Z)"
        in early.stderr
    )


def test_a_run_is_recorded_and_replayed(folder):
    assert invoke("s.yaml", "--record", "r.jsonl.gz").exit_code == 0
    result = invoke("r.jsonl.gz", "--as-scheduled", "--output", "json")
    assert json.loads(result.stdout)["runs"][0]["measures"]["attempts"] == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nope.yaml"], "Cannot read nope.yaml: no such file"),
        (["s.yaml", "--until", "soon"], "--until: 'soon' is neither a time nor a duration; write"),
        (["s.yaml", "--measure", "x"], "--measure: 'x' must have the form NAME=MODULE:FUNCTION"),
        (["s.yaml", "--measure", "x=nope:f"], "measure 'nope:f': No module named 'nope'"),
        (["s.yaml", "--config", "nope.yaml"], "cannot be read"),
        (["s.yaml", "--as-scheduled"], "applies only to recordings"),
        (["s.yaml", "--seeds", "2", "--record", "r.jsonl"], "--record needs a single local run, but there are 2"),
        (["s.yaml", "--seeds", "2", "--speed", "10"], "--speed needs a single local run, but there are 2 runs"),
        (["s.yaml", "--speed", "0"], "--speed: 0 is not more than 0; 10 means"),
        (["s.yaml", "--until", "2026-01-01T00:01:00Z"], "--until: only a recording has a time such as 2026-01-01"),
    ],
)
def test_mistakes_are_one_clear_sentence(folder, args, message):
    result = invoke(*args)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_decisions_do_not_depend_on_the_hash_seed(folder):
    for number in ("1", "2"):
        done = run_in(folder, "simulate", "s.yaml", "--output-dir", f"out{number}", PYTHONHASHSEED=number)
        assert done.returncode == 0, done.stderr
    first, second = ((folder / f"out{number}" / "placements.csv").read_text() for number in ("1", "2"))
    assert first == second
    assert len(first.splitlines()) > 100


SUMMARY_SCENARIO = Path(__file__).parent.parent.parent / "examples" / "05-simulate" / "scenario.yaml"


@pytest.mark.parametrize("kept", [True, False])
def test_the_output_is_a_summary_of_at_most_15_lines_and_says_where_the_rest_is(tmp_path, kept):
    options = ["--output-dir", str(tmp_path / "results")] if kept else []
    result = runner.invoke(app, ["simulate", str(SUMMARY_SCENARIO), "--until", "10m", *options])
    assert result.exit_code == 0, result.output
    lines = result.stdout.strip("\n").splitlines()
    assert len(lines) <= 15
    for measure in ("scheduled", "pending", "wait.p99", "utilisation.cpu (mean)"):
        assert any(measure in line for line in lines)
    assert "more measures are " in lines[-1]
    if kept:
        report = (tmp_path / "results" / "report.html").read_text()
        assert "utilisation.cpu.stddev" in report
        assert f"{tmp_path / 'results' / 'report.html'}." in lines[-1]
    else:
        assert "--output-dir DIR" in lines[-1]
