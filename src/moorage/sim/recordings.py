"""Recordings: the changes of a cluster, one JSON line each, in the format of kube-scheduler-simulator.

    {"time": "2026-01-01T00:00:00.5Z", "event": "Add" | "Update" | "Delete", "resource": {…}}

A replay schedules the pods again that were first seen without a node, and removes them when they were removed. It can
also keep the recorded placements. Unusable lines are collected as problems. An incomplete last line ends the recording.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage import snapshots
from moorage.api.errors import AlreadyExists, MoorageError, NotFound, ObjectError
from moorage.api.former_name import with_current_prefix
from moorage.api.meta import Object, ObjectMeta
from moorage.api.pod import Pod
from moorage.api.resources import AnyObject, Unstructured, by_kind
from moorage.api.times import format_time, parse_time
from moorage.framework.ports import Change, Clock
from moorage.sim.cluster import ENDED, SimulatedCluster
from moorage.sim.objects import typed
from moorage.sim.recording_files import MAX_LINE, opened, packing
from moorage.sim.workload import Settings, Timed
from moorage.snapshots.unpacking import LineTooLong

ADD, UPDATE, DELETE = "Add", "Update", "Delete"
RECORDED = "recorded"
"""The scheduler name of pods whose recorded placements are kept."""


class Recording:
    """Implements `Workload`. With `since`, it starts at that moment with the objects that existed then."""

    def __init__(self, path: Path, *, as_scheduled: bool = False) -> None:
        self._path = path
        self._as_scheduled = as_scheduled
        self._snapshot: tuple[float, Sequence[AnyObject]] = (-inf, ())
        self._since = -inf
        first = next((time for time, _ in self._lines() if time is not None), None)
        if first is None:
            raise MoorageError(f"{path} is not a recording: no line has a time, an event and a resource.")
        self.began = first
        """Seconds since 1970 at which virtual time starts."""
        self.settings = Settings(epoch=first, adopts_pods=not as_scheduled)

    def since(self, moment: float, taken: float = -inf, objects: Sequence[AnyObject] = ()) -> None:
        """Start at `moment`, in seconds since 1970.

        `objects` is a snapshot that was taken at `taken`; lines up to then need not be read.
        """
        self._since, self._snapshot = moment, (taken, objects)
        self.began = max(moment, self.began)
        self.settings = dataclasses.replace(self.settings, epoch=self.began)

    def start(self, seed: int) -> Iterator[AnyObject]:
        yield from ()  # existing objects are in the first lines

    def actions(self, seed: int) -> Iterator[Timed]:
        latest = 0.0
        for time, action in self._lines() if self._since == -inf else self._later():
            if time is not None:
                latest = max(latest, time - self.began)
            yield latest, action

    def _later(self) -> Iterator[tuple[float | None, Callable[[SimulatedCluster], None]]]:
        """Yield the objects that existed at the start, then the later changes."""
        there = {_identity(obj): obj for obj in self._snapshot[1]}
        begun = False
        for time, action in self._lines(self._snapshot[0]):
            if not begun and time is not None and time > self._since:
                begun = True
                yield from ((None, RecordedChange(ADD, obj, self._as_scheduled)) for obj in there.values())
            if begun or not isinstance(action, RecordedChange):
                yield time, action
            elif action.event == DELETE:
                there.pop(_identity(action.object), None)
            else:
                there[_identity(action.object)] = action.object
        if not begun:
            raise MoorageError(f"{self._path} has no changes after {format_time(self._since)}. Use an earlier time.")

    def at_end(self) -> tuple[list[AnyObject], list[str]]:
        """Return the objects that exist when the recording ends, and the problems of unusable lines."""
        there: dict[tuple[str, str], AnyObject] = {}
        problems = []
        for _, action in self._lines():
            if isinstance(action, UnusableLine):
                problems.append(action.why)
            elif isinstance(action, RecordedChange):
                ended = isinstance(action.object, Pod) and action.object.is_terminal
                if action.event == DELETE or ended:
                    there.pop(_identity(action.object), None)
                else:
                    there[_identity(action.object)] = action.object
        return list(there.values()), problems

    def _lines(self, after: float = -inf) -> Iterator[tuple[float | None, Callable[[SimulatedCluster], None]]]:
        """Yield the time of every line, or None if it cannot be read, and its action."""
        number = 0
        try:
            with opened(self._path) as lines:
                for number, line in enumerate(snapshots.lines(lines, str(self._path), MAX_LINE), 1):
                    if line.strip() and (found := self._line(number, line, after)) is not None:
                        yield found
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield (None, UnusableLine(f"{self._path} is truncated after line {number}: {error}; used up to there"))
        except LineTooLong as error:
            yield (None, UnusableLine(f"{error}; used up to there"))
        except OSError as error:
            raise MoorageError(f"Cannot read {self._path}: {error}") from error

    def _line(
        self, number: int, line: bytes, after: float
    ) -> tuple[float | None, Callable[[SimulatedCluster], None]] | None:
        """Return the time and action of a line, or None if it is not later than `after`."""
        where = f"{self._path}, line {number}"
        try:
            raw = _decode(with_current_prefix(line))
        except msgspec.ValidationError:
            raw = RecordedLine()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            torn = "" if line.endswith(b"\n") else "; the file is truncated here and used up to this line"
            return None, UnusableLine(f"{where}: not JSON: {error}{torn}")
        time = parse_time(raw.time)
        if time is not None and time <= after:
            return None
        try:
            resource = json.loads(bytes(raw.resource))
        except (ValueError, RecursionError):
            resource = None
        if raw.event not in (ADD, UPDATE, DELETE) or not isinstance(resource, dict) or time is None:
            return None, UnusableLine(f"{where}: needs time, event (Add, Update or Delete) and resource")
        try:
            return time, RecordedChange(raw.event, typed(_with_namespace(resource)), self._as_scheduled)
        except ObjectError as error:
            return time, UnusableLine(f"{where}: {error}")


class RecordedLine(msgspec.Struct):
    """One line. The object is decoded only if it is needed."""

    time: str = ""
    event: str = ""
    resource: msgspec.Raw = msgspec.Raw(b"null")


_decode = msgspec.json.Decoder(RecordedLine).decode


@dataclass(frozen=True, slots=True)
class UnusableLine:
    """A line that cannot be used."""

    why: str

    def __call__(self, cluster: SimulatedCluster) -> None:
        raise MoorageError(self.why)


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One change in a recording."""

    event: str
    object: AnyObject
    as_scheduled: bool

    def __call__(self, cluster: SimulatedCluster) -> None:
        if self.event == DELETE:
            resource = cluster.resource_of(self.object)
            if resource is not None:
                cluster.remove(resource, self.object.key, ENDED)
        elif isinstance(self.object, Pod):
            self._pod(cluster, self.object)
        else:
            self._put(cluster, self.object)

    def _put(self, cluster: SimulatedCluster, obj: AnyObject) -> None:
        """Add or update an object. After an interrupted watch, an Add may be for an existing object and an
        Update for an unknown one."""
        try:
            if self.event == ADD:
                cluster.add(obj)
            else:
                cluster.put(obj)
        except AlreadyExists:
            cluster.put(obj)
        except NotFound:
            cluster.add(obj)

    def _pod(self, cluster: SimulatedCluster, pod: Pod) -> None:
        current = cluster.pods.get(pod.key)
        if current is not None and current.uid != pod.uid and pod.uid:
            cluster.remove_pod(current, ENDED)
            current = None
        if current is None:
            self._add_pod(cluster, pod)
        elif pod.is_terminal:
            cluster.remove_pod(current, ENDED)
        elif pod.spec.node_name:
            if self.as_scheduled and not current.spec.node_name:
                cluster.bind_now(pod.key, current.uid, pod.spec.node_name)
        elif not current.spec.node_name:
            spec = replace(pod.spec, scheduler_name=current.spec.scheduler_name)
            cluster.put(replace(pod, spec=spec, status=current.status))

    def _add_pod(self, cluster: SimulatedCluster, pod: Pod) -> None:
        if pod.is_terminal:
            return
        if not pod.spec.node_name:
            pod = replace(pod, status=replace(pod.status, nominated_node_name="", conditions=()))
            if self.as_scheduled:
                pod = replace(pod, spec=replace(pod.spec, scheduler_name=RECORDED))
        cluster.add(pod)


