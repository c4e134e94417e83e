"""NodeUsage: the usage of nodes, as values that plugins read in their hooks.

There is one instance per process and provider, shared by plugins and profiles. The first plugin fetches in the
background; if it stops, another one takes over. Every tick, successful or not, creates a new state that is valid until
the next tick: values, their age, and the requests of pods at the time of measurement."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack

import aiohttp
import msgspec
import numpy as np
from prometheus_client import Counter, Gauge

from moorage.api.errors import MoorageError
from moorage.contrib.metrics.history import LATEST, LATEST_VALUE, UsageHistory, Window
from moorage.contrib.metrics.load_watcher import LoadWatcher
from moorage.contrib.metrics.metrics_server import MetricsServer
from moorage.contrib.metrics.prometheus import Prometheus
from moorage.contrib.metrics.provider import LOAD_WATCHER, PROMETHEUS, MetricProvider
from moorage.contrib.metrics.sample import CPU, MEMORY, Sample, SampleSource, capacity
from moorage.framework.access import Version
from moorage.framework.handle import Handle
from moorage.framework.nodes import FloatArray, Nodes

OnTick = Callable[[], AbstractContextManager[object]]
"""Entered before the values change, and left when they have changed."""

MIN_KEEP_SECONDS = 300.0
"""Minimum seconds of history to keep: longer than values take to arrive."""
AGE = "age"
TAKEN, REQUESTED, CAPACITY = "taken", "requested ", "capacity "
"""Columns of the history beside the measures: when a node was measured; what its pods requested at the tick,
and what it had, by resource."""

_FAILURES = (
    MoorageError, aiohttp.ClientError, msgspec.MsgspecError, OSError, TimeoutError, ValueError, KeyError,
    TypeError,
)  # fmt: skip
"""The exceptions of a source that is unreachable or sends an invalid response."""
_MISSING = Gauge("moorage_usage_missing_nodes", "Nodes without a measured usage.", ["provider"])
_OLDEST = Gauge("moorage_usage_oldest_seconds", "Age of the oldest usage of a node.", ["provider"])
_TICKS = Counter("moorage_usage_refreshes", "Attempts to measure the usage of nodes.", ["provider", "result"])

_numbers = itertools.count()
_log = logging.getLogger(__name__)


class NodeUsage:
    """Usage in percent of a node's capacity, by measure; NaN if unknown."""

    def __init__(self, provider: MetricProvider, source: SampleSource | None = None) -> None:
        self.provider = provider
        self.source = source or _source(provider)
        self.version = Version()
        """For `reads`; bumped with every tick."""
        self._measures: set[str] = set()
        self._history = UsageHistory()
        self._keep = MIN_KEEP_SECONDS
        self._window = 0.0
        self._now = 0.0
        self._index: dict[str, int] = {}
        self._made: dict[tuple[str, Window], Values] = {}
        """The values that plugins have read since the last tick."""
        self._listeners: list[OnTick] = []
        self._turn = asyncio.Lock()
        self._problem = ""

    @classmethod
    def of(cls, handle: Handle, provider: MetricProvider, measures: Iterable[str], keep: float = 0.0) -> NodeUsage:
        """Return the instance of this provider, with these measures and history for windows of up to `keep` seconds."""
        key = ("moorage.contrib.metrics", msgspec.json.encode(provider))
        found = handle.shared(key, lambda: cls(provider))
        found._measures.update(measures)
        found._keep = max(found._keep, keep + MIN_KEEP_SECONDS)
        return found

    async def run(self, handle: Handle, on_tick: OnTick) -> None:
        """Keep the values current until cancelled, and enter `on_tick` around every change."""
        self._listeners.append(on_tick)
        try:
            async with self._turn:
                while True:
                    await self.refresh(handle)
                    await handle.clock.sleep(self.provider.interval_seconds)
        finally:
            self._listeners.remove(on_tick)

    async def refresh(self, handle: Handle) -> None:
        """Fetch once. After a failure the old values stay and grow older."""
        sample = None
        try:
            sample = await self.source.fetch(handle, sorted(self._measures))
        except _FAILURES as error:
            self._report(f"{type(error).__name__}: {error}")
        else:
            self._report("")
        self.accept(sample, handle)

    def _report(self, problem: str) -> None:
        """Log one line when the problem changes, not one per tick."""
        _TICKS.labels(self.provider.label, "error" if problem else "success").inc()
        if problem != self._problem:
            self._problem = problem
            if problem:
                _log.warning("Cannot measure node usage with %s: %s", self.provider.label, problem)
            else:
                _log.warning("Measuring node usage with %s again", self.provider.label)

    def accept(self, sample: Sample | None, handle: Handle) -> None:
        """Begin a new tick with this sample, or without one."""
        with ExitStack() as stack:
            for listener in self._listeners:
                stack.enter_context(listener())
            self._tick(sample, handle.nodes, handle.clock.wall())

    def _tick(self, sample: Sample | None, nodes: Nodes, now: float) -> None:
        names, self._now = nodes.names, now
        columns = {REQUESTED + r: nodes.floats("nonzero_requested", r).copy() for r in (CPU, MEMORY)}
        columns |= {CAPACITY + r: capacity(nodes, r).copy() for r in (CPU, MEMORY)}
        if sample is not None:
            self._window = sample.window
            known = {name: index for index, name in enumerate(sample.names)}
            rows = np.array([known.get(name, -1) for name in names], dtype=np.int64)
            for measure, values in {**sample.values, TAKEN: sample.taken}.items():
                columns[measure] = np.append(values, np.nan)[rows]
        self._history.add(now, names, columns, self._keep)
        self._index = {name: index for index, name in enumerate(names)}
        self._made.clear()
        self.version.bump()
        self._measure_itself()

    def _measure_itself(self) -> None:
        ages = self._now - self._history.value(TAKEN)
        known = ages[~np.isnan(ages)]
        _MISSING.labels(self.provider.label).set(len(ages) - len(known))
        _OLDEST.labels(self.provider.label).set(known.max(initial=0.0))

    def has(self, measure: str) -> bool:
        """Return whether the source knows such a measure."""
        return self._history.has(measure)

    def percent(self, measure: str, window: Window = LATEST) -> Values:
        """Return percent of capacity, or the unit of a custom measure that a plugin names."""
        return self._values((measure, window), lambda: self._history.value(measure, window))

    def used(self, resource: str, window: Window = LATEST) -> Values:
        """Return usage in the units of `allocatable`."""

        def compute() -> FloatArray:
            return self._history.value(resource, window) / 100 * self._history.value(CAPACITY + resource)

        return self._values((CAPACITY + resource, window), compute)

    def taken(self) -> Values:
        """Return when each node was measured, in Unix seconds."""
        return self._values((TAKEN, LATEST), lambda: self._history.value(TAKEN))

    def ages(self) -> Values:
        """Return the seconds since each node was measured, as of this tick."""
        return self._values((AGE, LATEST), lambda: self._now - self._history.value(TAKEN))

    def measured_requests(self, resource: str, window: Window = LATEST) -> Values:
        """Return what the pods of each node requested when it was measured, as in `nonzero_requested`: these pods are
        included in `used`. Pods that were added while the source or the window averaged are included in part only and
        count as placed later."""
        seconds = self._window + (0.0 if window.function == LATEST_VALUE else window.seconds)

        def compute() -> FloatArray:
            return self._history.as_of(REQUESTED + resource, self._history.value(TAKEN) - seconds)

        return self._values((REQUESTED + resource, window), compute)

    def _values(self, key: tuple[str, Window], compute: Callable[[], FloatArray]) -> Values:
        if key not in self._made:
            self._made[key] = self.values(compute())
        return self._made[key]

    def values(self, array: FloatArray, missing: float = math.nan) -> Values:
        """Return values that a plugin computes from arrays of `Values`, valid until the next tick. `missing` is the
        value of nodes that are added before that."""
        return Values(np.append(array, missing), self._index)


class Values:
    """One value per node as of a tick; NaN if unknown. Arrays have the order of the tick and belong together as long as
    `NodeUsage.version` stays the same."""

    __slots__ = ("_index", "_key", "_padded")

    def __init__(self, padded: FloatArray, index: dict[str, int]) -> None:
        self._key = ("moorage.contrib.values", next(_numbers))
        """Of the column; a number, because the node table keeps keys after the tick is over."""
        self._index = index
        self._padded = padded
        """With one entry more, for nodes that the tick does not know."""

    @property
    def array(self) -> FloatArray:
        return self._padded[:-1]

    def of(self, nodes: Nodes) -> FloatArray:
        """Return one entry per node of the view."""
        found: FloatArray = nodes.node_column(self._key, self._gather)
        return found

    def _gather(self, nodes: Nodes) -> FloatArray:
        return self._padded[[self._index.get(name, -1) for name in nodes.names]]

    def at(self, name: str) -> float:
        """Return the entry of one node."""
        found: float = self._padded.item(self._index.get(name, -1))
        return found


def _source(provider: MetricProvider) -> SampleSource:
    if provider.type == PROMETHEUS:
        return Prometheus(provider)
    return LoadWatcher(provider) if provider.type == LOAD_WATCHER else MetricsServer()
