"""Events of events.k8s.io/v1 as values: how one is written, how repetitions are counted, and how many different ones an
object may cause. No I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moorage.api import times
from moorage.api.core import Event, EventSeries, ObjectReference
from moorage.api.meta import ObjectMeta
from moorage.api.resources import ALL, EVENTS, Unstructured

NOTE_BYTES = 1024
REASON_BYTES = 128
"""Of a reason and of an action (pkg/apis/core/validation/events.go)."""
NAME_LENGTH = 253
INSTANCE_LENGTH = 128
# Objects out of a list carry neither kind nor apiVersion; their record type tells both.
_RESOURCES = {resource.type: resource for resource in ALL if resource.type is not Unstructured}

SeriesKey = tuple[str, str, str, str, str, str]


@dataclass(slots=True, eq=False)
class Series:
    """One event and its repetitions. The server knows `sent` of the `count` occurrences; 0 is not created."""

    key: SeriesKey
    event: Event
    seen_at: float
    """Monotonic seconds of the last occurrence."""
    seen_wall: float
    """Its time on the wall clock."""
    count: int = 1
    sent: int = 0
    queued: bool = False
    tries: int = 0
    """How often in a row it could not be written."""

    def again(self, now: float, wall: float) -> None:
        self.count += 1
        self.seen_at, self.seen_wall = now, wall

    def counted(self) -> EventSeries:
        return EventSeries(count=self.count, last_observed_time=times.format_time(self.seen_wall, micro=True))


def reference(obj: Any) -> ObjectReference:
    """How an event points at an object."""
    resource = _RESOURCES.get(type(obj))
    return ObjectReference(
        api_version=resource.api_version if resource else obj.api_version,
        kind=resource.kind if resource else obj.kind,
        namespace=obj.namespace,
        name=obj.name,
        uid=obj.uid,
        resource_version=obj.resource_version,
    )


def metadata(regarding: ObjectReference, stamp: int) -> ObjectMeta:
    """Beside the object it speaks about; events on objects without namespace live in "default"."""
    suffix = f".{stamp:x}"
    name = regarding.name[: NAME_LENGTH - len(suffix)].rstrip("-.")
    return ObjectMeta(name=f"{name}{suffix}", namespace=regarding.namespace or "default")


def make_event(
    regarding: ObjectReference,
    related: ObjectReference | None,
    *,
    type: str,  # noqa: A002 (named as in the API)
    reason: str,
    action: str,
    note: str,
    controller: str,
    instance: str,
    wall: float,
    stamp: int,
) -> Event:
    """All texts are within their limits. `stamp` makes the name unique; it is near the nanoseconds of `wall`."""
    return Event(
        api_version=EVENTS.api_version,
        kind=EVENTS.kind,
        metadata=metadata(regarding, stamp),
        event_time=times.format_time(wall, micro=True),
        reporting_controller=controller,
        reporting_instance=f"{controller}-{instance}"[:INSTANCE_LENGTH],
        action=action,
        reason=reason,
        regarding=regarding,
        related=related,
        note=note,
        type=type,
    )


BURST = 25
SECONDS_PER_TOKEN = 300.0
REMEMBERED = 4096
"""Objects; the one that was quiet for longest is forgotten first, and has a full bucket again."""


class SpamFilter:
    """Buckets by object."""

    def __init__(self, now: Callable[[], float], burst: int = BURST, seconds: float = SECONDS_PER_TOKEN) -> None:
        self._now = now
        self._burst = burst
        self._seconds = seconds
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Object → (tokens, when that was)."""

    def admits(self, uid: str) -> bool:
        """Whether the object may cause one more event; takes a token if so."""
        now = self._now()
        tokens, since = self._buckets.pop(uid, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - since) / self._seconds)
        admitted = tokens >= 1
        self._buckets[uid] = (tokens - 1 if admitted else tokens, now)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return admitted
