"""The heartbeat and the watchdog: a loop that stands still is noticed from outside, and who holds it up."""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from mooring.app.running.process import LOOP_TOLERANCE, _late
from mooring.app.running.watchdog import INTERVAL, Heart, Watchdog, hook_of
from mooring.framework import FilterPlugin
from mooring.telemetry.metrics import SchedulerMetrics


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


def test_a_stack_without_plugins_blames_none():
    assert hook_of(sys._getframe()) == ("", "")


def test_c14_a_loop_that_is_silent_for_long_is_no_longer_alive():
    assert _late(LOOP_TOLERANCE - 1) == ""
    assert "no heartbeat" in _late(LOOP_TOLERANCE + 1)
