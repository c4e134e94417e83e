"""The heartbeat and the watchdog: a loop that stands still is noticed from outside, and who holds it up."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time

from moorage.framework import FilterPlugin
from moorage.run.endpoints import LOOP_TOLERANCE, loop_check
from moorage.run.watchdog import INTERVAL, STOPPING, Heart, Watchdog, hook_of
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
