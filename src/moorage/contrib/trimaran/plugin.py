"""The base of the Trimaran plugins: the source of load values, averages and deviations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from moorage.api.problems import Problem, child
from moorage.contrib.metrics import CPU, MEMORY, MetricProvider, NodeUsage, Window
from moorage.contrib.metrics.history import AVERAGE, DEVIATION, LATEST
from moorage.contrib.metrics.metrics_server import NEEDS
from moorage.contrib.metrics.provider import LOAD_WATCHER
from moorage.contrib.metrics.sample import deviation
from moorage.contrib.metrics.usage import Values
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableScorePlugin
from moorage.framework.nodes import FloatArray
from moorage.framework.optional import ReusablePlugin

SECONDS = 900.0
"""Of samples, for sources that give no averages themselves."""
MAX_AGE = 300.0
"""Seconds after which a value counts as missing: more than a load-watcher is ever late."""


class TrimaranArgs(PluginArgs):
    """The address of a load-watcher, or another metric provider."""

    metric_provider: MetricProvider = MetricProvider()
    watcher_address: str = ""

    @property
    def provider(self) -> MetricProvider:
        if self.watcher_address:
            return MetricProvider(type=LOAD_WATCHER, address=self.watcher_address)
        return self.metric_provider

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if self.watcher_address:
            yield from self.provider.validate_address(child(path, "watcherAddress"))
        else:
            yield from self.metric_provider.validate(child(path, "metricProvider"))


class TrimaranPlugin(WholeTableScorePlugin, ReusablePlugin):
    """Scores nodes by load; nodes without metrics score 0."""

    needs = NEEDS

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        measures = [CPU, MEMORY, deviation(CPU), deviation(MEMORY)]
        self.usage = NodeUsage.of(handle, args.provider, measures, SECONDS)
        self._made: dict[tuple[str, str], Values] = {}
        self._made_for = -1

    async def run(self) -> None:
        await self.usage.run(self.handle, nullcontext)

    def average(self, resource: str) -> Values:
        """Return the average in percent of capacity; NaN if it is unknown or too old."""
        return self._fresh(resource, AVERAGE)

    def deviation(self, resource: str) -> Values:
        """Return the standard deviation that belongs to `average`."""
        return self._fresh(resource, DEVIATION)

    def _fresh(self, resource: str, function: str) -> Values:
        usage = self.usage
        if self._made_for != usage.version.value:
            self._made_for = usage.version.value
            self._made.clear()
        found = self._made.get((resource, function))
        if found is None:
            values = self._statistic(resource, function).array
            fresh = usage.ages().array <= MAX_AGE
            found = self._made[resource, function] = usage.values(np.where(fresh, values, np.nan))
        return found

    def _statistic(self, resource: str, function: str) -> Values:
        """Return the values of a source that reports deviations as they are; compute them over a window for other
        sources."""
        if self.usage.has(deviation(resource)):
            return self.usage.percent(deviation(resource) if function == DEVIATION else resource, LATEST)
        return self.usage.percent(resource, Window(function=function, seconds=SECONDS))


def rounded(scores: FloatArray) -> FloatArray:
    """Round half up; 0 if unknown."""
    whole: FloatArray = np.floor(np.nan_to_num(scores) + 0.5)
    return whole
