"""Works that end together: stopped, cancelled, or because one of them failed."""

from __future__ import annotations

import asyncio

import pytest

from moorage.embedded.controllers.work_queue import Together
from moorage.sim import loop as virtual


class Endless:
    """A work without end, which says when it was ended."""

    ended = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


def test_a_stop_ends_all_without_an_error():
    async def main() -> None:
        together, works = Together("test"), [Endless(), Endless()]
        running = asyncio.create_task(together.run(a=works[0].run(), b=works[1].run()))
        await asyncio.sleep(1)
        await together.stop()
        assert all(work.ended for work in works)
        await running
        await together.stop()  # a second one finds nothing to do

    virtual.run(main())


def test_cancelling_ends_all_and_is_raised():
    async def main() -> None:
        together, work = Together("test"), Endless()
        running = asyncio.create_task(together.run(a=work.run()))
        await asyncio.sleep(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert work.ended

    virtual.run(main())


def test_one_that_fails_ends_the_others_and_is_raised():
    async def fails() -> None:
        await asyncio.sleep(1)
        raise ValueError("broken")

    async def main() -> None:
        together, work = Together("test"), Endless()
        with pytest.raises(ValueError, match="broken"):
            await together.run(a=work.run(), b=fails())
        assert work.ended

    virtual.run(main())
