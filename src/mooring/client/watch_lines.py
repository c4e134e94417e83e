"""Cuts a watch into lines. Works on bytes, since a chunk may end anywhere, also inside a character."""

from __future__ import annotations

from mooring.api.errors import BadAnswer


class Lines:
    """Chunks in, complete lines out. What is left when the stream ends is no line, and is dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        """Bytes that one line may have."""
        self._parts: list[bytes] = []
        """The line that has begun, in the pieces it came in: joined once, when it is complete."""
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._keep(first)
            return []
        if self._parts:
            first = b"".join([*self._parts, first])
            self._parts.clear()
            self._size = 0
        *complete, begun = rest
        self._keep(begun)
        return [line for line in (first, *complete) if line and not line.isspace()]

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            raise BadAnswer(f"an event of the watch is longer than {self._limit} bytes")
