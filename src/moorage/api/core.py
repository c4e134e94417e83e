"""Small objects that a scheduler reads or writes: references, namespaces, bindings, events, leases.

When to write an event is the recorder's business, how leadership is won and kept the election's.
"""

from moorage.api.meta import Object, Record


class ObjectReference(Record):
    """Points at an object; empty parts are unknown or do not matter."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class NamespaceStatus(Record):
    """Active or Terminating."""

    phase: str = ""


class Namespace(Object):
    """A namespace; schedulers read its labels for namespace selectors."""

    status: NamespaceStatus = NamespaceStatus()


class Binding(Object):
    """The decision itself: POSTed to the pod's binding subresource, with the node as target."""

    target: ObjectReference = ObjectReference()


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


class LeaseSpec(Record):
    """Who holds the lease since when; times have microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object):
    """A lease of coordination.k8s.io/v1; every field is kept, so it may be written back whole."""

    spec: LeaseSpec = LeaseSpec()