def _identity(obj: AnyObject) -> tuple[str, str]:
    """Return kind and key. Typed objects need not contain their kind."""
    return (obj.kind if isinstance(obj, Unstructured) else type(obj).__name__), obj.key


def _with_namespace(resource: dict[str, Any]) -> dict[str, Any]:
    """Fill in the default namespace, which manifests may omit."""
    kind, metadata = by_kind(str(resource.get("kind"))), resource.get("metadata")
    if kind is None or not kind.namespaced or not isinstance(metadata, dict) or metadata.get("namespace"):
        return resource
    return {**resource, "metadata": {**metadata, "namespace": "default"}}


def as_line(time: float, change: Change) -> bytes:
    """Return a change as a line. A deleted object is written by name only."""
    event = ADD if change.old is None else UPDATE if change.new is not None else DELETE
    obj: AnyObject = change.new if change.new is not None else change.old
    if event == DELETE:
        obj = Object(metadata=ObjectMeta(name=obj.name, namespace=obj.namespace))
    kind, version = change.resource.kind, change.resource.api_version  # items of a list do not contain theirs
    resource = (
        {**obj.raw, "apiVersion": version, "kind": kind}
        if isinstance(obj, Unstructured)
        else replace(obj, api_version=version, kind=kind)
    )
    line = {"time": format_time(time, micro=True), "event": event, "resource": resource}
    return msgspec.json.encode(line) + b"\n"


class ChangeRecorder:
    """Records the changes that the scheduler of a simulation receives."""

    def __init__(self, path: Path, clock: Clock, post: Callable[[Change], None]) -> None:
        self._clock = clock
        self._post = post
        self._packing = packing(path)
        self._file = path.open("wb")

    def post(self, change: Change) -> None:
        """Record a change and pass it on."""
        self._file.write(self._packing.add(as_line(self._clock.wall(), change)))
        self._post(change)

    def __enter__(self) -> ChangeRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self._file.write(self._packing.finish())
