"""Events of events.k8s.io/v1. When to write one, and when to count a series up, is decided elsewhere."""

from mooring.api.core import ObjectReference
from mooring.api.meta import Object
from mooring.api.record import Record


class EventSeries(Record):
    """How often an event was seen again, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class EventSource(Record):
    """The reporter as core/v1 writers give it."""

    component: str = ""
    host: str = ""


class Event(Object):
    """A note about an object; the note holds at most 1024 bytes, `event_time` has microseconds."""

    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource | None = None
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    deprecated_count: int = 0
