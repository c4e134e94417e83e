"""Which objects a list or watch is about: namespace, label selector and field selector.

The fields that can be selected on are those of the API server, kind by kind; any other is a 400.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mooring.api import resources
from mooring.api.errors import SelectorError
from mooring.api.resources import Resource
from mooring.api.selectors import Selector, parse_field_selector, parse_selector
from mooring.embedded import refusals
from mooring.embedded.objects import Raw, Stored

_EVERY_KIND = {"metadata.name": "", "metadata.namespace": ""}
_OF_EVENTS = {
    f"regarding.{part}": ""
    for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
}
# Selectable field -> what an absent one reads as.
_FIELDS: dict[Resource, dict[str, str]] = {
    resources.PODS: {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    },
    resources.NODES: {"spec.unschedulable": "false"},
    resources.NAMESPACES: {"status.phase": ""},
    resources.EVENTS: {**_OF_EVENTS, "reason": "", "type": "", "reportingController": ""},
    resources.REPLICA_SETS: {"status.replicas": "0"},
}


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One term of a field selector, with its path split and its default looked up."""

    path: tuple[str, ...]
    absent: str
    value: str
    negated: bool

    def holds(self, raw: Raw) -> bool:
        value: Any = raw
        for step in self.path:
            value = value.get(step) if isinstance(value, dict) else None
        text = value if isinstance(value, str) else _text(value, self.absent)
        return (text == self.value) != self.negated


@dataclass(frozen=True, slots=True)
class Selection:
    """All three conditions. An empty namespace means all of them."""

    namespace: str
    labels: Selector
    fields: tuple[FieldTest, ...]

    @property
    def everything(self) -> bool:
        return not self.namespace and self.labels.empty and not self.fields

    def matches(self, stored: Stored) -> bool:
        meta = stored.raw["metadata"]
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        if not self.labels.empty and not self.labels.matches(meta.get("labels") or {}):
            return False
        for test in self.fields:  # noqa: SIM110 - a generator would cost more than the tests themselves
            if not test.holds(stored.raw):
                return False
        return True


@lru_cache(maxsize=1024)
def select(
    resource: Resource, namespace: str = "", label_selector: str = "", field_selector: str = ""
) -> Selection:
    """Parses both selectors; a bad one is a BadRequest."""
    try:
        labels = parse_selector(label_selector)
        terms = parse_field_selector(field_selector).requirements
    except SelectorError as error:
        raise refusals.bad_request(str(error)) from error
    known = {**_EVERY_KIND, **_FIELDS.get(resource, {})}
    for term in terms:
        if term.path not in known:
            raise refusals.bad_request(f"field label not supported: {term.path}")
    tests = (FieldTest(tuple(t.path.split(".")), known[t.path], t.value, t.negated) for t in terms)
    return Selection(namespace, labels, tuple(tests))


def _text(value: Any, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
