"""The event recorder: what is written, how repetitions are counted, and what a failing server costs."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
import pytest

from moorage.api.errors import AlreadyExists, NotSent, OutcomeUnknown, from_status
from moorage.api.meta import ApiStatus, ObjectMeta, StatusCause, StatusDetails
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import EVENTS, Unstructured
from moorage.client import events
from moorage.client.events import ApiEventRecorder
from moorage.sim import loop
from moorage.sim.loop import VirtualClock
from moorage.telemetry.logs import VALUES
from tests.client.scripted import error, pod


class EventSink:
    """Takes events, or fails as requested: each failure answers one call."""

    def __init__(self, *failures: Exception | None, seconds: float = 0.0) -> None:
        self.failures = list(failures)
        self.seconds = seconds
        self.created: list[Any] = []
        self.patched: list[tuple[str, str, dict[str, Any]]] = []
        self.calls = 0

    async def create(self, resource, event):
        assert resource == EVENTS
        await self._answer()
        self.created.append(event)

    async def patch(self, resource, name, patch, *, namespace):
        assert resource == EVENTS
        await self._answer()
        self.patched.append((namespace, name, patch["series"]))

    async def _answer(self) -> None:
        self.calls += 1
        await asyncio.sleep(self.seconds)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure


def record(sink: EventSink, play: Callable[[ApiEventRecorder], Awaitable[None]], **options: Any) -> ApiEventRecorder:
    """Plays with a running recorder under virtual time."""

    async def main() -> ApiEventRecorder:
        client: Any = sink
        recorder = ApiEventRecorder(client, VirtualClock(), Random(3), instance="host-1", **options)
        task = asyncio.create_task(recorder.run())
        await play(recorder)
        await asyncio.sleep(300.0)
        assert not task.done()
        return recorder

    return loop.run(main())


def failed(recorder: ApiEventRecorder, name: str = "web", note: str = "0/3 nodes are available") -> None:
    recorder.event(
        pod(name),
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=note,
        controller="sample-scheduler",
    )


def test_an_event_is_written_as_kube_scheduler_writes_it():
    async def play(recorder):
        await asyncio.sleep(0.25)
        victim, preemptor = pod("victim", "7"), pod("preemptor", "8")
        recorder.event(
            victim,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note="Preempted by pod uid-preemptor on node n1",
            related=preemptor,
            controller="sample-scheduler",
        )

    sink = EventSink()
    record(sink, play)
    written = msgspec.to_builtins(sink.created[0])
    assert written["metadata"].pop("name").startswith("victim.")
    assert written == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.250000Z",
        "reportingController": "sample-scheduler",
        "reportingInstance": "sample-scheduler-host-1",
        "action": "Preempting",
        "reason": "Preempted",
        "type": "Normal",
        "note": "Preempted by pod uid-preemptor on node n1",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "victim",
            "uid": "uid-victim",
            "resourceVersion": "7",
        },
        "related": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "preemptor",
            "uid": "uid-preemptor",
            "resourceVersion": "8",
        },
    }


@pytest.mark.parametrize(
    ("regarding", "kind", "namespace"),
    [
        pytest.param(Node(metadata=ObjectMeta(name="n1")), "Node", "default", id="without namespace"),
        pytest.param(Pod(metadata=ObjectMeta(name="p", namespace="team")), "Pod", "team", id="in its own"),
        pytest.param(
            Unstructured({"apiVersion": "x.io/v1", "kind": "Gang", "metadata": {"name": "g", "namespace": "n"}}),
            "Gang",
            "n",
            id="custom resource",
        ),
        pytest.param(Pod(metadata=ObjectMeta(name="p" * 253, namespace="team")), "Pod", "team", id="longest name"),
    ],
)
def test_events_live_beside_their_object(regarding, kind, namespace):
    async def play(recorder):
        recorder.event(regarding, type="Normal", reason="R", action="A", note="n")

    sink = EventSink()
    record(sink, play)
    event = sink.created[0]
    assert (event.regarding.kind, event.metadata.namespace) == (kind, namespace)
    assert len(event.metadata.name) <= 253
    assert event.reporting_controller == "default-scheduler"


def test_events_of_one_instant_have_different_names():
    async def play(recorder):
        for number in range(20):
            failed(recorder, note=str(number))

    sink = EventSink()
    record(sink, play)
    assert len({event.metadata.name for event in sink.created}) == 20


def test_b18_repetitions_become_a_series_that_is_sent_sparingly():
    async def play(recorder):
        for _ in range(30):
            failed(recorder)
            await asyncio.sleep(10.0)

    sink = EventSink()
    record(sink, play)
    assert len(sink.created) == 1
    assert sink.created[0].series is None
    counts = [series["count"] for _, _, series in sink.patched]
    assert counts[0] == 2
    assert counts[-1] == 30
    assert len(counts) <= 8
    assert {name for _, name, _ in sink.patched} == {sink.created[0].metadata.name}
    assert sink.patched[-1][2]["lastObservedTime"] == "2026-01-01T00:04:50.000000Z"


def test_repetitions_made_before_the_first_was_sent_are_created_as_a_series():
    async def play(recorder):
        for _ in range(5):
            failed(recorder)

    sink = EventSink()
    record(sink, play)
    assert [event.series.count for event in sink.created] == [5]
    assert sink.patched == []


@pytest.mark.parametrize(
    ("pause", "created"),
    [(300.0, 1), (400.0, 2)],
    ids=["within six minutes the series goes on", "after six minutes of quiet a new event begins"],
)
def test_a_series_closes_after_six_quiet_minutes(pause, created):
    async def play(recorder):
        failed(recorder)
        await asyncio.sleep(pause)
        failed(recorder)

    sink = EventSink()
    record(sink, play)
    assert len(sink.created) == created


def test_different_notes_and_objects_are_different_events():
    async def play(recorder):
        failed(recorder, "a", "one")
        failed(recorder, "a", "two")
        failed(recorder, "b", "one")

    sink = EventSink()
    record(sink, play)
    assert len(sink.created) == 3


def test_b19_a_slow_sink_costs_events_but_neither_time_nor_memory():
    async def play(recorder):
        started = asyncio.get_running_loop().time()
        for number in range(500):
            failed(recorder, f"p{number}")
        assert asyncio.get_running_loop().time() == started

    sink = EventSink(seconds=5.0)
    recorder = record(sink, play, queue_size=10)
    assert recorder.dropped == 490
    assert len(sink.created) == 10


def test_b19_a_sink_down_for_ten_minutes_is_survived():
    async def play(recorder):
        for minute in range(10):
            failed(recorder, f"p{minute}")
            await asyncio.sleep(60.0)
        sink.failures.clear()
        failed(recorder, "after")

    sink = EventSink(*[NotSent("refused")] * 10_000)
    recorder = record(sink, play)
    assert sink.created[-1].regarding.name == "after"
    assert recorder.dropped == 11 - len(sink.created) > 0


def test_open_series_are_bounded(monkeypatch):
    monkeypatch.setattr(events, "SERIES_LIMIT", 3)

    async def play(recorder):
        for name in "abcd":
            failed(recorder, name)
        await asyncio.sleep(1.0)
        failed(recorder, "a")
        failed(recorder, "d")

    sink = EventSink()
    record(sink, play)
    assert [event.regarding.name for event in sink.created] == ["a", "b", "c", "d", "a"]
    assert len(sink.patched) == 1


EXISTS = AlreadyExists(ApiStatus(code=409, reason="AlreadyExists"))
TERMINATING = from_status(
    ApiStatus(code=403, reason="Forbidden", details=StatusDetails(causes=(StatusCause(reason="NamespaceTerminating"),)))
)


def test_a_full_queue_is_written_to_the_log_once_a_minute_with_a_count(caplog):
    """Two minutes in which events come ten times as fast as they go."""

    async def play(recorder):
        for second in range(120):
            for number in range(10):
                failed(recorder, f"p{second}-{number}")
            await asyncio.sleep(1.0)

    recorder = record(EventSink(seconds=1.0), play, queue_size=5)
    lines = [getattr(line, VALUES) for line in caplog.records if line.message == "Event queue is full"]
    assert 2 <= len(lines) <= 3
    assert (lines[0]["dropped"], lines[0]["suppressed"]) == (1, 0)
    assert lines[1]["suppressed"] == lines[1]["dropped"] - 2 > 400
    assert recorder.dropped > 1000


@pytest.mark.parametrize(
    ("failures", "calls", "dropped"),
    [
        pytest.param([error(500), error(503), None], 3, 0, id="server errors pass"),
        pytest.param([NotSent("refused"), None], 2, 0, id="not sent"),
        pytest.param([error(429, retry_after=20.0), None], 2, 0, id="too many requests"),
        pytest.param([OutcomeUnknown("cut"), EXISTS], 2, 0, id="sent after all"),
        pytest.param([error(401), error(403), None], 3, 0, id="a server that has just started"),
        pytest.param([OutcomeUnknown("cut")] * 11, 12, 0, id="cut again and again"),
        pytest.param([error(500)] * 20, 12, 1, id="given up after twelve tries"),
        pytest.param([NotSent("refused")] * 20, 12, 1, id="given up after twelve tries of a server away"),
        pytest.param([TERMINATING], 1, 1, id="namespace terminating"),
        pytest.param([error(404)], 1, 1, id="namespace gone"),
        pytest.param([error(403)] * 20, 12, 1, id="not allowed"),
        pytest.param([error(422)], 1, 1, id="not valid"),
    ],
)
def test_failures_are_retried_only_where_that_helps(failures, calls, dropped):
    async def play(recorder):
        failed(recorder)

    sink = EventSink(*failures)
    recorder = record(sink, play)
    assert (sink.calls, recorder.dropped) == (calls, dropped)


def test_a_server_away_for_half_a_minute_costs_no_event():
    async def play(recorder):
        for number in range(20):
            failed(recorder, f"p{number}")
        await asyncio.sleep(30.0)
        assert sink.calls < 12, "one try at a time while no try can succeed"
        sink.failures.clear()

    sink = EventSink(*[NotSent("refused")] * 10_000)
    recorder = record(sink, play)
    assert [event.regarding.name for event in sink.created] == [f"p{number}" for number in range(20)]
    assert recorder.dropped == 0


class Answers(EventSink):
    """Writes each event, and loses so many answers."""

    def __init__(self, lost: int) -> None:
        super().__init__()
        self.lost = lost

    async def create(self, resource, event):
        self.calls += 1
        if any(event.metadata.name == known.metadata.name for known in self.created):
            raise EXISTS
        self.created.append(event)
        self.lose()

    def lose(self) -> None:
        self.lost -= 1
        if self.lost >= 0:
            raise OutcomeUnknown("the connection was cut")


def test_an_event_whose_answer_was_lost_is_sent_again_and_written_once():
    async def play(recorder):
        for number in range(3):
            failed(recorder, f"p{number}")

    sink = Answers(lost=2)
    recorder = record(sink, play)
    assert [event.regarding.name for event in sink.created] == ["p0", "p1", "p2"]
    assert (sink.calls, recorder.dropped) == (5, 0)


def test_what_was_repeated_while_an_answer_was_lost_is_counted():
    async def play(recorder):
        failed(recorder)
        await asyncio.sleep(0.1)
        failed(recorder)

    sink = Answers(lost=1)
    record(sink, play)
    assert [event.series for event in sink.created] == [None]
    assert [series["count"] for _, _, series in sink.patched] == [2]


def test_an_event_that_the_server_fails_on_does_not_hold_up_the_others():
    async def play(recorder):
        failed(recorder, "bad")
        failed(recorder, "good")
        await asyncio.sleep(0.1)
        assert [event.regarding.name for event in sink.created] == ["good"]

    sink = EventSink(error(500))
    record(sink, play)
    assert [event.regarding.name for event in sink.created] == ["good", "bad"]


def test_a_repetition_does_not_shorten_the_pause_of_an_event_that_failed():
    async def play(recorder):
        for _ in range(10):
            failed(recorder)
            await asyncio.sleep(0.01)
        assert sink.calls == 1

    sink = EventSink(error(500), error(500))
    record(sink, play)
    assert [event.series.count for event in sink.created] == [10]
    assert sink.calls == 3


def test_events_that_wait_for_another_try_count_for_the_queue():
    async def play(recorder):
        for number in range(8):
            failed(recorder, f"p{number}")
            await asyncio.sleep(0.01)

    sink = EventSink(*[error(500)] * 8)
    recorder = record(sink, play, queue_size=5)
    assert (len(sink.created), recorder.dropped) == (5, 3)


@pytest.mark.parametrize("failure", [NotSent("refused"), error(500)], ids=["server away", "server error"])
def test_flush_does_not_wait_for_the_end_of_a_long_pause(failure):
    async def play(recorder):
        failed(recorder)
        await asyncio.sleep(5.0)
        assert sink.calls < 6, "by now the pauses are longer than the flush"
        sink.failures = [failure]
        assert await recorder.flush(2.0)
        assert len(sink.created) == 1

    sink = EventSink(*[failure] * 10_000)
    record(sink, play)


def test_ends_of_namespaces_are_not_worth_a_warning(caplog):
    async def play(recorder):
        failed(recorder)

    record(EventSink(TERMINATING), play)
    assert caplog.records == []


def test_a_series_that_the_server_has_forgotten_is_created_again():
    async def play(recorder):
        failed(recorder)
        await asyncio.sleep(1.0)
        failed(recorder)

    sink = EventSink(None, error(404), None)
    record(sink, play)
    assert [event.series and event.series.count for event in sink.created] == [None, 2]


def test_an_object_that_cannot_be_named_raises_nothing():
    async def play(recorder):
        recorder.event(object(), type="Normal", reason="R", action="A", note="n")

    assert record(EventSink(), play).dropped == 1


@pytest.mark.parametrize(("seconds", "done"), [(10.0, True), (2.0, False)], ids=["in time", "too slow"])
def test_flush_waits_for_the_queue_but_not_for_ever(seconds, done):
    async def play(recorder):
        failed(recorder)
        assert await recorder.flush(seconds) is done
        assert asyncio.get_running_loop().time() == min(seconds, 5.0)

    record(EventSink(seconds=5.0), play)


def test_flush_sends_counts_that_waited_for_the_next_refresh():
    async def play(recorder):
        for _ in range(4):
            failed(recorder)
            await asyncio.sleep(1.0)
        assert await recorder.flush()
        assert sink.patched[-1][2]["count"] == 4

    sink = EventSink()
    record(sink, play)


@pytest.mark.parametrize("text", ["漢" * 1000, "\ud800" * 1000, "\x00" * 2000], ids=["long", "surrogates", "control"])
def test_b20_notes_are_cut_at_a_character_within_the_byte_limit(text):
    async def play(recorder):
        recorder.event(pod("p"), type="Warning", reason=text, action=text, note=text)
        assert await recorder.flush()

    sink = EventSink()
    assert record(sink, play).dropped == 0
    (event,) = sink.created
    for found, limit in ((event.note, 1024), (event.reason, 128), (event.action, 128)):
        assert limit - 8 < len(found.encode()) <= limit
        assert found.endswith(" ...")
