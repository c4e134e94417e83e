"""What the client tells about its requests, for metrics."""

from __future__ import annotations

from typing import Protocol


class RequestObserver(Protocol):
    """Called on the loop; must return soon and not raise."""

    def answered(self, verb: str, method: str, code: str, seconds: float) -> None:
        """One request and its answer; `code` is `<error>` when none came, as client-go counts it."""
        ...

    def waited(self, verb: str, seconds: float) -> None:
        """How long the client's own limit held a request up."""
        ...

    def repeated(self, verb: str, method: str, code: str) -> None:
        """A request is going to be sent again."""
        ...


class Unobserved:
    """Nobody counts."""

    def answered(self, verb: str, method: str, code: str, seconds: float) -> None: ...

    def waited(self, verb: str, seconds: float) -> None: ...

    def repeated(self, verb: str, method: str, code: str) -> None: ...
