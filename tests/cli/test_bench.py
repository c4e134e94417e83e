"""`moorage bench`: what it prints. How fast the engine is here is not the question."""

import json

from moorage.bench.cluster.results import ClusterResult, ResultsFile, key_of
from moorage.bench.cluster.schedulers import CEILING, MOORAGE, parse_beside
from moorage.bench.cluster.workloads import read_workloads
from moorage.bench.workloads import WORKLOADS
from moorage.cli.root import app
from tests.cli.running import runner

SMALL = ("--nodes", "20", "--pods", "50", "--measure", "100")


def test_prints_a_row_per_workload(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # a test runner may have set it
    result = runner.invoke(app, ["bench", "engine", "plain", "unschedulable", *SMALL])
    assert result.exit_code == 0, result.output
    assert "20 nodes" in result.stdout
    for text in ("plain", "unschedulable", "x kernel", "pods/s"):
        assert text in result.stdout


def test_json_has_the_same_figures_and_placements_are_checked():
    result = runner.invoke(app, ["bench", "engine", "template", *SMALL, "-o", "json"])
    [figures] = json.loads(result.stdout)
    assert (figures["workload"], figures["nodes"], figures["pods"]) == ("template", 20, 50)
    assert figures["measured"] == 100
    assert figures["checked"] >= 1
    assert 0 < figures["median_us"] <= figures["p99_us"]
    assert figures["multiple"] > 0


def test_simulations_are_measured_with_their_memory(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    small = ["bench", "simulate", "--nodes", "50", "--plain", "40"]
    result = runner.invoke(app, [*small, "--day", "200"])
    assert result.exit_code == 0, result.output
    for text in ("50 nodes", "one template each", "24h0m0s", "peak RSS MB"):
        assert text in result.stdout
    [plain] = json.loads(runner.invoke(app, [*small, "--day", "0", "-o", "json"]).stdout)
    assert (plain["workload"], plain["nodes"], plain["pods"]) == ("plain", 50, 40)
    assert plain["pods_per_second"] > 0


def test_a_simulation_that_does_not_fit_is_reported():
    result = runner.invoke(app, ["bench", "simulate", "--nodes", "1", "--plain", "200", "--day", "0"])
    assert result.exit_code == 1
    assert "pods found no node; use more --nodes" in result.stderr


def test_an_unknown_workload_is_reported_with_the_known_ones():
    result = runner.invoke(app, ["bench", "engine", "nope"])
    assert result.exit_code == 1
    assert "There is no workload 'nope'" in result.stderr
    assert all(workload.name in result.stderr for workload in WORKLOADS)


def test_a_comparison_that_is_complete_is_only_shown(tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    [plain] = read_workloads(params={"nodes": 5, "pods": 10}, names=["plain"])
    other = parse_beside("other=/bin/other")
    file = ResultsFile(tmp_path)
    for number in range(6):
        for scheduler, rate in ((CEILING, 400.0), (MOORAGE, 300.0), (other, 100.0)):
            file.add(ClusterResult(*key_of(plain, scheduler, number), 5, 10, rate + number, 1.5, 2.0, 3.0, 100.0))
    command = ["bench", "cluster", "plain", "--nodes", "5", "--pods", "10", "--beside", "other=/bin/other"]
    result = runner.invoke(app, [*command, "--output-dir", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for text in ("95 % interval", "302 [300-305]", "75 %", "2.95 [2.90-3.00]", "Moorage x"):
        assert text in result.stdout
    rows = json.loads(runner.invoke(app, [*command, "--output-dir", str(tmp_path), "-o", "json"]).stdout)
    assert [(row["scheduler"], row["rounds"]) for row in rows] == [("ceiling", 6), ("moorage", 6), ("other", 6)]


def test_a_comparison_without_a_cluster_says_what_is_missing(tmp_path):
    options = ["--output-dir", str(tmp_path / "out"), "--kubeconfig", str(tmp_path / "none")]
    for more, message in (
        ([], "is not a kubeconfig file; name one file with --kubeconfig"),
        (["nope"], "There is no workload 'nope'; known workloads are plain"),
        (["--beside", "x"], "write NAME=COMMAND"),
        (["--param", "x"], "write NAME=VALUE"),
        (["--start", "plain"], "--start has its own workloads"),
    ):
        result = runner.invoke(app, ["bench", "cluster", *options, *more])
        assert result.exit_code == 1
        assert message in result.stderr.replace("\n", " ")
