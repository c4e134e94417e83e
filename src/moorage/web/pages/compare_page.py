"""Compare: results of simulations side by side: measures, curves, and pods on different nodes."""

from __future__ import annotations

from nicegui import ui

from moorage.web.pages import shell
from moorage.web.pages.chart_style import GRID, SOFT
from moorage.web.pages.explanation_view import COLOURS
from moorage.web.pages.text import address
from moorage.web.source import Json, ResultsSource

PER_PAGE = 50
FIRST = "utilisation.cpu"
"""The measure whose curve is shown first, if it exists."""
TIMES = "wait."
"""Prefix of measures in seconds."""
LINES: tuple[str | list[int], ...] = ("solid", "dashed", "dotted", [10, 3, 2, 3], [2, 6], [14, 4])
"""Kinds of lines, one for each seed."""
STEPS = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800)
MAX_MARKS = 8
_DURATION = """(seconds) => {
  if (seconds < 60) return `${Math.round(seconds * 1000) / 1000}s`;
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole % 3600 / 60);
  const rest = whole % 60;
  return (hours ? `${hours}h` : "") + (minutes ? `${minutes}m` : "") + (rest ? `${rest}s` : "");
}"""
"""A number of seconds as text, in the browser."""


class ComparePage:
    def __init__(self, source: ResultsSource, measure: str) -> None:
        self._source = source
        self._measure = measure or FIRST
        self._found: Json = {}

    async def show(self) -> None:
        with shell.frame(self._source, "Compare", "Compare") as content:
            shell.headline("Simulation results")
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

    async def _fill(self) -> None:
        self._found = found = await self._source.results()
        for text in found["failed"]:
            shell.text(f"Assertion failed: {text}").classes("m-bad")
        if found["series"]:
            with shell.card():
                self._show_curves()
        with shell.card():
            shell.section("Measures")
            fields = [f"c{place}" for place in range(len(found["heading"]))]
            rows = [dict(zip(fields, row, strict=True)) for row in found["rows"]]
            shell.table(list(zip(fields, found["heading"], strict=True)), rows, "c0")
        if len(found["names"]) > 1:
            with shell.card():
                shell.section("Pods on different nodes")
                _show_differences(found)

    def _show_curves(self) -> None:
        measures = list(self._found["series"])
        self._measure = self._measure if self._measure in measures else measures[0]
        with ui.element("div").classes("m-row"):
            shell.section("Over virtual time")
            choice = ui.select(measures, value=self._measure, label="Measure")
            choice.props("dense outlined options-dense").style("min-width: 260px")
            choice.on_value_change(lambda event: self._choose(event.value))
        self._chart = ui.echart(_curves(self._found, self._measure)).style("height: 340px; width: 100%")

    def _choose(self, measure: str) -> None:
        self._measure = measure
        ui.navigate.history.replace(address("/compare", {"measure": measure}))
        self._chart.options.clear()
        self._chart.options.update(_curves(self._found, measure))
        self._chart.update()


def _curves(found: Json, measure: str) -> Json:
    """Return a chart with a colour for each configuration and a kind of line for each seed."""
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(found["names"])}
    runs = found["series"][measure]
    seeds = {seed: place for place, seed in enumerate(sorted({run["seed"] for run in runs}))}
    time = {":formatter": _DURATION}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 24, "top": 40, "bottom": 30, "containLabel": True},
        "legend": {"type": "scroll", "top": 0, "textStyle": SOFT},
        "tooltip": {"renderMode": "richText", "trigger": "axis", "confine": True},
        "xAxis": {
            "type": "value",
            "name": "virtual time",
            "nameLocation": "middle",
            "nameGap": 24,
            "nameTextStyle": SOFT,
            "axisLabel": {**SOFT, **time},
            "interval": step(max((point[0] for run in runs for point in run["points"][-1:]), default=0.0)),
            "axisPointer": {"label": {":formatter": f"(at) => ({_DURATION})(at.value)"}},
            **GRID,
        },
        "yAxis": {
            "type": "value",
            "scale": True,
            "axisLabel": {**SOFT, **(time if measure.startswith(TIMES) else {})},
            **GRID,
        },
        "series": [
            {
                "name": f"{run['name']}, seed {run['seed']}" if len(seeds) > 1 else run["name"],
                "type": "line",
                "showSymbol": False,
                "step": "end",
                "data": run["points"],
                "lineStyle": {"width": 1.5, "type": LINES[seeds[run["seed"]] % len(LINES)]},
                "itemStyle": {"color": colours[run["name"]]},
            }
            for run in runs
        ],
    }


def step(seconds: float) -> float:
    """Return the distance of the marks on an axis of time, so that they are round and at most eight."""
    return next((each for each in STEPS if seconds <= MAX_MARKS * each), seconds / MAX_MARKS)


def _show_differences(found: Json) -> None:
    if found["note"]:
        shell.empty(found["note"])
    elif not found["differences"]:
        shell.empty("Every pod is on the same node in all configurations.")
    else:
        first = found["names"][0]
        columns = (
            ("pod", "Pod"),
            ("seed", "Seed"),
            ("first", f"Node with {first}"),
            ("configuration", "Configuration"),
            ("node", "Node"),
            ("decided_by", "Decided by"),
        )
        rows = [
            {**each, "id": place, "first": each["first"] or "pending", "node": each["node"] or "pending"}
            for place, each in enumerate(found["differences"])
        ]
        shell.table(columns, rows, "id", PER_PAGE)
        if found["more"]:
            ui.label(f"Only the first {len(rows):,} are shown; the results folder has all of them.").classes("m-soft")
