"""What the API server asks of the place where the store's changes are kept: nothing is told before it lasts.

An answer or a watch event leaves the server only when every version that it can show is durable. Otherwise a
crash could take back what a client has seen, and hand its resourceVersion out again for something else.
"""

from __future__ import annotations

from typing import Protocol


class Durability(Protocol):
    """Follows one store."""

    @property
    def version(self) -> int:
        """The newest resourceVersion up to which everything is durable."""
        ...

    async def settled(self) -> None:
        """Returns when everything written before the call is durable; raises when it cannot be."""
        ...


class InMemory:
    """For a store that does not outlive its process: everything counts as durable, and nothing waits."""

    version = 2**63 - 1

    async def settled(self) -> None:
        return
