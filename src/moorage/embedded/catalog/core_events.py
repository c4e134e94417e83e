"""The events of core/v1, which are a view of those of events.k8s.io/v1.

Both groups serve the same stored objects. The scheduler writes the new form and `kubectl describe` reads the
old one. The names of the fields are converted as in pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from moorage.api.resources import CORE_EVENTS, EVENTS
from moorage.store.objects import Raw

_OLD_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""The fields that have another name in events.k8s.io/v1."""
_NEW_TO_OLD = {new: old for old, new in _OLD_TO_NEW.items()}
_OUTER = ("apiVersion", "kind")
_ALWAYS_WRITTEN: Raw = {
    "involvedObject": {},
    "source": {},
    "reportingComponent": "",
    "reportingInstance": "",
    "eventTime": None,
    "firstTimestamp": None,
    "lastTimestamp": None,
}
"""The fields that core/v1 writes even if they are not set."""


class CoreEvents:
    """Converts events from and to core/v1; a `View` of the catalog."""

    def inward(self, raw: Raw) -> Raw:
        event = {_OLD_TO_NEW.get(field, field): value for field, value in raw.items() if field not in _OUTER}
        return {"apiVersion": EVENTS.api_version, "kind": EVENTS.kind, **event}

    def outward(self, raw: Raw) -> Raw:
        event = {_NEW_TO_OLD.get(field, field): value for field, value in raw.items() if field not in _OUTER}
        return {"apiVersion": CORE_EVENTS.api_version, "kind": CORE_EVENTS.kind, **_ALWAYS_WRITTEN, **event}

    def field(self, path: str) -> str:
        head, dot, rest = path.partition(".")
        if path == "source":
            return path  # the component or the reporter; the store knows both
        return f"{_OLD_TO_NEW.get(head, head)}{dot}{rest}"


CORE_EVENTS_VIEW = CoreEvents()
