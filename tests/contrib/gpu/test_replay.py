"""The trace openb through the scheduler gives the published figures; it lies beside the checkout or not."""

from __future__ import annotations

import csv
import importlib
from typing import Any

import pytest

from tests.docs.snippets import ROOT

FOLDER = ROOT.parent / "shared" / "traces" / "openb"
EXAMPLE = ROOT / "examples" / "04-gpu-traces"
LOADS = (50, 80, 90, 100, 110, 120, 130)
NAMES = {"DotProduct": "DotProd"}
"""Policies that the tables call otherwise."""

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="there is no ../shared/traces/openb")


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module("replay")


def published(file: str, policy: str, **wanted: str) -> dict[str, Any]:
    with (FOLDER / file).open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["trace"] == "default"]
    name = NAMES.get(policy, policy)
    return next(row for row in rows if row["policy"] == name and wanted.items() <= row.items())


def test_the_empty_cluster_is_as_fragmented_as_published(example):
    trace = example.Trace(FOLDER, "default", 42)
    typical = trace.typical_pods()
    assert len(typical) == 35
    ledger = example.Ledger(trace.nodes, typical)
    assert round(100 * float(ledger.fragmented.sum()) / ledger.capacity, 4) == 13.9445


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
    ("policy", "seed"),
    [("FGD", 42), ("BestFit", 43), ("DotProduct", 44), ("GpuPacking", 45), ("GpuClustering", 46)],
)
def test_a_policy_gives_the_published_figures_to_the_last_digit(example, policy, seed):
    expected = published("expected_by_seed.csv", policy, seed=str(seed))
    curve = example.measured(example.Trace(FOLDER, "default", seed), policy, seed)
    assert (curve.pods, curve.failed) == (int(expected["pods"]), int(expected["failed_pods"]))
    for load in LOADS:
        assert curve.at(load).in_use == float(expected[f"alloc_{load:03}"]), load
    for load in (50, 80, 100, 130):
        assert curve.at(load).fragmented_of_idle == float(expected[f"frag_ratio_{load:03}"]), load
    assert curve.at(100).fragmented == float(expected["frag_amount_100"])


@pytest.mark.slow
def test_random_is_within_a_point_of_the_published_mean(example):
    expected = published("expected.csv", "Random")
    curve = example.measured(example.Trace(FOLDER, "default", 42), "Random", 42)
    for load in LOADS:
        assert curve.at(load).in_use == pytest.approx(float(expected[f"alloc_{load:03}"]), abs=1.0)
