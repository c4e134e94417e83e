"""report.html: tables and plots of one or several results, in one file that loads nothing.

Plots are SVG, made here: lines over virtual time, a colour for each configuration, a line for each seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from math import isnan

from moorage.api.times import format_duration
from moorage.sim.results import Result

COLOURS = ("#1565c0", "#c62828", "#2e7d32", "#f9a825", "#6a1b9a", "#00838f", "#8d6e63", "#455a64")
WIDTH, HEIGHT = 560, 200
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 26
"""Margins of a plot."""
TICKS = 4
FEWEST_POINTS = 2

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


def report(title: str, results: Sequence[Result], table: Iterable[Sequence[str]]) -> str:
    """The page. `table` has a heading and rows of text; every measure that was sampled gets a plot."""
    names = list(dict.fromkeys(result.name for result in results))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    parts = [_assertions(results), _table(table), _legend(colours), '<div class="plots">']
    measured = dict.fromkeys(name for result in results for name in result.series if name != "time")
    parts += [plot(name, results, colours) for name in measured]
    return _PAGE.format(title=escape(title), body="\n".join([*parts, "</div>"]))


def plot(measure: str, results: Sequence[Result], colours: dict[str, str]) -> str:
    """One measure of all results over time; nothing where there are too few samples."""
    lines = [(colours[result.name], _points(result, measure)) for result in results]
    points = [point for _, found in lines for point in found]
    if len(points) < FEWEST_POINTS:
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


def _points(result: Result, measure: str) -> list[tuple[float, float]]:
    column = result.series.get(measure, ())
    pairs = zip(result.series["time"], column, strict=False)
    return [(time, value) for time, value in pairs if not isnan(value)]


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without the inner points of level stretches, which change nothing."""
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


def _assertions(results: Sequence[Result]) -> str:
    failed = [(result, text) for result in results for text in result.failed]
    items = (
        f'<li class="failed">{escape(f"{result.name}, seed {result.seed}: {text}")}</li>'
        for result, text in failed
    )
    return f"<h2>Assertions that do not hold</h2><ul>{''.join(items)}</ul>" if failed else ""
