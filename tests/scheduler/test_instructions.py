"""Every instruction reaches the queue as what it says."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework import events
from moorage.framework.events import QueuedPod
from moorage.scheduler.failing import AttemptOutcome, Failure
from moorage.scheduler.instructions import (
    Activate,
    EndFlight,
    Enqueue,
    Inspect,
    Instruction,
    InstructionExecutor,
    Remove,
    Requeue,
    Resort,
    UpdateQueued,
    Wake,
)
from moorage.testing import make_pod

P, Q = make_pod("p"), make_pod("q")
INFO = QueuedPod(P, 0.0)
FAILURE = Failure(AttemptOutcome.ERROR, "broken")


class Recorder:
    """Queue, cache and failure handler in one: records the calls."""

    def __init__(self, known: bool = False, assumed: bool = False) -> None:
        self.known, self.assumed = known, assumed
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.calls.append((name, *args))

    def __contains__(self, uid: object) -> bool:
        return self.known

    def is_assumed(self, uid: str) -> bool:
        return self.assumed

    def on_event(self, event: Any, old: Any, new: Any, only: Any = None) -> None:
        woken = [pod.name for pod in (P, Q) if only is None or only(pod)]
        self.calls.append(("on_event", event.label, old, new, woken))


def executed(instruction: Instruction, **options: bool) -> list[tuple[Any, ...]]:
    recorder: Any = Recorder(**options)
    InstructionExecutor(recorder, recorder, recorder).execute(instruction)
    calls: list[tuple[Any, ...]] = recorder.calls
    return calls


CASES: list[Any] = [
    pytest.param(Enqueue(P), [("add", P)], id="Enqueue"),
    pytest.param(Remove(P), [("delete", P)], id="Remove"),
    pytest.param(Activate((P, Q), "X"), [("activate", (P, Q), "X")], id="Activate"),
    pytest.param(Resort(("a",)), [("resort", ("a",))], id="Resort"),
    pytest.param(EndFlight("a"), [("done", "a")], id="EndFlight"),
    pytest.param(Requeue(INFO, "default", FAILURE), [("handle", INFO, "default", FAILURE)], id="Requeue"),
    pytest.param(Wake(events.NODE_ADD, None, 5), [("on_event", "NodeAdd", None, 5, ["p", "q"])], id="Wake"),
    pytest.param(
        Wake(events.NODE_DELETE, 5, besides=P.uid),
        [("on_event", "NodeDelete", 5, None, ["q"])],
        id="Wake besides one pod",
    ),
]


@pytest.mark.parametrize(("instruction", "calls"), CASES)
def test_an_instruction_is_executed(instruction, calls):
    assert executed(instruction) == calls


@pytest.mark.parametrize(
    ("known", "assumed", "updated"),
    [(True, False, True), (True, True, True), (False, False, True), (False, True, False)],
)
def test_a_pod_that_is_being_bound_is_no_longer_the_queues(known, assumed, updated):
    calls = executed(UpdateQueued(P, Q), known=known, assumed=assumed)
    assert calls == ([("update", P, Q)] if updated else [])


def test_inspect_calls_its_look():
    looked: list[int] = []
    assert executed(Inspect("test", lambda: looked.append(1))) == []
    assert looked == [1]


def test_instructions_are_compared_by_kind_and_content_and_print_themselves():
    assert Enqueue(P) == Enqueue(P)
    assert Enqueue(P) != Remove(P)  # type: ignore[comparison-overlap]
    assert repr(EndFlight("a")) == "EndFlight(uid='a')"
