"""Small objects that a scheduler reads or writes: references, namespaces, bindings, events, leases.

The event recorder decides when to write an event, and the election how to win and keep a lease.
"""

from moorage.api.meta import Object, Record


class ObjectReference(Record):
    """A reference to an object. Empty fields are unknown or irrelevant."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class NamespaceStatus(Record):
    """The phase is Active or Terminating."""

    phase: str = ""


class Namespace(Object):
    """A namespace. The scheduler reads its labels for namespace selectors."""

    status: NamespaceStatus = NamespaceStatus()


class Binding(Object):
    """The assignment of a pod to a node, sent to the pod's binding subresource."""

    target: ObjectReference = ObjectReference()


class EventSeries(Record):
    """The number of times that an event was repeated, and the last time."""

    count: int = 0
    last_observed_time: str | None = None


class EventSource(Record):
    """The reporter of an event in the core/v1 form."""

    component: str = ""
    host: str = ""


class Event(Object):
    """An event about an object. `note` holds at most 1024 bytes; `event_time` has microseconds."""

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


class LeaseSpec(Record):
    """The holder of a lease and its times, which have microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object):
    """A Lease of coordination.k8s.io/v1. It has all fields, so it can be written back as a whole."""

    spec: LeaseSpec = LeaseSpec()
