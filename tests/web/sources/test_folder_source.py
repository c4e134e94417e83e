"""Results of simulations, as the page Compare asks for them."""

from __future__ import annotations

import asyncio
from array import array
from dataclasses import replace

import pytest

from moorage.api.errors import MoorageError
from moorage.sim.comparing import COMPARISON, compare
from moorage.sim.results import RunResult
from moorage.sim.tally import PlacedPod
from moorage.web.sources.folder_source import FolderSource

RUN = RunResult(
    name="plain",
    seed=0,
    measures={"pending": 1.0},
    series={"time": array("d", [0.0, 60.0]), "pending": array("d", [0.0, 1.0])},
    placed=[PlacedPod(1.0, "default/web", "node-0", 0.0, "NodeResourcesFit")],
)


def test_configurations_in_one_folder_are_compared(tmp_path):
    other = replace(RUN, name="packed", placed=[PlacedPod(1.0, "default/web", "node-1", 0.0, "Own")])
    RUN.write(tmp_path / "a")
    other.write(tmp_path / "b")
    found = asyncio.run(FolderSource([tmp_path]).results())
    assert found["names"] == ["plain", "packed"]
    assert found["heading"] == ["measure", "plain", "packed", "change"]
    assert found["series"]["pending"][0] == {"name": "plain", "seed": 0, "points": [[0.0, 0.0], [60.0, 1.0]]}
    [different] = found["differences"]
    assert (different["first"], different["node"], different["decided_by"]) == ("node-0", "node-1", "Own")


def test_runs_with_one_name_are_called_as_their_folders(tmp_path):
    for name in ("monday", "tuesday"):
        RUN.write(tmp_path / name)
    found = asyncio.run(FolderSource([tmp_path / "monday", tmp_path / "tuesday"]).results())
    assert found["names"] == ["monday", "tuesday"]


def test_other_seeds_are_compared_in_measures_only(tmp_path):
    RUN.write(tmp_path / "a")
    for seed in (0, 1):
        replace(RUN, name="packed", seed=seed).write(tmp_path / f"b{seed}")
    found = asyncio.run(FolderSource([tmp_path]).results())
    assert found["differences"] == []
    assert "different seeds" in found["note"]


def test_a_folder_without_results_is_named(tmp_path):
    with pytest.raises(MoorageError, match=r"no summary\.json found"):
        FolderSource([tmp_path])


def test_the_change_has_the_sign_that_the_command_line_printed(tmp_path):
    """`moorage simulate --config plain --config packed` compares with plain, which is not the first by name."""
    runs = [replace(RUN, name=name, measures={"pending": number}) for name, number in (("plain", 4.0), ("packed", 1.0))]
    for run in runs:
        run.write(tmp_path / run.name)
    comparison = compare(runs)
    comparison.write(tmp_path, "title")
    found = asyncio.run(FolderSource([tmp_path]).results())
    assert [found["heading"], found["rows"][0]] == list(comparison.table())[:2]
    assert found["rows"][0] == ["pending", "4", "1", "-3"]


def test_times_have_readable_units(tmp_path):
    for name, seconds in (("plain", 5400.0), ("quick", 0.25)):
        replace(RUN, name=name, measures={"wait.p99": seconds}).write(tmp_path / name)
    found = asyncio.run(FolderSource([tmp_path]).results())
    assert found["rows"][0] == ["wait.p99", "1h30m0s", "250ms", "-1h30m0s"]


def test_an_order_that_cannot_be_read_is_named(tmp_path):
    RUN.write(tmp_path / "a")
    (tmp_path / COMPARISON).write_text("{")
    with pytest.raises(MoorageError, match=r"comparison\.json cannot be used"):
        asyncio.run(FolderSource([tmp_path]).results())
