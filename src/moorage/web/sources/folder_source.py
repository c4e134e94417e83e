"""Simulation results, in folders of `moorage simulate --output-dir`, as a source of the pages."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import isnan
from pathlib import Path

from moorage.api.errors import MoorageError
from moorage.api.times import format_duration
from moorage.sim.comparing import COMPARISON, Comparison, Figure, compare
from moorage.sim.results import SUMMARY, RunResult, read_result
from moorage.web.source import Json

MAX_POINTS = 1000
"""Points of a curve: more than a screen can show."""
MAX_DIFFERENCES = 1000
TIMES = "wait."
"""Prefix of measures in seconds."""
MINUTE = 60.0


class FolderSource:
    def __init__(self, folders: Sequence[Path]) -> None:
        self.title = f"results in {', '.join(folder.name or str(folder) for folder in folders)}"
        for folder in folders:
            _with_results(folder)  # names a folder without results at once
        self._folders = tuple(folders)
        self._answer: Json | None = None

    async def results(self) -> Json:
        if self._answer is None:
            self._answer = await asyncio.to_thread(self._read)
        return self._answer

    def _read(self) -> Json:
        comparison = compare(_by_folder(_in_order(self._folders)))
        runs = [run for name in comparison.names for run in comparison.results[name]]
        measured = dict.fromkeys(name for run in runs for name in run.series if name != "time")
        heading, *rows = comparison.table()
        return {
            "names": list(comparison.names),
            "heading": list(heading),
            "rows": [_readable(row, figures) for row, (_, figures) in zip(rows, comparison.figures(), strict=True)],
            "series": {name: [_curve(run, name) for run in runs if name in run.series] for name in measured},
            "failed": [f"{run.name}, seed {run.seed}: {text}" for run in runs for text in run.failed],
            **_differences(comparison),
        }


def _with_results(folder: Path) -> list[Path]:
    """Return the folder itself, or the folders in it."""
    if (folder / SUMMARY).exists():
        return [folder]
    found = sorted(path.parent for path in folder.glob(f"*/{SUMMARY}"))
    if not found:
        raise MoorageError(
            f"--results {folder}: no {SUMMARY} found; name a folder written by `moorage simulate --output-dir`"
        )
    return found


def _in_order(folders: Sequence[Path]) -> list[RunResult]:
    """Read the results, with the configurations in the order in which they were given to `moorage simulate`: the
    others are compared with the first."""
    found: list[RunResult] = []
    for folder in folders:
        results = [read_result(each) for each in _with_results(folder)]
        names = _configurations(folder)
        found += sorted(results, key=lambda result: names.index(result.name) if result.name in names else len(names))
    return found


def _configurations(folder: Path) -> list[str]:
    """Return the configurations of a folder in their order; empty for folders of older versions."""
    try:
        return [str(name) for name in json.loads((folder / COMPARISON).read_text())["configurations"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise MoorageError(f"{folder / COMPARISON} cannot be used: {error}. Run the simulation again.") from error


def _readable(row: list[str], figures: Sequence[Figure]) -> list[str]:
    """Return a row of the table of measures, with times in minutes and hours."""
    if not row[0].startswith(TIMES):
        return row
    cells = [row[0]]
    for figure in figures:
        spread = f" ± {_duration(figure.spread)}" if figure.spread else ""
        cells.append(_duration(figure.value) + spread)
        if figure.change is not None:
            sign = "-" if figure.change < 0 else "+"
            cells.append(f"{sign}{_duration(abs(figure.change))}" if figure.change else "=")
    return cells


def _duration(seconds: float) -> str:
    return format_duration(round(seconds, 3) if seconds < MINUTE else round(seconds))


def _by_folder(results: list[RunResult]) -> list[RunResult]:
    """Name runs with the same name and seed, which come from several simulations, after their folders."""
    alike = Counter((result.name, result.seed) for result in results)
    return [
        replace(result, name=result.folder.name)
        if alike[result.name, result.seed] > 1 and result.folder is not None
        else result
        for result in results
    ]


def _curve(run: RunResult, measure: str) -> Json:
    points = [
        [time, value] for time, value in zip(run.series["time"], run.series[measure], strict=True) if not isnan(value)
    ]
    step = max(1, len(points) // MAX_POINTS)
    return {"name": run.name, "seed": run.seed, "points": points[::step]}


def _differences(comparison: Comparison) -> Json:
    if len({len(runs) for runs in comparison.results.values()}) > 1:
        return {"differences": [], "more": False, "note": "The configurations ran with different seeds."}
    found = list(islice(comparison.differences(), MAX_DIFFERENCES + 1))
    shown = [each._asdict() for each in found[:MAX_DIFFERENCES]]
    return {"differences": shown, "more": len(found) > len(shown), "note": ""}
