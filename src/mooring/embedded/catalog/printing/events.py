"""Rows of events, in the core form or the new one: both groups show the same table."""

from __future__ import annotations

from mooring.embedded.catalog.event_views import CORE_EVENTS_VIEW
from mooring.embedded.catalog.printing.columns import Cells, Column, Printer, plain, wide
from mooring.embedded.catalog.printing.values import UNKNOWN, dig, mapping, name_of, number, since, text
from mooring.store.objects import Raw


def _event(raw: Raw, now: float) -> Cells:
    if "regarding" in raw:
        raw = CORE_EVENTS_VIEW.outward(raw)
    first = _moment(raw, now, "firstTimestamp", "eventTime")
    about, series = mapping(raw, "involvedObject"), dig(raw, "series")
    return [
        _last_seen(raw, first, now),
        text(raw, "type"),
        text(raw, "reason"),
        "/".join(filter(None, (text(about, "kind").lower(), text(about, "name")))),
        text(about, "fieldPath"),
        _source(raw),
        text(raw, "message").strip(),
        first,
        number(series, "count") if isinstance(series, dict) else number(raw, "count") or 1,
        name_of(raw),
    ]


def _last_seen(raw: Raw, first: str, now: float) -> str:
    if isinstance(dig(raw, "series"), dict):
        return since(dig(raw, "series", "lastObservedTime"), now)
    last = since(dig(raw, "lastTimestamp"), now)
    return first if last == UNKNOWN else last


def _moment(raw: Raw, now: float, *fields: str) -> str:
    """The first of the fields that is set."""
    ages = (since(dig(raw, field), now) for field in fields)
    return next((shown for shown in ages if shown != UNKNOWN), UNKNOWN)


def _source(raw: Raw) -> str:
    component = text(raw, "source", "component") or text(raw, "reportingComponent")
    instance = text(raw, "source", "host") or text(raw, "reportingInstance")
    return f"{component}, {instance}" if instance else component


EVENTS = Printer(
    (
        *plain("Last Seen", "Type", "Reason", "Object"),
        *wide("Subobject", "Source"),
        *plain("Message"),
        *wide("First Seen"),
        Column("Count", "integer", priority=1),
        Column("Name", priority=1, format="name"),
    ),
    _event,
)
