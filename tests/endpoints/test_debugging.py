"""/debug/pprof and /debug/flags/v: profiles, stacks and the verbosity of the log, behind the guard of the endpoints."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from moorage.endpoints import profiling
from moorage.endpoints.debugging import VERBOSITY, Debugging
from moorage.endpoints.loop_bridge import LoopBridge
from moorage.telemetry import logs
from tests.endpoints.served import Served

PROFILE, STACKS = "/debug/pprof/profile", "/debug/pprof/stacks"


class OtherLoop:
    """An event loop in a thread of its own, in place of the scheduling loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="scheduling", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


@pytest.fixture
def scheduling() -> Iterator[OtherLoop]:
    made = OtherLoop()
    yield made
    made.stop()


@pytest.fixture
def served(scheduling: OtherLoop) -> Iterator[Served]:
    made = Served(writable=(("PUT", VERBOSITY),), debugging=Debugging(LoopBridge(scheduling.loop, seconds=0.2)))
    yield made
    made.thread.stop()


@pytest.fixture
def _verbosity() -> Iterator[None]:
    before = logging.getLogger(logs.ROOT).level
    yield
    logging.getLogger(logs.ROOT).setLevel(before)


def test_a_profile_shows_where_threads_spend_their_time(served, scheduling):
    release = threading.Event()

    def busy_with_a_plugin() -> None:
        release.wait(10)

    scheduling.loop.call_soon_threadsafe(busy_with_a_plugin)
    try:
        code, text = served.ask(f"{PROFILE}?seconds=1", "admin-token")
    finally:
        release.set()
    assert code == 200
    [line] = [line for line in text.splitlines() if "busy_with_a_plugin" in line]
    stack, _, count = line.rpartition(" ")
    assert stack.startswith("scheduling;")
    assert stack.endswith("threading:Condition.wait")
    assert int(count) >= 5


def test_a_profile_for_speedscope_has_a_frame_for_every_sample(served):
    code, text = served.ask(f"{PROFILE}?seconds=1&format=speedscope", "admin-token")
    found = json.loads(text)
    assert code == 200
    frames = found["shared"]["frames"]
    [scheduling] = [profile for profile in found["profiles"] if profile["name"] == "scheduling"]
    assert max(index for stack in scheduling["samples"] for index in stack) < len(frames)
    assert scheduling["endValue"] == pytest.approx(sum(scheduling["weights"]))


def test_stacks_name_threads_and_tasks(served, scheduling):
    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    task = asyncio.run_coroutine_threadsafe(waits_for_ever(), scheduling.loop)
    code, text = served.ask(STACKS, "admin-token")
    task.cancel()
    assert code == 200
    assert "Thread scheduling:" in text
    assert "waits_for_ever" in text


def test_stacks_of_threads_are_shown_while_the_scheduling_loop_is_blocked(served, scheduling):
    release = threading.Event()

    def blocks_the_loop() -> None:
        release.wait(10)

    scheduling.loop.call_soon_threadsafe(blocks_the_loop)
    try:
        code, text = served.ask(STACKS, "admin-token")
    finally:
        release.set()
    assert code == 200
    assert "blocks_the_loop" in text
    assert "the loop did not answer within a second" in text


def test_one_profile_is_taken_at_a_time(monkeypatch):
    gate = asyncio.Event()

    async def until_released(seconds: float) -> profiling.StackProfile:
        await gate.wait()
        return profiling.StackProfile(seconds, 0, Counter())

    monkeypatch.setattr(profiling, "sample", until_released)

    async def story() -> None:
        subject = Debugging(LoopBridge(asyncio.get_running_loop()))
        first = asyncio.create_task(subject.profile(1))
        await asyncio.sleep(0)
        assert await subject.profile(1) is None
        gate.set()
        assert await first is not None
        assert await subject.profile(1) is not None

    asyncio.run(story())


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("seconds=0", "seconds must be"),
        ("seconds=301", "seconds must be"),
        ("seconds=-1", "seconds must be"),
        ("seconds=" + "9" * 5000, "seconds must be"),
        ("seconds=%D9%A1", "seconds must be"),
        ("seconds=1&format=pprof", "format must be collapsed or speedscope, not 'pprof'"),
    ],
)
def test_wrong_parameters_are_refused(served, query, why):
    code, text = served.ask(f"{PROFILE}?{query}", "admin-token")
    assert (code, why in text) == (400, True)


@pytest.mark.usefixtures("_verbosity")
def test_the_verbosity_is_changed_by_a_put(served):
    code, text = served.ask(VERBOSITY, "admin-token", method="PUT", body=b"4")
    assert (code, text) == (200, "successfully set the verbosity to 4\n")
    assert logs.get("moorage.x").enabled(4)
    assert not logs.get("moorage.x").enabled(5)
    assert served.ask(VERBOSITY, "admin-token") == (200, "4\n")


@pytest.mark.parametrize("body", [b"", b"x", b"-1", b"11", b"\xff", b"9" * 1000])
@pytest.mark.usefixtures("_verbosity")
def test_a_verbosity_that_is_no_number_changes_nothing(served, body):
    before = logs.current()
    assert served.ask(VERBOSITY, "admin-token", method="PUT", body=body)[0] == 400
    assert logs.current() == before


@pytest.mark.parametrize("path", [PROFILE, STACKS, VERBOSITY, "/debug/pprof/"])
def test_they_need_rights(served, path):
    assert served.ask(path)[0] == 401
    assert served.ask(path, "scraper-token")[0] == 403


def test_a_put_needs_the_verb_put(served):
    code, text = served.ask(VERBOSITY, "scraper-token", method="PUT", body=b"4")
    assert (code, "cannot put path" in text) == (403, True)
    assert served.ask(STACKS, "admin-token", method="PUT", body=b"4")[0] == 405


def test_without_profiling_they_do_not_exist():
    served = Served()
    try:
        assert served.ask(STACKS, "admin-token")[0] == 404
        assert served.ask(VERBOSITY, "admin-token", method="PUT", body=b"4")[0] == 405
    finally:
        served.thread.stop()


def test_a_profile_keeps_a_bounded_number_of_stacks(monkeypatch):
    monkeypatch.setattr(profiling, "MAX_STACKS", 0)
    found = asyncio.run(profiling.sample(0.05))
    assert {stack for _, stack in found.stacks} <= {(profiling.StackFrame(profiling.OTHER, "", 0),)}


def test_a_deep_stack_is_cut_at_its_outer_end():
    def deep(depth: int) -> profiling.Stack:
        if depth:
            return deep(depth - 1)
        return profiling.stack_of(sys._getframe())

    found = deep(2 * profiling.MAX_FRAMES)
    assert len(found) == profiling.MAX_FRAMES
    assert found[0].name.endswith("deep")
