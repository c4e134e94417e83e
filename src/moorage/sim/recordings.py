"""Records: what happened in a cluster, a JSON line for each change, as kube-scheduler-simulator writes them.

    {"time": "2026-01-01T00:00:00.5Z", "event": "Add" | "Update" | "Delete", "resource": {…}}

A replay decides anew: pods that were first seen without a node are scheduled again, and go when they went. Or
it keeps the recorded placements. Lines that cannot be used are collected as problems; a last line that was
cut off ends the record.
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

from moorage.api.errors import AlreadyExists, MoorageError, NotFound, ObjectError
from moorage.api.former_name import with_current_prefix
from moorage.api.meta import Object, ObjectMeta
from moorage.api.pod import Pod
from moorage.api.resources import AnyObject, Unstructured, by_kind
from moorage.api.times import format_time, parse_time
from moorage.framework.ports import Change, Clock
from moorage.sim.cluster import ENDED, SimulatedCluster
from moorage.sim.objects import typed
from moorage.sim.recording_files import opened, packing
from moorage.sim.workload import Settings, Timed

ADD, UPDATE, DELETE = "Add", "Update", "Delete"
RECORDED = "recorded"
"""The scheduler of pods whose recorded placements are kept."""


class Recording:
    """Implements `Workload`. With `since`, it begins at that moment with what was there then; a snapshot from
    before spares reading the lines up to it."""

    def __init__(self, path: Path, *, as_scheduled: bool = False) -> None:
        self._path = path
        self._as_scheduled = as_scheduled
        self._snapshot: tuple[float, Sequence[AnyObject]] = (-inf, ())
        self._since = -inf
        first = next((time for time, _ in self._lines() if time is not None), None)
        if first is None:
            raise MoorageError(f"{path} is no record: no line of it has a time, an event and a resource")
        self.began = first
        """Seconds since 1970; virtual time counts from here."""
        self.settings = Settings(epoch=first, adopts_pods=not as_scheduled)

    def since(self, moment: float, taken: float = -inf, objects: Sequence[AnyObject] = ()) -> None:
        """Begin at a moment, in seconds since 1970; `objects` were there when the snapshot was taken."""
        self._since, self._snapshot = moment, (taken, objects)
        self.began = max(moment, self.began)
        self.settings = dataclasses.replace(self.settings, epoch=self.began)

    def start(self, seed: int) -> Iterator[AnyObject]:
        yield from ()  # what was there at the beginning is in the first lines

    def actions(self, seed: int) -> Iterator[Timed]:
        latest = 0.0
        for time, action in self._lines() if self._since == -inf else self._later():
            if time is not None:
                latest = max(latest, time - self.began)
            yield latest, action

    def _later(self) -> Iterator[tuple[float | None, Callable[[SimulatedCluster], None]]]:
        """What was there at the moment, then what came after it."""
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
            raise MoorageError(f"{self._path} has nothing after {format_time(self._since)}; begin earlier")

    def _lines(
        self, after: float = -inf
    ) -> Iterator[tuple[float | None, Callable[[SimulatedCluster], None]]]:
        """The time of every line, None where it cannot be read, and what it means."""
        number = 0
        try:
            with opened(self._path) as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip() and (found := self._line(number, line, after)) is not None:
                        yield found
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield (
                None,
                UnusableLine(f"{self._path} is cut off after line {number}: {error}; used up to there"),
            )
        except OSError as error:
            raise MoorageError(f"{self._path} cannot be read: {error}") from error

    def _line(
        self, number: int, line: bytes, after: float
    ) -> tuple[float | None, Callable[[SimulatedCluster], None]] | None:
        """None for a line that is not later than `after`."""
        where = f"{self._path}, line {number}"
        try:
            raw = _decode(with_current_prefix(line))
        except msgspec.ValidationError:
            raw = RecordedLine()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            torn = "" if line.endswith(b"\n") else "; the file is cut off here, and is used up to here"
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
    """One line. The object is read only where it is needed."""

    time: str = ""
    event: str = ""
    resource: msgspec.Raw = msgspec.Raw(b"null")


_decode = msgspec.json.Decoder(RecordedLine).decode


@dataclass(frozen=True, slots=True)
class UnusableLine:
    """A line that is not used."""

    why: str

    def __call__(self, cluster: SimulatedCluster) -> None:
        raise MoorageError(self.why)


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One change of a record."""

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
        """An Add of what is there, and an Update of what is not, come after a watch was interrupted."""
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
    """Kind and key; typed objects need not say their kind."""
    return (obj.kind if isinstance(obj, Unstructured) else type(obj).__name__), obj.key


def _with_namespace(resource: dict[str, Any]) -> dict[str, Any]:
    """Names alone identify objects in the default namespace, as manifests may leave it out."""
    kind, metadata = by_kind(str(resource.get("kind"))), resource.get("metadata")
    if kind is None or not kind.namespaced or not isinstance(metadata, dict) or metadata.get("namespace"):
        return resource
    return {**resource, "metadata": {**metadata, "namespace": "default"}}


def as_line(time: float, change: Change) -> bytes:
    """A change as it stands in a record. Of an object that is gone only the name remains."""
    event = ADD if change.old is None else UPDATE if change.new is not None else DELETE
    obj: AnyObject = change.new if change.new is not None else change.old
    if event == DELETE:
        obj = Object(metadata=ObjectMeta(name=obj.name, namespace=obj.namespace))
    kind, version = change.resource.kind, change.resource.api_version  # items of lists do not say theirs
    resource = (
        {**obj.raw, "apiVersion": version, "kind": kind}
        if isinstance(obj, Unstructured)
        else replace(obj, api_version=version, kind=kind)
    )
    line = {"time": format_time(time, micro=True), "event": event, "resource": resource}
    return msgspec.json.encode(line) + b"\n"


class ChangeRecorder:
    """Writes a record of what the scheduler is shown."""

    def __init__(self, path: Path, clock: Clock, post: Callable[[Change], None]) -> None:
        self._clock = clock
        self._post = post
        self._packing = packing(path)
        self._file = path.open("wb")

    def post(self, change: Change) -> None:
        """Note a change and pass it on."""
        self._file.write(self._packing.add(as_line(self._clock.wall(), change)))
        self._post(change)

    def __enter__(self) -> ChangeRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self._file.write(self._packing.finish())
