"""Leases. How leadership is won and kept is the client's part."""

from mooring.api.meta import Object
from mooring.api.record import Record


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
