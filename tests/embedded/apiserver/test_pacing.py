"""Watches are notified at once while they are few, and together with a pause between when they are many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from moorage.embedded.apiserver.watches import FEW, SECONDS_EACH, Pacer
from moorage.sim.loop import VirtualClock, VirtualLoop


class Watches:
    """Some watches of one pacer; `notified` has (seconds, number) of each notification."""

    def __init__(self, count: int) -> None:
        self.clock = VirtualClock()
        self.notified: list[tuple[float, int]] = []
        self._pacer = Pacer(self.clock)
        self._wakes = [partial(self._tell, number) for number in range(count)]

    def news(self, *numbers: int) -> None:
        for number in numbers or range(len(self._wakes)):
            self._pacer.news(self._wakes[number])

    def take(self) -> list[tuple[float, int]]:
        taken, self.notified = self.notified, []
        return taken

    def _tell(self, number: int) -> None:
        self.notified.append((round(self.clock.now(), 6), number))


def run(test: Callable[[], object]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(test())  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 3, FEW])
def test_few_are_notified_at_once_however_often(count):
    async def main() -> None:
        watches = Watches(count)
        for _ in range(5):
            watches.news()
            now = round(watches.clock.now(), 6)
            assert watches.take() == [(now, number) for number in range(count)]
            await asyncio.sleep(0.0001)

    run(main)


def test_many_are_notified_at_once_and_then_together_with_a_pause_between():
    async def main() -> None:
        watches = Watches(100)
        pause = 100 * SECONDS_EACH
        start = watches.clock.now()
        watches.news()
        assert watches.take() == [(start, number) for number in range(100)], "nobody waits for the first news"
        for _ in range(3):
            await asyncio.sleep(pause / 10)
            watches.news()
        assert watches.take() == []
        await asyncio.sleep(pause)
        assert watches.take() == [(round(start + pause, 6), number) for number in range(100)], "once each"
        watches.news(7)
        await asyncio.sleep(pause)
        assert watches.take() == [(round(start + 2 * pause, 6), 7)]
        watches.news(8, 9)
        assert len(watches.take()) == 2, "after few there is no pause"

    run(main)


def test_after_a_silence_watches_are_notified_at_once():
    async def main() -> None:
        watches = Watches(100)
        for _ in range(3):
            watches.news()
            assert len(watches.take()) == 100
            await asyncio.sleep(2 * 100 * SECONDS_EACH)
            assert watches.take() == []

    run(main)
