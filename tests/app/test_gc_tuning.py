"""Garbage: collected when the scheduler is idle or long ago, free memory given back all the same."""

from __future__ import annotations

import asyncio
import ctypes
import gc

import pytest

from moorage.app import gc_tuning
from moorage.sim import loop as virtual
from moorage.sim.loop import VirtualClock


@pytest.mark.parametrize(("is_idle", "collections"), [(True, 2), (False, 1)])
def test_in_ten_minutes(is_idle, collections, monkeypatch):
    collected, given_back = [], []

    def collect():
        collected.append(1)
        return 0

    monkeypatch.setattr(gc, "collect", collect)
    monkeypatch.setattr(gc_tuning, "return_free_memory", lambda: given_back.append(1))

    async def main():
        clock = VirtualClock(asyncio.get_running_loop())
        running = asyncio.create_task(gc_tuning.run(clock, lambda: is_idle))
        await clock.sleep(gc_tuning.BUSY_INTERVAL + 1)
        running.cancel()

    virtual.run(main(), seed=0)
    assert len(collected) == collections
    assert len(given_back) == gc_tuning.BUSY_INTERVAL // gc_tuning.TRIM_INTERVAL


def test_memory_is_given_back_or_not_touched(monkeypatch):
    gc_tuning.return_free_memory()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())  # another C library
    gc_tuning.return_free_memory()
