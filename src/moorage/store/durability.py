"""What the API server asks of the place where the changes are kept: no client sees one before it lasts.

An answer or a watch event leaves the server only when every version that it can show is durable. Otherwise a
crash could take back what a client has seen, and hand its resourceVersion out again for something else.
So a server calls the store, awaits `Store.settled()`, and answers then, for reads as for writes; watches hold
back by themselves what is not durable yet.

    Store ──check(...)──▶ may I write?   ──record(...)──▶ kept soon      settled() ──▶ kept now
      ▲                                                     │
      └──── listener.advanced(): `version` has grown ◀──────┤
      └──── listener.failed(): take back what is newer ◀────┘ (the disk refused)
"""

from __future__ import annotations

from typing import Protocol

from moorage.store.objects import Stored


class DurabilityListener(Protocol):
    """The store, as its durability sees it. Called on the event loop, never from a thread."""

    def advanced(self) -> None:
        """`version` has grown: watches may send more."""
        ...

    def failed(self) -> None:
        """Nothing newer than `version` will last: it is to be taken back, so that memory equals the disk."""
        ...


class Durability(Protocol):
    """Follows one store."""

    @property
    def version(self) -> int:
        """The newest resourceVersion up to which everything is durable."""
        ...

    def attach(self, listener: DurabilityListener) -> None:
        """Called once, by the store."""
        ...

    def check(self, stored: Stored) -> None:
        """Called before a change happens. Raises the ApiError of one that cannot be kept: now, or ever."""
        ...

    def record(self, stored: Stored, *, deleted: bool) -> None:
        """Called for every change in the order of versions, before any client sees it; must not wait."""
        ...

    async def settled(self) -> None:
        """Returns when everything written before the call is durable; raises when it cannot be."""
        ...


class InMemory:
    """For a store that does not outlive its process: everything counts as durable, and nothing waits."""

    version = 2**63 - 1

    def __init__(self) -> None:
        self._listener: DurabilityListener | None = None

    def attach(self, listener: DurabilityListener) -> None:
        self._listener = listener

    def check(self, stored: Stored) -> None:
        return

    def record(self, stored: Stored, *, deleted: bool) -> None:
        if self._listener is not None:
            self._listener.advanced()

    async def settled(self) -> None:
        return
