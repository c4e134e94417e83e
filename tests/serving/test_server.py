"""Listeners: errors of a port, a clean stop, and the parts of uvicorn that they depend on."""

from __future__ import annotations

import asyncio
import inspect
import socket
from contextlib import suppress

import pytest
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from moorage.serving.connections import Connection, ConnectionLimits
from moorage.serving.server import CannotListen, Listener, PortInUse, listen


def test_a_port_in_use_names_the_option_that_set_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = f"cannot listen on 127.0.0.1 port {port}: it is in use; set another --here"
        with pytest.raises(PortInUse, match=message):
            listen("127.0.0.1", port, "--here")


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(CannotListen, match="this machine does not have that address"):
        listen("192.0.2.1", 0, "--port")


def test_the_port_is_taken_before_the_start_and_free_after_the_stop():
    async def scenario() -> None:
        listener = Listener("127.0.0.1", 0, None)
        with pytest.raises(PortInUse):
            listen("127.0.0.1", listener.port, "--port")
        await listener.stop()
        listen("127.0.0.1", listener.port, "--port").close()

    asyncio.run(scenario())


async def stuck(scope, receive, send):
    await asyncio.Event().wait()


async def answering(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


@pytest.mark.parametrize("app", [stuck, answering])
def test_a_stop_ends_idle_connections_and_aborts_answers_without_an_end(app):
    async def scenario() -> None:
        listener = Listener("127.0.0.1", 0, None)
        await listener.start(app)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
        if app is answering:
            assert b"done" in await reader.read(1000)
        while not listener.connections:
            await asyncio.sleep(0.01)
        called: list[str] = []
        async with asyncio.timeout(5):
            await listener.stop(0.2, before=lambda: called.append("before"))
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        assert (listener.connections, called) == (0, ["before"])
        writer.close()

    asyncio.run(scenario())


def test_uvicorn_has_the_private_parts_that_connections_use():
    """Connection overrides callbacks of HttpToolsProtocol and reads its state. pyproject.toml excludes
    uvicorn 1; if an earlier release changes these parts, this test names them."""
    parameters = list(inspect.signature(HttpToolsProtocol.__init__).parameters)
    assert parameters[1:5] == ["config", "server_state", "app_state", "_loop"]
    own = {name for name in vars(Connection) if not name.startswith("_")} - {"scope"}
    assert {name for name in own if not hasattr(HttpToolsProtocol, name)} == set()
    assert {"connections", "tasks"} <= vars(ServerState()).keys()
    assert hasattr(HttpToolsProtocol, "shutdown")
    assert "url" in HttpToolsProtocol.on_url.__code__.co_names
    assert "transport" in inspect.signature(RequestResponseCycle.__init__).parameters

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        config = Config(answering, http="httptools", ws="none", lifespan="off", log_config=None)
        config.load()
        made = Connection(config, ServerState(), loop, ConnectionLimits())
        used = ("connections", "transport", "scope", "headers", "cycle", "client", "expect_100_continue", "loop")
        assert [name for name in used if name not in vars(made)] == []

    asyncio.run(scenario())
