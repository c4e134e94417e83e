"""The trace openb by `moorage simulate` gives the published figures; it lies beside the checkout or not."""

from __future__ import annotations

import csv
import gzip
import importlib
from collections import Counter
from typing import Any

import pytest

from moorage.sim.jobs import Job, Setup, WorkloadSource
from tests.docs.snippets import ROOT

FOLDER = ROOT.parent / "shared" / "traces" / "openb"
EXAMPLE = ROOT / "examples" / "04-gpu-traces"
PODS = FOLDER / "openb_pod_list_default.csv.gz"
LOADS = (50, 80, 90, 100, 110, 120, 130)
NAMES = {"DotProduct": "DotProd"}
"""Policies that the tables call otherwise."""
TYPICAL = 0.95
"""Of all pods are of typical classes."""

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="there is no ../shared/traces/openb")


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module("openb")


def published(file: str, policy: str, **wanted: str) -> dict[str, Any]:
    with (FOLDER / file).open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["trace"] == "default"]
    name = NAMES.get(policy, policy)
    return next(row for row in rows if row["policy"] == name and wanted.items() <= row.items())


def simulated(policy: str, seed: int, folder: Any, until: str = "") -> Any:
    setup = Setup(policy, EXAMPLE / f"{policy}.yaml", folders=(str(EXAMPLE),))
    source = WorkloadSource(PODS, EXAMPLE / "openb.yaml", until=until)
    return Job(source, setup, seed, folder).run()


def curve(policy: str, seed: int, folder: Any) -> Any:
    return importlib.import_module("curves").Curve(simulated(policy, seed, folder))


def test_the_typical_pods_are_the_most_frequent_classes_of_the_trace(example):
    with gzip.open(PODS, "rt") as lines:
        rows = list(csv.DictReader(lines))
    names = ("cpu_milli", "gpu_milli", "num_gpu", "gpu_spec")
    classes = Counter((*(int(row[name]) for name in names[:3]), row[names[3]]) for row in rows)
    ranked = sorted(classes.items(), key=lambda found: (found[1], found[0]), reverse=True)
    expected, taken = [], 0
    for (cpu, milli, count, models), number in ranked:
        if taken < TYPICAL * len(rows):
            taken += number
            expected.append((f"{cpu}m", milli, max(count, 1), models, number))
    fields = ("cpu", "gpuMilli", "gpuCount", "gpuCardModel", "weight")
    assert [tuple(pod.get(name, "") for name in fields) for pod in example.typical_pods()] == expected


def test_the_first_pods_of_the_replay_are_placed_and_measured(example, tmp_path):
    result = simulated("FGD", 42, tmp_path, until="50s")
    assert (result["arrived"], result["nodes"], result["pending"], result.problems) == (51, 1213, 0, [])
    # 13.9445 per cent of the empty cluster's GPU are of no use to typical pods.
    assert result.series["gpu.fragmented"][0] == pytest.approx(0.139445 * 6_212_000, rel=0.001)
    assert 0 < result["gpu.used"] <= result["gpu.arrived"]


@pytest.mark.parametrize("policy", ["FGD", "BestFit", "DotProduct", "GpuPacking", "GpuClustering"])
def test_the_recorded_runs_equal_the_published_ones_seed_by_seed(policy):
    with (EXAMPLE / "results.csv").open() as lines:
        runs = [row for row in csv.DictReader(lines) if row["policy"] == policy]
    assert [int(run["seed"]) for run in runs] == list(range(42, 52))
    for run in runs:
        expected = published("expected_by_seed.csv", policy, seed=run["seed"])
        assert (run["pods"], run["failed"]) == (expected["pods"], expected["failed_pods"])
        assert [run[str(load)] for load in LOADS] == [expected[f"alloc_{load:03}"] for load in LOADS]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "seed"), [("FGD", 42), ("BestFit", 43), ("DotProduct", 44), ("GpuPacking", 45), ("GpuClustering", 46)]
)
def test_a_policy_gives_the_published_figures_to_the_last_digit(example, tmp_path, policy, seed):
    expected = published("expected_by_seed.csv", policy, seed=str(seed))
    found = curve(policy, seed, tmp_path)
    assert (found.pods, found.failed) == (int(expected["pods"]), int(expected["failed_pods"]))
    for load in LOADS:
        assert found.at(load).in_use == float(expected[f"alloc_{load:03}"]), load
    for load in (50, 80, 100, 130):
        assert found.at(load).fragmented_of_idle == float(expected[f"frag_ratio_{load:03}"]), load
    assert found.at(100).fragmented == float(expected["frag_amount_100"])


@pytest.mark.slow
def test_random_is_within_a_point_of_the_published_mean(example, tmp_path):
    expected = published("expected.csv", "Random")
    found = curve("Random", 42, tmp_path)
    for load in LOADS:
        assert found.at(load).in_use == pytest.approx(float(expected[f"alloc_{load:03}"]), abs=1.0)
