"""What goes wrong inside the scheduler's own picture of the cluster."""

from __future__ import annotations

from mooring.api.errors import MooringError


class CacheError(MooringError):
    """The cached state and what a caller asks of it contradict each other: a bug, never a bad object."""
