"""Traces: tables of pods and nodes, with a mapping that gives the meaning of the columns.

In the texts of a mapping, `{column}` stands for the value of that column. An entry of a map is omitted if all
columns that it names are empty or 0. Rows are read one by one unless they must be sorted.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from moorage.api import decoding
from moorage.api.errors import MoorageError
from moorage.api.node import HOSTNAME
from moorage.api.resources import NODES, PODS, AnyObject
from moorage.api.times import parse_time
from moorage.sim.cluster import PodLife
from moorage.sim.fields import FieldError, Fields, Seconds, parse_yaml, read_fields
from moorage.sim.objects import PODS_PER_NODE, typed
from moorage.sim.workload import AddObject, Settings, Timed

Row = Mapping[str, str]
Texts = Mapping[str, str | int | float]
_COLUMN = re.compile(r"\{([^{}]*)\}")
NUMBER = "number"
"""In the texts of pods: the position in the order of arrival, starting with 0."""


class NodeColumns(Fields):
    """How to build a node from a row."""

    file: str
    """A table in the folder of the trace."""
    name: str
    allocatable: Texts
    labels: Texts = {}
    annotations: Texts = {}


class PodColumns(Fields):
    """How to build a pod from a row."""

    name: str
    namespace: str = "default"
    requests: Texts = {}
    labels: Texts = {}
    annotations: Texts = {}
    node_selector: Texts = {}
    priority: str = ""
    arrival: str = ""
    """Seconds or an RFC 3339 time, counted from the first arrival."""
    interval: Seconds | None = None
    """Instead of `arrival`: the time between two pods."""
    lifetime: str = ""
    """Seconds after the bind. If it is empty, the pod runs forever."""
    end: str = ""
    """Instead of `lifetime`: a time as in `arrival`. The pod runs as long as the time between the two."""
    sort: bool = False
    """Sort the rows by arrival. Without it, they must be in order."""
    shuffle: bool = False
    """With `interval`: shuffle the rows by the seed."""


class TraceMapping(Fields):
    """The whole file."""

    pods: PodColumns
    nodes: NodeColumns | None = None
    objects: tuple[dict[str, Any], ...] = ()
    order: str = ""
    """A file of lines `SEED pods ROW ROW …` with the rows of the trace in order of arrival, and `SEED nodes
    RANK RANK …` with the position of every node. All values are numbers; rows and ranks count from 0."""
    attempts: int | None = None
    """Number of rejections after which a pod is deleted. Without it, pods are tried forever."""
    duration: Seconds | None = None
    sample_interval: Seconds | None = None
    measures: dict[str, str] = {}


class Trace:
    """Implements `Workload`."""

    def __init__(self, path: Path, mapping: TraceMapping, source: str = "mapping") -> None:
        self._path = path
        self._mapping = mapping
        self._source = source
        pods = mapping.pods
        if bool(pods.arrival) == (pods.interval is not None):
            raise FieldError(f"{source}: pods: needs either arrival (a column) or interval (a duration)")
        if pods.lifetime and pods.end:
            raise FieldError(f"{source}: pods: lifetime and end exclude each other; remove one")
        if (mapping.order or pods.shuffle) and pods.interval is None:
            raise FieldError(f"{source}: pods: order requires interval instead of arrival")
        self.settings = Settings(
            duration=mapping.duration,
            attempts=mapping.attempts,
            sample_interval=mapping.sample_interval,
            measures=mapping.measures,
        )

    def start(self, seed: int) -> Iterable[AnyObject]:
        yield from (typed(manifest) for manifest in self._mapping.objects)
        columns = self._mapping.nodes
        if columns is None:
            return
        rows = list(self._rows(self._path.parent / columns.file))
        ranks = self._order(seed).get("nodes")
        if ranks is not None:
            if len(ranks) != len(rows):
                raise MoorageError(
                    f"{self._mapping.order}: seed {seed} has {len(ranks)} nodes, and {columns.file} has "
                    f"{len(rows)}; they belong to different traces"
                )
            rows = [row for _, row in sorted(zip(ranks, rows, strict=True), key=lambda pair: pair[0])]
        yield from (self._node(columns, row) for row in rows)

    def actions(self, seed: int) -> Iterator[Timed]:
        for number, (time, row) in enumerate(self._arrivals(seed)):
            yield time, AddObject(self._pod(row, number), self._life(row, time))

    def _arrivals(self, seed: int) -> Iterator[tuple[float, Row]]:
        pods = self._mapping.pods
        if pods.interval is not None:
            for number, row in enumerate(self._in_order(seed)):
                yield number * pods.interval, row
            return
        timed: Iterable[tuple[float, Row]] = ((self._time(pods.arrival, row), row) for row in self._rows(self._path))
        if pods.sort:
            timed = sorted(timed, key=lambda pair: pair[0])
        began = last = None
        for time, row in timed:
            began, last = (time, time) if began is None or last is None else (began, last)
            if time < last:
                raise FieldError(
                    f"{self._path}: a pod arrives at {time:g} after one that arrives at {last:g}; sort the "
                    f"rows, or set `sort: true` below pods in {self._source}"
                )
            last = time
            yield time - began, row

    def _in_order(self, seed: int) -> Iterable[Row]:
        rows = self._rows(self._path)
        order = self._order(seed).get("pods")
        if order is None and not self._mapping.pods.shuffle:
            return rows
        known = list(rows)
        if order is not None:
            return (known[row] for row in order)
        Random(f"{seed}/order").shuffle(known)
        return known

    def _order(self, seed: int) -> dict[str, list[int]]:
        if not self._mapping.order:
            return {}
        found = {}
        path = self._path.parent / self._mapping.order
        with _opened(path) as lines:
            for line in lines:
                number, what, *values = line.split()
                if int(number) == seed:
                    found[what] = [int(value) for value in values]
        if not found:
            raise MoorageError(f"{path} has no order for seed {seed}; choose an existing seed with --seed")
        return found

    def _node(self, columns: NodeColumns, row: Row) -> AnyObject:
        name = self._text(columns.name, row)
        amounts = {"pods": PODS_PER_NODE, **self._map(columns.allocatable, row)}
        labels = {HOSTNAME: name, **self._map(columns.labels, row)}
        metadata = {"name": name, "labels": labels, "annotations": self._map(columns.annotations, row)}
        status = {"allocatable": amounts, "capacity": amounts}
        return decoding.convert(NODES, {"metadata": metadata, "status": status})

    def _pod(self, row: Row, number: int) -> AnyObject:
        columns, row = self._mapping.pods, {**row, NUMBER: str(number)}
        name, namespace = self._text(columns.name, row), self._text(columns.namespace, row)
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": self._map(columns.labels, row),
            "annotations": self._map(columns.annotations, row),
        }
        amounts = self._map(columns.requests, row)
        spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": amounts}}]}
        if columns.node_selector:
            spec["nodeSelector"] = self._map(columns.node_selector, row)
        if columns.priority and (priority := self._text(columns.priority, row)):
            spec["priority"] = int(priority)
        return decoding.convert(PODS, {"metadata": metadata, "spec": spec})

    def _life(self, row: Row, arrival: float) -> PodLife:
        pods = self._mapping.pods
        if pods.lifetime:
            text = self._text(pods.lifetime, row)
            return PodLife(float(text)) if text else PodLife()
        if pods.end and self._text(pods.end, row):
            return PodLife(max(0.0, self._time(pods.end, row) - self._time(pods.arrival, row)))
        return PodLife()

    def _time(self, text: str, row: Row) -> float:
        written = self._text(text, row)
        try:
            return float(written)
        except ValueError:
            pass
        if (found := parse_time(written)) is None:
            raise FieldError(f"{self._path}: {text}: {written!r} is not a time; write seconds or an RFC 3339 time")
        return found

    def _map(self, texts: Texts, row: Row) -> dict[str, str]:
        found = {}
        for name, text in texts.items():
            columns = _COLUMN.findall(str(text))
            if not columns or any(row.get(column) not in ("", "0", None) for column in columns):
                found[name] = self._text(str(text), row)
        return found

    def _text(self, text: str, row: Row) -> str:
        try:
            return _COLUMN.sub(lambda match: row[match[1]] or "", text)
        except KeyError as error:
            known = ", ".join(row)
            raise FieldError(
                f"{self._source}: {text!r}: there is no column {error}; the columns are {known}"
            ) from error

    def _rows(self, path: Path) -> Iterator[Row]:
        try:
            with _opened(path) as lines:
                yield from csv.DictReader(lines)
        except (OSError, EOFError, csv.Error, UnicodeDecodeError) as error:
            raise MoorageError(f"Cannot read {path} as CSV: {error}") from error


def read_mapping(text: str | bytes, source: str) -> TraceMapping:
    """Read and check a mapping."""
    return read_fields(TraceMapping, parse_yaml(text, source), source)


def _opened(path: Path) -> Any:
    """Open a file, compressed or not."""
    return gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="")
