"""The extender of `python -m perf.extender`: a process of its own that costs as little as an extender can.

It rejects every tenth node by name and scores the others by name, so a response depends on the nodes only. It
decodes a list of nodes when it is new, and otherwise sends the previous response. It prints its port on
standard output and ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from typing import Any, cast

import msgspec
import uvloop

NODES = b',"Nodes":'
"""The start of the nodes in a request from Moorage. No field of a pod has this name."""
FILTER = b"/filter"
END_OF_HEAD = b"\r\n\r\n"
FIRST_BYTES = 1 << 20


class ResponderConnection(asyncio.BufferedProtocol):
    """Reads one request at a time into the same buffer, and copies it only if its nodes are new."""

    def __init__(self) -> None:
        self._memory = bytearray(FIRST_BYTES)
        self._filled = 0
        self._known: dict[bytes, tuple[bytes, bytes]] = {}
        """Path → the nodes of the last request, and the response."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._filled == len(self._memory):
            self._memory = self._memory + bytes(len(self._memory))
        return memoryview(self._memory)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        body = self._memory.find(END_OF_HEAD, 0, self._filled) + len(END_OF_HEAD)
        if body < len(END_OF_HEAD):
            return
        line, *headers = bytes(self._memory[:body]).split(b"\r\n")
        length = next(int(header[15:]) for header in headers if header.lower().startswith(b"content-length:"))
        if self._filled == body + length:
            answer = self._answer(line.split()[1], body)
            self._filled = 0
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n"
            self._transport.writelines((head.encode(), answer))

    def _answer(self, path: bytes, body: int) -> bytes:
        memory, end = self._memory, self._filled
        begin = memory.index(NODES, body)
        nodes, answer = self._known.get(path, (b"", b""))
        if end - begin == len(nodes) and memory.startswith(nodes, begin):
            return answer
        answer = msgspec.json.encode(answer_to(path, msgspec.json.decode(memory[body:end])))
        self._known[path] = bytes(memory[begin:end]), answer
        return answer


def answer_to(path: bytes, question: dict[str, Any]) -> Any:
    """Return an ExtenderFilterResult or HostPriorityList with names or nodes, as in the request."""
    names = question["NodeNames"]
    items = question["Nodes"]["items"] if names is None else ()
    asked = [item["metadata"]["name"] for item in items] if names is None else names
    if path != FILTER:
        return [{"Host": name, "Score": _number(name) % 11} for name in asked]
    passing = {name for name in asked if _number(name) % 10}
    kept = [item for item in items if item["metadata"]["name"] in passing]
    return {
        "Nodes": {"metadata": {}, "items": kept} if names is None else None,
        "NodeNames": None if names is None else [name for name in names if name in passing],
        "FailedNodes": {name: "rejected by name" for name in asked if name not in passing},
        "FailedAndUnresolvableNodes": None,
        "Error": "",
    }


def _number(name: str) -> int:
    return zlib.crc32(name.encode())


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(ResponderConnection, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
