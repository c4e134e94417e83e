"""The last five minutes of a scheduler: attempts per second, and how long they took."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nicegui import ui

from moorage.web.pages import shell
from moorage.web.pages.explanation_view import COLOURS
from moorage.web.source import Json

RESULTS = {"scheduled": COLOURS[2], "unschedulable": COLOURS[1], "error": COLOURS[5]}
QUANTILES = {"p50": COLOURS[0], "p99": COLOURS[3]}
MILLISECONDS = 300_000
"""As much as a summary covers."""
Draw = Callable[[list[Json]], None]


def show_curves() -> Draw:
    """Two charts; what is returned draws the steps of a summary in them."""
    charts = []
    with ui.element("div").classes("m-halves"):
        for title in ("Attempts per second", "Milliseconds per attempt"):
            with shell.card():
                shell.section(title)
                chart = ui.echart({}).style("height: 180px; width: 100%")
                charts.append(chart.props(f'role="img" aria-label="{title}, the last minutes"'))

    def draw(steps: list[Json]) -> None:
        for chart, options in zip(charts, (rates(steps), latencies(steps)), strict=True):
            if chart.options != options:
                chart.options.clear()
                chart.options.update(options)
                chart.update()

    return draw


def rates(steps: list[Json]) -> Json:
    """By result, on top of each other."""
    stacked = {"type": "bar", "stack": "attempts", "barWidth": 10}
    return _options(
        steps,
        [
            _line(result, colour, steps, [step[result] / step["seconds"] for step in steps]) | stacked
            for result, colour in RESULTS.items()
        ],
    )


def latencies(steps: list[Json]) -> Json:
    """Steps without attempts leave a gap."""
    return _options(
        steps,
        [
            _line(name, colour, steps, [_milliseconds(step[f"{name}Seconds"]) for step in steps])
            for name, colour in QUANTILES.items()
        ],
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)


def _line(name: str, colour: str, steps: list[Json], values: Sequence[float | None]) -> Json:
    """A point at the end of each step."""
    ends = (round(1000 * (step["from"] + step["seconds"])) for step in steps)
    return {
        "name": name,
        "type": "line",
        "symbolSize": 3,
        "data": [list(point) for point in zip(ends, values, strict=True)],
        "lineStyle": {"width": 1.5},
        "itemStyle": {"color": colour},
    }


def _options(steps: list[Json], series: list[Json]) -> Json:
    soft = {"color": "#7b8a99"}
    end = round(1000 * (steps[-1]["from"] + steps[-1]["seconds"])) if steps else None
    span = {} if end is None else {"min": end - MILLISECONDS, "max": end}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 16, "top": 34, "bottom": 4, "containLabel": True},
        "legend": {"top": 0, "textStyle": soft},
        "tooltip": {"renderMode": "richText", "trigger": "axis", "confine": True},
        "xAxis": {"type": "time", **span, "axisLabel": {**soft, "hideOverlap": True}},
        "yAxis": {"type": "value", "axisLabel": soft, "splitNumber": 3},
        "series": series,
    }
