"""Garbage: collected when the scheduler is idle or long ago, free memory given back all the same."""

from __future__ import annotations

import asyncio
import ctypes
import gc

import pytest

from moorage.app.running import garbage
from moorage.sim import loop as virtual
from moorage.sim.loop import VirtualClock


@pytest.mark.parametrize(("is_idle", "collections"), [(True, 2), (False, 1)])
def test_in_ten_minutes(is_idle, collections, monkeypatch):
    collected, given_back = [], []

    def collect():
        collected.append(1)
        return 0

    monkeypatch.setattr(gc, "collect", collect)
    monkeypatch.setattr(garbage, "give_back", lambda: given_back.append(1))

    async def main():
        clock = VirtualClock(asyncio.get_running_loop())
        running = asyncio.create_task(garbage.run(clock, lambda: is_idle))
        await clock.sleep(garbage.SELDOM + 1)
        running.cancel()

    virtual.run(main(), seed=0)
    assert len(collected) == collections
    assert len(given_back) == garbage.SELDOM // garbage.TRIM


def test_memory_is_given_back_or_left_alone(monkeypatch):
    garbage.give_back()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())  # another C library
    garbage.give_back()
