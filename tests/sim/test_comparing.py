"""Several configurations and seeds: what differs, and the report."""

import sys
from xml.etree import ElementTree

import pytest

from moorage import Simulation
from moorage.api.errors import MoorageError
from moorage.sim.comparing import compare
from moorage.sim.jobs import Setup, WorkloadSource, plan, run_jobs
from moorage.sim.loading import load_workload

SCENARIO = """
nodes: [{name: node, count: 4, allocatable: {cpu: 4, memory: 16Gi}}]
workloads: [{name: a, count: 20, rate: 1/s, shape: {cpu: 1, memory: 1Gi}, lifetime: {exponential: 10s}}]
assertions: [{measure: scheduled, op: "==", value: 20}]
duration: 1m
"""
EMPTY = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PACKED = EMPTY + (
    "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: "
    "{type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}]}]"
)


@pytest.fixture
def planned(tmp_path):
    for name, text in (("s.yaml", SCENARIO), ("plain.yaml", EMPTY), ("packed.yaml", PACKED)):
        (tmp_path / name).write_text(text)
    setups = [Setup(name, tmp_path / f"{name}.yaml") for name in ("plain", "packed")]
    return plan(WorkloadSource(tmp_path / "s.yaml"), setups, [1, 2], tmp_path / "out")


def test_a_comparison_has_means_over_seeds_and_changes_to_the_first(planned, tmp_path):
    results = [job.run() for job in planned]
    assert [(r.name, r.seed) for r in results] == [("plain", 1), ("plain", 2), ("packed", 1), ("packed", 2)]
    comparison = compare(results)
    figures = dict(comparison.figures())
    plain, packed = figures["utilisation.cpu.stddev (mean)"]
    assert plain.change is None
    assert packed.change == pytest.approx(packed.value - plain.value)
    assert packed.value > plain.value
    assert plain.spread > 0
    assert [figure.value for figure in figures["arrived"]] == [20, 20]
    heading, *rows = comparison.table()
    assert heading == ["measure", "plain", "packed", "change"]
    assert ["arrived", "20", "20", "="] in rows


def test_pods_placed_differently_are_listed_with_the_deciding_plugin(planned, tmp_path):
    comparison = compare([job.run() for job in planned])
    found = list(comparison.differences())
    assert {each.configuration for each in found} == {"packed"}
    assert {each.seed for each in found} == {1, 2}
    assert all(each.first != each.node for each in found)
    assert "NodeResourcesFit" in {each.decided_by for each in found}
    comparison.write(tmp_path, "title")
    assert len((tmp_path / "differences.csv").read_text().splitlines()) == len(found) + 1


def test_equal_configurations_differ_in_nothing():
    runs = [Simulation(SCENARIO, name=name).run() for name in ("a", "b")]
    comparison = compare(runs)
    assert list(comparison.differences()) == []
    assert all(figures[1].change == 0 for _, figures in comparison.figures())


def test_a_pod_that_is_pending_under_one_configuration_is_a_difference():
    few = SCENARIO.replace("count: 4", "count: 1").replace("{exponential: 10s}", "{fixed: 2m}")
    runs = [Simulation(text, name=name).run() for name, text in (("a", SCENARIO), ("b", few))]
    lost = [each for each in compare(runs).differences() if not each.node]
    assert len(lost) == 16


def test_the_report_is_one_well_formed_file_that_loads_nothing(planned, tmp_path):
    comparison = compare([job.run() for job in planned])
    comparison.write(tmp_path, "a <b> & c")
    text = (tmp_path / "report.html").read_text()
    assert "a &lt;b&gt; &amp; c" in text
    assert "src=" not in text
    assert "href=" not in text
    for figure in text.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + figure.partition("</svg>")[0] + "</svg>")
    assert text.count("<figure>") > 10


def test_runs_in_processes_give_the_results_of_runs_here(planned, tmp_path):
    pytest.importorskip("joblib", reason="the extra sim is not installed")
    done = []
    spread = run_jobs(planned, 2, lambda: done.append(1))
    assert len(done) == len(planned)
    for job, there in zip(planned, spread, strict=True):
        here = job.run()
        assert here.measures == there.measures
        assert here.nodes() == there.nodes()


def test_without_joblib_the_way_out_is_named(planned, monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(MoorageError, match=r"Install moorage\[sim\], or use --jobs 1"):
        run_jobs(planned, 2, lambda: None)


def test_the_runs_of_a_process_that_dies_are_done_again(tmp_path):
    pytest.importorskip("joblib", reason="the extra sim is not installed")
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "dying.py").write_text(
        "import os, pathlib\n"
        "def once(view):\n"
        "    try:\n"
        f"        pathlib.Path({str(tmp_path / 'died')!r}).touch(exist_ok=False)\n"
        "    except FileExistsError:\n"
        "        return 0.0\n"
        "    os._exit(1)\n"
    )
    source = WorkloadSource(tmp_path / "s.yaml", measures={"once": "dying:once"})
    jobs = plan(source, [Setup("a", folders=(str(tmp_path),))], [1, 2, 3], tmp_path / "out")
    results = run_jobs(jobs, 2, lambda: None)
    assert (tmp_path / "died").exists()
    assert [(result.seed, result["arrived"]) for result in results] == [(1, 20), (2, 20), (3, 20)]


@pytest.mark.parametrize(
    ("name", "mapping", "as_scheduled", "message"),
    [
        ("nope.yaml", False, False, "no such file"),
        ("pods.csv", False, False, "needs a file that maps its columns"),
        ("s.yaml", True, False, "--mapping applies only to traces"),
        ("s.yaml", False, True, "applies only to recordings"),
        ("data.bin", False, False, "Cannot tell the file type from the name .* expected a scenario"),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, name, mapping, as_scheduled, message):
    for known in ("s.yaml", "pods.csv", "data.bin", "m.yaml"):
        (tmp_path / known).write_text(SCENARIO)
    with pytest.raises(MoorageError, match=message):
        load_workload(tmp_path / name, tmp_path / "m.yaml" if mapping else None, as_scheduled=as_scheduled)
