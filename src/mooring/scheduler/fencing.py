"""Writes only while this replica leads: the API client that the scheduler and its plugins get.

The question is asked right before each call. Reading is always allowed: a replica that has lost the lease may
still have to learn what became of a bind that it had sent.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.errors import NotSent
from mooring.api.resources import Resource
from mooring.framework.ports import ApiClient, DelegatingClient

MayWrite = Callable[[], bool]

READS = frozenset(("get", "list", "watch"))
NOT_LEADING = "not sent: this replica no longer holds the lease"


def always() -> bool:
    """For a scheduler that is alone."""
    return True


class FencedClient(DelegatingClient):
    """A write without the lease raises NotSent."""

    def __init__(self, client: ApiClient, may_write: MayWrite) -> None:
        super().__init__(client)
        self._may_write = may_write

    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        if verb not in READS and not self._may_write():
            raise NotSent(NOT_LEADING)
