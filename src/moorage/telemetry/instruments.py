"""Counters, gauges and histograms that cost the scheduler next to nothing, exposed through prometheus-client.

One thread writes, any thread reads: a reading may miss the newest observation and is never torn apart further
than that. prometheus-client's own instruments take a lock and walk the buckets for every observation, about
two microseconds; these take a tenth of that. Names, labels and the exposition format are its business.
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


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of buckets: each `factor` times the one before, reckoned as Go does."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


class Value:
    """One counter or gauge of a family; write `value`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Buckets:
    """One histogram of a family."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Per bucket, not added up; the last one has what lies above all bounds."""
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


class Family(ABC):
    """A metric of some kind: children by the values of its labels."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:  # noqa: A002
        self.name = name
        self.help = help
        self.labels = tuple(labels)

    @abstractmethod
    def collect(self) -> Metric:
        """All children as they are now, for exposition."""


class _Values(Family):
    """What counters and gauges have in common."""

    _exposed: type[CounterMetricFamily | GaugeMetricFamily]

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:  # noqa: A002
        super().__init__(name, help, labels)
        self._children: dict[Labels, Value] = {}
        self._sources: list[Callable[[], Iterable[tuple[Labels, float]]]] = []
        if not self.labels:
            self.child()

    def child(self, *values: str) -> Value:
        """The one with these label values, made at its first use. Keep it where it is used often."""
        found = self._children.get(values)
        if found is None:
            if len(values) != len(self.labels):
                raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)} of them")
            found = self._children[values] = Value()
        return found

    def read_from(self, source: Callable[[], Iterable[tuple[Labels, float]]]) -> None:
        """Values that are reckoned when the metrics are read, besides the children."""
        self._sources.append(source)

    def replace(self, values: Iterable[tuple[Labels, float]]) -> None:
        """Exactly these children from now on; for values that are kept elsewhere."""
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
    """Counters; the name ends in `_total`."""

    _exposed = CounterMetricFamily

    def inc(self, *values: str, by: float = 1) -> None:
        self.child(*values).value += by


class Gauge(_Values):
    """Gauges."""

    _exposed = GaugeMetricFamily

    def set(self, *values: str, to: float) -> None:
        self.child(*values).value = to


class Histogram(Family):
    """Histograms with the same buckets."""

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
        found = self._children.get(values)
        if found is None:
            if len(values) != len(self.labels):
                raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)} of them")
            found = self._children[values] = Buckets(self.bounds)
        return found

    def observe(self, value: float, *values: str) -> None:
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
                continue  # made ahead of its first use
            family.add_metric(labels, buckets=buckets, sum_value=child.total)
        return family


def _edge(bound: float) -> str:
    """As Go writes it: 1, not 1.0. Prometheus 2 tells buckets apart by the text."""
    text: str = floatToGoString(bound)  # type: ignore[no-untyped-call]  # the library has no types there
    return text.removesuffix(".0")


class Exposed(Collector):
    """Families as a collector of prometheus-client; `without` leaves some out by name."""

    def __init__(self, families: Iterable[Family], without: frozenset[str] = frozenset()) -> None:
        self.families = [family for family in families if family.name not in without]

    def collect(self) -> Iterator[Metric]:
        for family in self.families:
            yield family.collect()

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering must not collect what is reckoned on demand."""
        return iter(())
