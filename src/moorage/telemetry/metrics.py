"""The scheduler's interface to its metrics: one object per process and one meter per profile.

The scheduling cycle runs one pod at a time, so a meter is a stopwatch with a lap per extension point: one
clock reading and two additions. Everything else is computed when the metrics are read. For example,
evaluations of plugins are kept as counts of equal attempts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from moorage.telemetry.catalog import POINT, MetricCatalog, MetricsVersion, NewestMetrics
from moorage.telemetry.instruments import Buckets, Histogram, Labels

SUCCESS = "Success"
METRICS = "moorage.metrics"
"""The key of the metrics in `handle.shared`."""
SAMPLE = 10
"""Plugins are timed individually in one of this many cycles."""
MANY_ATTEMPTS = 15
POD = "pod"
"""The type of an entity that is a single pod."""
QUEUES_OF_GROUPS = ("incomplete", "pending")
"""Where pods of groups wait for their group; empty without pod groups."""

P = TypeVar("P")
Plugins = Mapping[str, Sequence[str]]
"""Label of an extension point → the names of its plugins."""
Skipped = tuple[frozenset[str], frozenset[str] | None]
"""The plugins that returned Skip in PreFilter, and so skip Filter, and the same for PreScore and Score. The
second is None if nothing was scored."""


class SchedulerMetrics(MetricCatalog):
    """All metrics of one scheduler. Written on its event loop only; read from any thread."""

    def __init__(self, now: Callable[[], float], version: MetricsVersion | None = None) -> None:
        super().__init__(version if version is not None else NewestMetrics())
        self.now = now
        """A monotonic clock in seconds."""
        self.profiles: dict[str, ProfileMeter] = {}
        self.make_meter: MakeMeter = ProfileMeter
        self._past: Counter[Labels] = Counter()
        """Evaluations counted by meters that were replaced. A counter must never decrease."""
        self.evaluations.read_from(self._evaluations)
        self._incoming: Counter[tuple[str, str]] = Counter()
        self.incoming.read_from(lambda: list(self._incoming.items()))
        # Without pod groups every entity is a pod.
        self.incoming_entities.read_from(lambda: [((*labels, POD), n) for labels, n in list(self._incoming.items())])

    def profile(self, name: str, filters: Plugins, scores: Plugins) -> ProfileMeter:
        """Return the meter of a profile. `filters` and `scores` are the plugins whose evaluations are counted."""
        if (known := self.profiles.get(name)) is not None:
            self._past.update(dict(known.evaluations()))
        self.profiles[name] = made = self.make_meter(self, name, filters, scores)
        return made

    def waiting(self, queues: Mapping[str, int]) -> None:
        """Set the number of pending pods by queue. From 1.37 on, two further queues hold pods of groups."""
        groups = dict.fromkeys(QUEUES_OF_GROUPS, 0) if self._version.entity_metrics else {}
        self.pending.replace(((queue,), count) for queue, count in {**queues, **groups}.items())
        if self._version.entity_metrics:
            self.queued_entities.replace(((queue, POD), count) for queue, count in queues.items())

    def came(self, queue: str, event: str) -> None:
        """Count a pod that was added to a queue."""
        self._incoming[queue, event] += 1

    def hinted(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        """Record a call of a queueing hint."""
        self.hint_seconds.observe(seconds, plugin, event, answer)

    def bound(self, attempts: int, waited: float, after_flush: bool) -> None:
        """Record a bound pod: its number of attempts, and the seconds since it first became active."""
        label = str(attempts) if attempts < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
        self.sli_seconds.observe(waited, label)
        self.pod_attempts.observe(attempts)
        if after_flush:
            self.after_flush.inc()

    def preempted(self, seconds: float, result: str) -> None:
        """Record the deletion of victims in the background."""
        self.preemption_seconds.observe(seconds, result)
        self.preemption_runs.inc(result)

    def _evaluations(self) -> Iterator[tuple[Labels, float]]:
        total = self._past.copy()
        for meter in list(self.profiles.values()):
            total.update(dict(meter.evaluations()))
        return iter(total.items())


class _Successes(dict[str, Buckets]):
    """Label of an extension point → the histogram of its successful runs, created on first use."""

    def __init__(self, seconds: Histogram, profile: str) -> None:
        super().__init__()
        self._seconds = seconds
        self._profile = profile

    def __missing__(self, point: str) -> Buckets:
        found = self[point] = self._seconds.child(point, SUCCESS, self._profile)
        return found


class ProfileMeter:
    """The stopwatch of one profile."""

    def __init__(self, metrics: SchedulerMetrics, name: str, filters: Plugins, scores: Plugins) -> None:
        self.metrics = metrics
        self.name = name
        self.sampled = False
        """Whether plugins are timed individually in this cycle."""
        self._now = metrics.now
        self._filters = filters
        self._scores = scores
        self._last = 0.0
        self._cycles = 0
        self._success = _Successes(metrics.point_seconds, name)
        self._skipped: dict[Skipped, int] = {}
        self._timed: dict[str, dict[str, Buckets]] = {}
        """Extension point → plugin → histogram, for the cycles in which plugins are timed."""
        self._warm = metrics.batches.child(name, "hint_used")
        self._cold = metrics.batches.child(name, "no_hint")
        self._algorithm = metrics.algorithm_seconds.child()

    def begin(self, now: float) -> None:
        """Start a cycle."""
        self._last = now
        self._cycles += 1
        self.sampled = self._cycles % SAMPLE == 1

    def lap(self, point: str, status: str = SUCCESS) -> None:
        """End an extension point that started at the last lap."""
        now = self._now()
        seconds = now - self._last
        self._last = now
        buckets = self._success[point] if status is SUCCESS else self._other(point, status)
        buckets.counts[bisect_left(POINT, seconds)] += 1
        buckets.total += seconds

    def skip(self) -> None:
        """Leave out the time since the last lap, which belongs to no extension point."""
        self._last = self._now()

    def observe(self, point: str, since: float, status: str = SUCCESS) -> float:
        """Record an extension point outside the cycle that started at `since`. Return the current time."""
        now = self._now()
        buckets = self._success[point] if status is SUCCESS else self._other(point, status)
        buckets.observe(now - since)
        return now

    def empty(self, point: str) -> None:
        """Record an extension point without plugins."""
        self._success[point].counts[0] += 1

    def chose(self, started: float, warm: bool) -> None:
        """Record the choice of a node. If plugins ran, it ended at the last lap."""
        if warm:
            self._warm.value += 1
            self._last = self._now()
        else:
            self._cold.value += 1
        self._algorithm.observe(self._last - started)

    def evaluated(self, skip_filter: Iterable[str], skip_score: Iterable[str] | None) -> None:
        """Count an attempt in which all plugins but these ran."""
        key = (frozenset(skip_filter), None if skip_score is None else frozenset(skip_score))
        self._skipped[key] = self._skipped.get(key, 0) + 1

    def attempted(self, result: str, seconds: float) -> None:
        """Record a finished attempt, including its binding."""
        self.metrics.attempts.child(result, self.name).value += 1
        self.metrics.attempt_seconds.child(result, self.name).observe(seconds)

    def timed(self, plugins: Iterable[P], point: str) -> Iterable[P]:
        """Yield the plugins, timing each until the next one is requested. A plugin that ends the loop is not timed."""
        buckets_of, began = self._timed.setdefault(point, {}), self._now()
        for plugin in plugins:
            yield plugin
            now = self._now()
            name: str = plugin.name  # type: ignore[attr-defined]  # plugins of any kind have one
            buckets = buckets_of.get(name)
            if buckets is None:
                buckets = buckets_of[name] = self.metrics.plugin_seconds.child(name, point, SUCCESS)
            buckets.observe(now - began)
            began = now

    def plugin(self, name: str, point: str, seconds: float, status: str = SUCCESS) -> None:
        """Record the duration of a plugin."""
        self.metrics.plugin_seconds.child(name, point, status).observe(seconds)

    def _other(self, point: str, status: str) -> Buckets:
        return self.metrics.point_seconds.child(point, status, self.name)

    def evaluations(self) -> Iterator[tuple[Labels, float]]:
        """Yield the number of evaluations per plugin and extension point, starting with 0. A plugin that
        skipped did not run."""
        found = {
            (plugin, point): 0
            for plugins in (self._filters, self._scores)
            for point, names in plugins.items()
            for plugin in names
        }
        for (skip_filter, skip_score), times in list(self._skipped.items()):
            _add(found, self._filters, skip_filter, times)
            if skip_score is not None:
                _add(found, self._scores, skip_score, times)
        for (plugin, point), times in found.items():
            yield (plugin, point, self.name), float(times)


def _add(found: dict[tuple[str, str], int], plugins: Plugins, skipped: frozenset[str], times: int) -> None:
    for point, names in plugins.items():
        for plugin in names:
            if plugin not in skipped:
                found[plugin, point] += times


MakeMeter = Callable[[SchedulerMetrics, str, Plugins, Plugins], ProfileMeter]
"""Makes the meter of a profile from the metrics, the profile's name, and the plugins to count."""
