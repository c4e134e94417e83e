"""Charts of the last five minutes of a scheduler: attempts per second and their latency."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nicegui import ui

from moorage.endpoints.answers import SummaryStep
from moorage.web.pages import shell
from moorage.web.pages.chart_style import GRID, SOFT
from moorage.web.pages.explanation_view import COLOURS
from moorage.web.source import Json

RESULTS = {"scheduled": COLOURS[2], "unschedulable": COLOURS[1], "error": COLOURS[5]}
QUANTILES = {"p50": COLOURS[0], "p99": COLOURS[3]}
MILLISECONDS = 300_000
"""The span of a summary."""
Draw = Callable[[Sequence[SummaryStep]], None]


def show_curves() -> Draw:
    """Show two charts. Returns a function that draws the steps of a summary in them."""
    charts = []
    with ui.element("div").classes("m-halves"):
        for title in ("Attempts per second", "Milliseconds per attempt"):
            with shell.card():
                shell.section(title)
                chart = ui.echart({}).style("height: 180px; width: 100%")
                charts.append(chart.props(f'role="img" aria-label="{title}, the last minutes"'))

    def draw(steps: Sequence[SummaryStep]) -> None:
        for chart, options in zip(charts, (rates(steps), latencies(steps)), strict=True):
            if chart.options != options:
                chart.options.clear()
                chart.options.update(options)
                chart.update()

    return draw


def rates(steps: Sequence[SummaryStep]) -> Json:
    """Return a chart of attempts per second, stacked by result."""
    stacked = {"type": "bar", "stack": "attempts", "barWidth": 10}
    return _options(
        steps,
        [
            _line(result, colour, steps, [getattr(step, result) / step.seconds for step in steps]) | stacked
            for result, colour in RESULTS.items()
        ],
    )


def latencies(steps: Sequence[SummaryStep]) -> Json:
    """Return a chart of latencies; steps without attempts leave a gap."""
    return _options(
        steps,
        [
            _line(name, colour, steps, [_milliseconds(getattr(step, f"{name}_seconds")) for step in steps])
            for name, colour in QUANTILES.items()
        ],
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)


def _line(name: str, colour: str, steps: Sequence[SummaryStep], values: Sequence[float | None]) -> Json:
    """Return a series with a point at the end of each step."""
    ends = (_end(step) for step in steps)
    return {
        "name": name,
        "type": "line",
        "symbolSize": 3,
        "data": [list(point) for point in zip(ends, values, strict=True)],
        "lineStyle": {"width": 1.5},
        "itemStyle": {"color": colour},
    }


def _end(step: SummaryStep) -> int:
    return round(1000 * (step.from_ + step.seconds))


def _options(steps: Sequence[SummaryStep], series: list[Json]) -> Json:
    span = {"min": _end(steps[-1]) - MILLISECONDS, "max": _end(steps[-1])} if steps else {}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 16, "top": 34, "bottom": 4, "containLabel": True},
        "legend": {"top": 0, "textStyle": SOFT},
        "tooltip": {"renderMode": "richText", "trigger": "axis", "confine": True},
        "xAxis": {"type": "time", **span, "axisLabel": {**SOFT, "hideOverlap": True}},
        "yAxis": {"type": "value", "axisLabel": SOFT, "splitNumber": 3, **GRID},
        "series": series,
    }
