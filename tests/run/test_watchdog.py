"""The heartbeat and the watchdog: a loop that stands still is noticed from outside, and who holds it up."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time

import pytest

from moorage.framework import FilterPlugin
from moorage.run.endpoints import LOOP_TOLERANCE, loop_check
from moorage.run.watchdog import INTERVAL, STEP, STOPPING, Heart, ThreadTimes, Watchdog, hook_of, thread_times
from moorage.telemetry.logs import VALUES
from moorage.telemetry.metrics import SchedulerMetrics


class Slow(FilterPlugin):
    name = "Slow"

    def __init__(self) -> None:
        """Without a handle: it is only called."""

    def filter(self, state, pod, node):
        return self._think()

    def _think(self):
        time.sleep(0.6)


def test_a_blocked_loop_does_not_beat():
    async def main() -> tuple[float, float]:
        heart = Heart(time.monotonic)
        heart.start()
        await asyncio.sleep(4 * INTERVAL)
        alive = heart.age()
        time.sleep(0.3)
        blocked = heart.age()
        heart.stop()
        return alive, blocked

    alive, blocked = asyncio.run(main())
    assert alive < 0.25
    assert blocked >= 0.3


def test_the_watchdog_names_the_plugin_and_its_hook_once(caplog):
    async def main() -> SchedulerMetrics:
        metrics = SchedulerMetrics(time.monotonic)
        heart = Heart(time.monotonic)
        heart.start()
        watchdog = Watchdog(heart, metrics)
        watchdog.start()
        await asyncio.sleep(3 * INTERVAL)
        Slow().filter(None, None, None)
        await asyncio.sleep(3 * INTERVAL)
        watchdog.stop()
        heart.stop()
        return metrics

    with caplog.at_level(logging.WARNING):
        metrics = asyncio.run(main())
    assert metrics.slow_hooks.samples().get(("Slow", "filter")) == 1
    assert "The scheduling loop is held up" in caplog.text


def held_up(times: ThreadTimes, late: float) -> int:
    """How many blockages are reported half a second after a beat, for a thread that has these times since then, by a
    watchdog that is late itself by so many seconds."""
    clock, known = [100.0], [(0.0, 0.0)]
    metrics = SchedulerMetrics(time.monotonic)
    heart = Heart(lambda: clock[0])
    watchdog = Watchdog(heart, metrics, times=lambda heart: known[0], now=lambda: clock[0])
    watchdog.step()
    steps = round((0.5 - late) / STEP)
    for number in range(1, steps + 1):
        clock[0] += STEP + (late if number == steps else 0.0)
        known[0] = times[0] * number / steps, times[1] * number / steps
        watchdog.step()
    return int(sum(metrics.slow_hooks.samples().values()))


@pytest.mark.parametrize(
    ("times", "late", "reports"),
    [
        ((0.0, 0.0), 0.0, 1),  # it waits for something else than the processor
        ((0.5, 0.0), 0.0, 1),
        ((0.0, 0.45), 0.0, 0),
        ((0.0, 0.1), 0.0, 1),
        ((0.0, 0.0), 0.4, 0),  # the process stood still
        ((0.45, 0.0), 0.4, 1),  # the loop's thread did not let the watchdog run
    ],
)
def test_item_6_a_machine_that_does_not_give_the_processor_is_not_reported(times, late, reports):
    assert held_up(times, late) == reports


def test_the_times_of_a_thread_grow_with_what_it_does():
    heart = Heart(time.monotonic)
    before = thread_times(heart)
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass
    after = thread_times(heart)
    assert after[0] - before[0] >= 0.01
    assert after[1] >= before[1]


def test_item_2_the_watchdog_says_whom_stopping_waits_for_when_it_had_reported_the_same_silence_before(caplog):
    async def main() -> None:
        heart = Heart(time.monotonic)
        heart.start()
        watchdog = Watchdog(heart)
        watchdog.start()
        await asyncio.sleep(2 * INTERVAL)
        threading.Timer(0.35, setattr, (watchdog, "stopping", True)).start()
        Slow().filter(None, None, None)
        watchdog.stop()
        heart.stop()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert [record.msg for record in caplog.records] == ["The scheduling loop is held up", STOPPING]
    assert {record.__dict__[VALUES]["plugin"] for record in caplog.records} == {"Slow"}


def test_item_2_a_hint_or_callback_is_named_by_the_method_that_the_scheduler_called():
    class Hinting(Slow):
        def is_less_busy(self, pod, old, new):
            return self._think()

        def _think(self):
            return hook_of(sys._getframe())

    assert Hinting().is_less_busy(None, None, None) == ("Slow", "is_less_busy")


def test_a_stack_without_plugins_blames_none():
    assert hook_of(sys._getframe()) == ("", "")


def test_c14_a_loop_that_is_silent_for_long_is_no_longer_alive():
    now = [0.0]
    check = loop_check(Heart(lambda: now[0]))
    now[0] = LOOP_TOLERANCE - 1
    assert check.run() == ""
    now[0] = LOOP_TOLERANCE + 1
    assert "no heartbeat" in check.run()
