"""Counters, gauges and histograms with a low overhead, exposed through prometheus-client.

One thread writes, and any thread reads. A reader may miss the newest observation, but nothing else can be inconsistent.
The instruments of prometheus-client take a lock and walk the buckets for every observation, which takes about two
microseconds; these take a tenth of that. prometheus-client still provides the exposition format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]
OTHER = "other"
"""Stands for all label values beyond the number that a family keeps."""


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the upper bounds of buckets, each `factor` times the previous one, computed as Go does."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


class Value:
    """A counter or gauge of a family. Write `value`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Buckets:
    """A histogram of a family."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Observations per bucket, not cumulative. The last bucket holds values above all bounds."""
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Record a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """The number of observations."""
        return sum(self.counts)


class Family(ABC):
    """A metric, with one child per combination of label values."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:  # noqa: A002
        self.name = name
        self.help = help
        self.labels = tuple(labels)

    @abstractmethod
    def collect(self) -> Metric:
        """Return the current values of all children, for exposition."""


class _Values(Family):
    """The common parts of counters and gauges."""

    _exposed: type[CounterMetricFamily | GaugeMetricFamily]

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002
        labels: Sequence[str] = (),
        max_children: int | None = None,
    ) -> None:
        super().__init__(name, help, labels)
        self._max_children = max_children
        """Further label values count as OTHER. Needed where the values come from pods."""
        self._children: dict[Labels, Value] = {}
        self._sources: list[Callable[[], Iterable[tuple[Labels, float]]]] = []
        if not self.labels:
            self.child()

    def child(self, *values: str) -> Value:
        """Return the child with these label values, creating it on first use. Keep it where it is used often."""
        found = self._children.get(values)
        if found is None:
            if len(values) != len(self.labels):
                raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)} of them")
            if self._max_children is not None and len(self._children) >= self._max_children:
                values = (OTHER,) * len(self.labels)
            found = self._children.setdefault(values, Value())
        return found

    def read_from(self, source: Callable[[], Iterable[tuple[Labels, float]]]) -> None:
        """Add values that `source` computes whenever the metrics are read."""
        self._sources.append(source)

    def replace(self, values: Iterable[tuple[Labels, float]]) -> None:
        """Replace all children by these values, which are kept elsewhere."""
        fresh: dict[Labels, Value] = {}
        for labels, value in values:
            fresh[labels] = Value()
            fresh[labels].value = value
        self._children = fresh

    def samples(self) -> dict[Labels, float]:
        found = {labels: child.value for labels, child in list(self._children.items())}
        for source in self._sources:
            for labels, value in source():
                found[labels] = found.get(labels, 0) + value
        return found

    def collect(self) -> Metric:
        family = self._exposed(self.name.removesuffix("_total"), self.help, labels=self.labels)
        for labels, value in self.samples().items():
            family.add_metric(labels, value)
        return family


class LabelCounter(_Values):
    """A family of counters. The name ends in `_total`."""

    _exposed = CounterMetricFamily

    def inc(self, *values: str, by: float = 1) -> None:
        """Increase the counter with these label values."""
        self.child(*values).value += by


class Gauge(_Values):
    """A family of gauges."""

    _exposed = GaugeMetricFamily

    def set(self, *values: str, to: float) -> None:
        """Set the gauge with these label values."""
        self.child(*values).value = to


class Histogram(Family):
    """A family of histograms with the same buckets."""

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002
        labels: Sequence[str] = (),
        *,
        bounds: tuple[float, ...],
    ) -> None:
        super().__init__(name, help, labels)
        self.bounds = bounds
        self._children: dict[Labels, Buckets] = {}
        if not self.labels:
            self.child()

    def child(self, *values: str) -> Buckets:
        """Return the histogram with these label values, creating it on first use."""
        found = self._children.get(values)
        if found is None:
            if len(values) != len(self.labels):
                raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)} of them")
            found = self._children[values] = Buckets(self.bounds)
        return found

    def observe(self, value: float, *values: str) -> None:
        """Record a value in the histogram with these label values."""
        self.child(*values).observe(value)

    def collect(self) -> Metric:
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        edges = [*map(_edge, self.bounds), "+Inf"]
        for labels, child in list(self._children.items()):
            buckets, seen = [], 0
            for edge, count in zip(edges, list(child.counts), strict=True):
                seen += count
                buckets.append((edge, float(seen)))
            if self.labels and not seen:
                continue  # created before its first use
            family.add_metric(labels, buckets=buckets, sum_value=child.total)
        return family


def _edge(bound: float) -> str:
    """Format a bound as Go does: 1, not 1.0. Prometheus 2 identifies buckets by this text."""
    text: str = floatToGoString(bound)  # type: ignore[no-untyped-call]  # the library has no types there
    return text.removesuffix(".0")


class Exposed(Collector):
    """A collector of prometheus-client for these families, except those named in `without`."""

    def __init__(self, families: Iterable[Family], without: frozenset[str] = frozenset()) -> None:
        self.families = [family for family in families if family.name not in without]

    def collect(self) -> Iterator[Metric]:
        for family in self.families:
            yield family.collect()

    def describe(self) -> Iterator[Metric]:
        """Return nothing, so that registering the collector does not compute any values."""
        return iter(())
