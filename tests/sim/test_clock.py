"""The clock port over virtual time."""

from __future__ import annotations

from moorage.framework.ports import Clock
from moorage.sim.loop import EPOCH, VirtualClock, run


def test_now_counts_from_zero_and_wall_from_the_epoch():
    async def main() -> list[float]:
        clock: Clock = VirtualClock()
        await clock.sleep(90)
        return [clock.now(), clock.wall()]

    assert run(main()) == [90, EPOCH + 90]


def test_a_wall_clock_jump_leaves_now_alone():
    async def main() -> list[float]:
        clock = VirtualClock(epoch=1000.0)
        await clock.sleep(5)
        clock.epoch += 3600
        return [clock.now(), clock.wall()]

    assert run(main()) == [5, 4605]


def test_call_later_fires_once_and_can_be_cancelled():
    async def main() -> list[str]:
        fired: list[str] = []
        clock = VirtualClock()
        clock.call_later(1, fired.append, "kept")
        clock.call_later(1, fired.append, "cancelled").cancel()
        await clock.sleep(2)
        return fired

    assert run(main()) == ["kept"]
