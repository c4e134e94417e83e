"""A server on a loopback socket that does with each connection what a test says, byte by byte."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.client.certificates import Pair


@dataclass
class Received:
    """One request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Connection:
    """The server's end."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> Received:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return Received(head[0], headers, body)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int = 200, body: bytes = b"{}", **headers: str) -> None:
        named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await self.send(f"HTTP/1.1 {status} X\r\n{named}content-length: {len(body)}\r\n\r\n".encode() + body)

    def reset(self) -> None:
        """Ends the connection with RST."""
        self.writer.transport.abort()


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class RawServer:
    port: int = 0
    connections: int = 0
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serve(*scripts: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Each connection is handled by the next script, the last one by the last for ever."""
    server = RawServer()
    open_ones: set[asyncio.StreamWriter] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = scripts[min(server.connections, len(scripts) - 1)]
        server.connections += 1
        open_ones.add(writer)
        try:
            await script(_Noting(reader, writer, server))
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.transport.abort()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in open_ones:
            writer.transport.abort()
        await asyncio.sleep(0.01)


class _Noting(Connection):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: RawServer) -> None:
        super().__init__(reader, writer)
        self._server = server

    async def request(self) -> Received:
        received = await super().request()
        self._server.received.append(received)
        return received


def server_context(pair: Pair, *, client_ca: bytes | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file.name)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.decode())
    return context


async def echo(connection: Connection) -> None:
    """Answers every request with an empty object."""
    while True:
        await connection.request()
        await connection.answer()
