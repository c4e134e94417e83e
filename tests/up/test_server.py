"""The server process of the embedded cluster: it does not go on without one of its parts."""

from __future__ import annotations

import asyncio

import pytest

from moorage.up.process import Orders
from moorage.up.server import EmbeddedServer


def test_a_part_that_ends_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server = EmbeddedServer(Orders())
        try:
            await server.start()
            assert not server.lost_part.done()
            next(task for task in asyncio.all_tasks() if task.get_name() == "kubelets").cancel()
            assert await asyncio.wait_for(server.lost_part, 10) == "kubelets"
        finally:
            await server.stop()

    asyncio.run(scenario())
    assert "A part of the cluster ended" in caplog.text


def test_parts_that_stop_with_the_server_are_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server = EmbeddedServer(Orders())
        await server.start()
        await server.stop()
        assert not server.lost_part.done()

    asyncio.run(scenario())
    assert "A part of the cluster ended" not in caplog.text
