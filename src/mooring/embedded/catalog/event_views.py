"""One set of events under two groups: stored as events.k8s.io/v1, seen as core/v1 through a view.

The scheduler writes the new form, `kubectl describe` reads the old one; an event written through either is
there in both.
"""

from __future__ import annotations

from mooring.api.resources import CORE_EVENTS, EVENTS
from mooring.store.objects import Raw

_OLD_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""The fields with other names; all others are the same in both."""
_NEW_TO_OLD = {new: old for old, new in _OLD_TO_NEW.items()}
_OUTER = ("apiVersion", "kind")


class CoreEvents:
    """The view of core/v1."""

    def inward(self, raw: Raw) -> Raw:
        """As stored. The reporter is taken from the source where an old writer names only that."""
        event = {_OLD_TO_NEW.get(field, field): value for field, value in raw.items() if field not in _OUTER}
        source = event.get("deprecatedSource")
        if not event.get("reportingController") and isinstance(source, dict) and source.get("component"):
            event["reportingController"] = source["component"]
        return {"apiVersion": EVENTS.api_version, "kind": EVENTS.kind, **event}

    def outward(self, raw: Raw) -> Raw:
        event = {_NEW_TO_OLD.get(field, field): value for field, value in raw.items() if field not in _OUTER}
        event.setdefault("involvedObject", {})
        event.setdefault("source", {})
        return {"apiVersion": CORE_EVENTS.api_version, "kind": CORE_EVENTS.kind, **event}

    def field(self, path: str) -> str:
        if path == "source":
            return "reportingController"
        head, dot, rest = path.partition(".")
        return f"{_OLD_TO_NEW.get(head, head)}{dot}{rest}"


CORE_EVENTS_VIEW = CoreEvents()
