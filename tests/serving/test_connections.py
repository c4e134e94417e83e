"""What a server bears of one client, at a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.responses import Response, StreamingResponse

from moorage.serving.connections import ConnectionLimits
from moorage.serving.server import Listener

REQUEST = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"


class Streaming:
    """An application that sends for as long as it may."""

    def __init__(self) -> None:
        self.sent = 0
        self.has_ended = asyncio.Event()

    async def blocks(self) -> AsyncIterator[bytes]:
        try:
            while True:
                self.sent += 1
                yield b"x" * 65536
                await asyncio.sleep(0)
        finally:
            self.has_ended.set()

    async def __call__(self, scope, receive, send):
        await StreamingResponse(self.blocks())(scope, receive, send)


@pytest.mark.parametrize("reads", [False, True])
def test_a_client_that_does_not_read_its_answer_is_given_up(reads):
    async def scenario() -> None:
        app = Streaming()
        listener = Listener("127.0.0.1", 0, None, limits=ConnectionLimits(send_seconds=0.3))
        await listener.start(app)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1024)
        writer.write(REQUEST)
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() - began < 1.0 and not app.has_ended.is_set():
            if reads:
                await reader.read(1 << 20)
            await asyncio.sleep(0.01)
        assert app.sent > 1
        assert app.has_ended.is_set() is not reads
        writer.close()
        await asyncio.wait_for(app.has_ended.wait(), 5)
        await listener.stop()

    asyncio.run(scenario())


def test_a_head_request_is_answered_on_a_connection_that_stays_open():
    async def app(scope, receive, send):
        await Response(b"content")(scope, receive, send)

    async def scenario() -> None:
        listener = Listener("127.0.0.1", 0, None)
        await listener.start(app)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        async with asyncio.timeout(5):
            for method, body in ((b"HEAD", b""), (b"GET", b"content"), (b"HEAD", b"")):
                writer.write(REQUEST.replace(b"GET", method))
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                assert b"content-length: 7" in head
                assert await reader.readexactly(len(body)) == body
        writer.close()
        await listener.stop()

    asyncio.run(scenario())
