"""Compares configurations that ran the same workload, and writes report.html.

The report is a single file that loads nothing else. Its plots are SVG lines over virtual time, with a colour
for each configuration and a line for each seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import isnan
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from moorage.api.times import format_duration
from moorage.sim.results import RunResult
from moorage.sim.tables import NUMBER, TEXT, ResultTable, TableFormat

DIFFERENCES, REPORT, COMPARISON = "differences", "report.html", "comparison.json"
OVER_TIME = ("running", "pending", "utilisation.", "largestPod", "zoneSkew")
"""Prefixes of measures whose mean over the run is more informative than their last value."""


class Different(NamedTuple):
    """A pod that two configurations placed on different nodes."""

    seed: int
    pod: str
    first: str
    """The node under the first configuration, or empty if the pod was pending."""
    configuration: str
    node: str
    decided_by: str
    """The plugin that decided for `node`, if it is known."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of one configuration over its seeds."""

    value: float
    spread: float
    """The standard deviation over the seeds, or 0 for a single seed."""
    change: float | None
    """The change relative to the first configuration, or None for the first one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of several configurations. The others are compared with the first."""

    names: tuple[str, ...]
    results: dict[str, list[RunResult]]
    """Configuration → one result per seed, in the same order for all."""

    def figures(self) -> Iterator[tuple[str, list[Figure]]]:
        """Yield each measure with its figures, one per configuration."""
        for label, values in self._rows():
            first = mean(values[0])
            yield (
                label,
                [
                    Figure(mean(found), stdev(found) if len(found) > 1 else 0.0, mean(found) - first if place else None)
                    for place, found in enumerate(values)
                ],
            )

    def _rows(self) -> Iterator[tuple[str, list[list[float]]]]:
        runs = [self.results[name] for name in self.names]
        everywhere = [run for found in runs for run in found]
        known = dict.fromkeys(name for run in everywhere for name in run.measures)
        for name in known:
            yield name, [[run.measures.get(name, 0.0) for run in found] for found in runs]
            if name.startswith(OVER_TIME) and not name.endswith((".min", ".max")):
                yield f"{name} (mean)", [[_mean(run, name) for run in found] for found in runs]

    def differences(self) -> Iterator[Different]:
        """Yield the pods that were bound to another node than under the first configuration, or not at all."""
        for first, *others in zip(*(self.results[name] for name in self.names), strict=True):
            expected = first.nodes()
            for other in others:
                seen = set()
                for placed in _last(other):
                    seen.add(placed.pod)
                    if (before := expected.get(placed.pod, "")) != placed.node:
                        yield Different(first.seed, placed.pod, before, other.name, placed.node, placed.decided_by)
                for pod, node in expected.items():
                    if node and pod not in seen:
                        yield Different(first.seed, pod, node, other.name, "", "")

    def write_differences(self, folder: Path, form: TableFormat = TableFormat.CSV) -> None:
        """Write differences.csv."""
        columns = {name: NUMBER if name == "seed" else TEXT for name in Different._fields}
        with ResultTable(folder, DIFFERENCES, columns, form) as table:
            for different in self.differences():
                table.add(different)

    def table(self) -> Iterator[list[str]]:
        """Yield the rows of a table for users: a heading, then one row per measure."""
        yield ["measure", *(cell for place, n in enumerate(self.names) for cell in ([n, "change"] if place else [n]))]
        for label, figures in self.figures():
            cells = [label]
            for figure in figures:
                spread = f" ± {figure.spread:.4g}" if figure.spread else ""
                cells.append(_number(figure.value) + spread)
                if figure.change is not None:
                    cells.append(f"{figure.change:+.4g}" if figure.change else "=")
            yield cells

    def write(self, folder: Path, title: str, form: TableFormat = TableFormat.CSV) -> None:
        """Write the report and comparison.json beside the results and, with several configurations,
        differences.csv."""
        if len(self.names) > 1:
            self.write_differences(folder, form)
        content = {"configurations": list(self.names), "measures": self.to_dict()}
        (folder / COMPARISON).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        runs = [result for name in self.names for result in self.results[name]]
        (folder / REPORT).write_text(report(title, runs, self.table()), encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON output."""
        return {
            label: {
                name: {
                    "value": _rounded(figure.value),
                    "stddev": _rounded(figure.spread),
                    "change": None if figure.change is None else _rounded(figure.change),
                }
                for name, figure in zip(self.names, figures, strict=True)
            }
            for label, figures in self.figures()
        }


def compare(results: Sequence[RunResult]) -> Comparison:
    """Compare the results of all configurations with all seeds."""
    by_name: dict[str, list[RunResult]] = {}
    for result in results:
        by_name.setdefault(result.name, []).append(result)
    return Comparison(tuple(by_name), by_name)


def _last(result: RunResult) -> Iterator[Any]:
    """Yield the last placement of every pod."""
    yield from {placed.pod: placed for placed in result.placements()}.values()


def _rounded(value: float) -> float:
    """Return six digits: results that were read from files have no more."""
    return float(f"{value:.6g}")


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.4g}"


def _mean(run: RunResult, name: str) -> float:
    return run.mean(name) if name in run.series else 0.0


COLOURS = ("#1565c0", "#c62828", "#2e7d32", "#f9a825", "#6a1b9a", "#00838f", "#8d6e63", "#455a64")
WIDTH, HEIGHT = 560, 200
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 26
"""Margins of a plot."""
TICKS = 4
MIN_POINTS = 2

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; color: #222 }}
table {{ border-collapse: collapse; margin: 1em 0 }}
th, td {{ padding: 2px 10px; border-bottom: 1px solid #ddd; text-align: right }}
th:first-child, td:first-child {{ text-align: left }}
.plots {{ display: flex; flex-wrap: wrap; gap: 16px }}
figure {{ margin: 0 }} figcaption {{ font-weight: 600 }}
svg text {{ font: 11px system-ui, sans-serif; fill: #555 }}
.failed {{ color: #c62828 }}
</style></head><body><h1>{title}</h1>
{body}
</body></html>
"""


def report(title: str, results: Sequence[RunResult], table: Iterable[Sequence[str]]) -> str:
    """Return the page. `table` has a heading and rows of text. Every sampled measure gets a plot."""
    names = list(dict.fromkeys(result.name for result in results))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    parts = [_assertions(results), _table(table), _legend(colours), '<div class="plots">']
    measured = dict.fromkeys(name for result in results for name in result.series if name != "time")
    parts += [plot(name, results, colours) for name in measured]
    return _PAGE.format(title=escape(title), body="\n".join([*parts, "</div>"]))


def plot(measure: str, results: Sequence[RunResult], colours: dict[str, str]) -> str:
    """Return a plot of one measure of all results over time, or an empty string if there are too few samples."""
    lines = [(colours[result.name], _points(result, measure)) for result in results]
    points = [point for _, found in lines for point in found]
    if len(points) < MIN_POINTS:
        return ""
    last = max(time for time, _ in points) or 1.0
    low, high = min(0.0, *(value for _, value in points)), max(value for _, value in points)
    high = high if high > low else low + 1.0

    def x(time: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * time / last, 1)

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low), 1)

    shapes = []
    for tick in range(TICKS + 1):
        value, time = low + (high - low) * tick / TICKS, last * tick / TICKS
        shapes.append(f'<path d="M{LEFT} {y(value)}H{WIDTH - RIGHT}" stroke="#e0e0e0"/>')
        shapes.append(f'<text x="{LEFT - 6}" y="{y(value) + 4}" text-anchor="end">{value:.4g}</text>')
        moment = format_duration(round(time))
        shapes.append(f'<text x="{x(time)}" y="{HEIGHT - 8}" text-anchor="middle">{moment}</text>')
    for colour, found in lines:
        if found:
            path = "M" + "L".join(f"{x(time)} {y(value)}" for time, value in _thinned(found))
            shapes.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-opacity="0.8"/>')
    drawn = "".join(shapes)
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{drawn}</svg>'
    return f"<figure><figcaption>{escape(measure)}</figcaption>{svg}</figure>"


def _points(result: RunResult, measure: str) -> list[tuple[float, float]]:
    column = result.series.get(measure, ())
    pairs = zip(result.series["time"], column, strict=False)
    return [(time, value) for time, value in pairs if not isnan(value)]


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Drop the inner points of level stretches, which do not change the line."""
    kept = [points[0]]
    for before, here in pairwise(points):
        if here[1] != kept[-1][1]:
            kept += [before, here] if before != kept[-1] else [here]
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def _table(rows: Iterable[Sequence[str]]) -> str:
    heading, *others = rows
    lines = [_row("th", heading), *(_row("td", row) for row in others)]
    return "<table>" + "\n".join(lines) + "</table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _legend(colours: dict[str, str]) -> str:
    items = (f'<span style="color:{colour}">■</span> {escape(name)}' for name, colour in colours.items())
    return f"<p>{' &nbsp; '.join(items)}</p>"


def _assertions(results: Sequence[RunResult]) -> str:
    failed = [(result, text) for result in results for text in result.failed]
    items = (
        f'<li class="failed">{escape(f"{result.name}, seed {result.seed}: {text}")}</li>' for result, text in failed
    )
    return f"<h2>Failed assertions</h2><ul>{''.join(items)}</ul>" if failed else ""
