"""Log lines: their form, what is kept out of them, and what a disabled call costs."""

import io
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.telemetry import logs
from moorage.telemetry.logs import MAX_VALUE, quote

MOMENT = 1690794884.663787  # 2023-07-31 09:14:44.663787 UTC


@pytest.fixture(autouse=True)
def _undo() -> Iterator[None]:
    yield
    logs.remove()


def written(verbosity: int = 0, form: logs.Format = "text") -> io.StringIO:
    stream = io.StringIO()
    logs.setup(verbosity, form, stream, now=lambda: MOMENT)
    return stream


def pairs(**values: object) -> str:
    """What follows the message in a text line."""
    stream = written()
    logs.get("test").info(0, "M", **values)
    return stream.getvalue().partition('"M"')[2].strip()


@dataclass
class Keyed:
    key: str


def test_a_line_looks_as_klog_writes_it():
    stream = written(3)
    logs.get("moorage.scheduler").info(3, "Attempting to schedule pod", pod="default/x", evaluatedNodes=4)
    head, _, rest = stream.getvalue().partition("] ")
    start, place = head.rsplit(" ", 1)
    assert start == f"I0731 09:14:44.663787 {os.getpid():7d}"
    assert place.startswith("test_logs.py:")
    assert rest == '"Attempting to schedule pod" pod="default/x" evaluatedNodes=4\n'


def test_the_line_named_is_the_one_that_logs():
    stream = written()
    log = logs.get("test")
    log.info(0, "one")
    log.warning("two")
    log.error("three", error=ValueError("x"))
    places = [line.split("]")[0].rsplit(":", 1)[1] for line in stream.getvalue().splitlines()]
    first = int(places[0])
    assert [int(place) - first for place in places] == [0, 1, 2]


@pytest.mark.parametrize(
    ("write", "line"),
    [
        pytest.param(lambda log: log.info(0, "M"), 'I "M"', id="information"),
        pytest.param(lambda log: log.warning("M", a=1), 'W "M" a=1', id="warning"),
        pytest.param(lambda log: log.error("M", error=ValueError("no"), pod="x"), 'E "M" err="no" pod="x"', id="error"),
        pytest.param(lambda log: log.error("M", "why"), 'E "M" err="why"', id="error as text"),
        pytest.param(lambda log: log.error("M", msg="a", self=1), 'E "M" msg="a" self=1', id="any key"),
    ],
)
def test_severities(write, line):
    stream = written()
    write(logs.get("test"))
    text = stream.getvalue().rstrip("\n")
    assert f"{text[0]} {text.partition('] ')[2]}" == line


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("plain", '"plain"', id="text"),
        pytest.param('a"b\\c', '"a\\"b\\\\c"', id="quotes and backslashes"),
        pytest.param('x\nE0731 "forged"', '"x\\nE0731 \\"forged\\""', id="line end"),
        pytest.param("\x1b[31mred\x1b[0m", '"\\x1b[31mred\\x1b[0m"', id="terminal escape"),
        pytest.param("\x9b31m", '"\\x9b31m"', id="eight-bit terminal escape"),
        pytest.param("a\u2028b\u202ec", '"a\\u2028b\\u202ec"', id="line separator and direction override"),
        pytest.param("\ud800", '"\\ud800"', id="half a character"),
        pytest.param("tab\there", '"tab\\there"', id="tab"),
        pytest.param("Übergröße 漢字", '"Übergröße 漢字"', id="letters of any script"),
        pytest.param(7, "7", id="number"),
        pytest.param(np.int64(7), "7", id="number of NumPy"),
        pytest.param(float("nan"), '"nan"', id="not a number"),
        pytest.param(True, "true", id="truth value"),
        pytest.param(None, "null", id="nothing"),
        pytest.param(["a", 1], '["a", 1]', id="list"),
        pytest.param({"a": Keyed("n/x")}, '{"a": "n/x"}', id="map"),
        pytest.param(Keyed("default/web"), '"default/web"', id="object with a key"),
        pytest.param(KeyError("x"), "\"'x'\"", id="exception"),
    ],
)
def test_values_are_written_without_control_characters(value, shown):
    assert pairs(value=value) == f"value={shown}"


def test_long_values_are_cut():
    assert len(pairs(value="x" * 1_000_000)) < MAX_VALUE + 20


@given(st.text())
def test_any_text_stays_on_one_printable_line(text):
    assert quote(text).isprintable()


def test_json_is_one_object_a_line():
    stream = written(4, "json")
    log = logs.get("test")
    log.info(4, "Pod bound", pod="default/x", feasibleNodes=2, ts="mine")
    log.error("Failed\nbadly", error=ValueError("a\x9bb"))
    first, second = map(json.loads, stream.getvalue().splitlines())
    caller = first.pop("caller")
    assert caller.startswith("test_logs.py:")
    assert first == {
        "ts": MOMENT,
        "level": "info",
        "msg": "Pod bound",
        "v": 4,
        "pod": "default/x",
        "feasibleNodes": 2,
        "ts_": "mine",
    }
    assert (second["level"], second["msg"], second["err"]) == ("error", "Failed\nbadly", "a\x9bb")
    assert stream.getvalue().isascii()


@pytest.mark.parametrize(
    ("verbosity", "lines"), [(0, [0]), (3, [0, 2, 3]), (10, [0, 2, 3, 5, 10]), (99, [0, 2, 3, 5, 10])]
)
def test_verbosity_decides_what_is_written(verbosity, lines):
    stream = written(verbosity, "json")
    log = logs.get("test")
    for v in (0, 2, 3, 5, 10):
        assert log.enabled(v) == (v in lines)
        log.info(v, "M")
    assert [json.loads(line)["v"] for line in stream.getvalue().splitlines()] == lines


def test_a_traceback_is_indented_and_cannot_pass_for_a_record():
    stream = written()
    try:
        raise ValueError("boom\nE0731 forged")
    except ValueError as error:
        logs.get("test").error("Plugin failed", error=error, stack=True, plugin="Sample")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith('"Plugin failed" err="boom\\nE0731 forged" plugin="Sample"')
    assert "    ValueError: boom" in rest
    assert all(line.startswith("    ") for line in rest)


def test_a_traceback_in_json_is_a_field():
    stream = written(0, "json")
    try:
        raise ValueError("boom")
    except ValueError as error:
        logs.get("test").error("Plugin failed", error=error, stack=True)
    assert "ValueError: boom" in json.loads(stream.getvalue())["stack"]


def test_plain_logging_of_plugins_and_libraries_comes_out_in_the_same_form():
    stream = written()
    logging.getLogger("somebody.else").warning("disk %s\nis full", "sda")
    assert stream.getvalue().endswith('] "disk sda\\nis full"\n')


def test_setting_up_again_replaces_the_former_stream():
    first = written()
    second = written()
    logs.get("test").info(0, "M")
    assert first.getvalue() == ""
    assert second.getvalue().count("\n") == 1


def test_without_a_clock_the_time_is_that_of_the_record():
    stream = io.StringIO()
    logs.setup(0, "json", stream)
    record = logging.LogRecord("moorage.test", logging.INFO, "x.py", 1, "M", None, None)
    logging.getLogger("moorage.test").handle(record)
    assert json.loads(stream.getvalue())["ts"] == round(record.created, 6)


class Unreadable:
    """A value whose text costs too much to build for a line that is not written."""

    @property
    def key(self):
        raise AssertionError("the key was read")

    def __str__(self):
        raise AssertionError("the text was built")


def test_a_call_that_is_not_enabled_reads_none_of_its_values(monkeypatch):
    stream = written(0)
    monkeypatch.setattr(logging, "LogRecord", None)
    logs.get("test").info(5, "M", pod=Unreadable())
    assert stream.getvalue() == ""


class Broken(Exception):
    """An exception whose text cannot be built."""

    def __str__(self):
        raise SystemExit("no text")


def test_an_error_whose_text_raises_is_still_logged_by_its_type():
    stream = written(0)
    logs.get("test").error("M", error=Broken(), stack=True)
    assert 'err="<Broken whose __str__ raises SystemExit>"' in stream.getvalue()


@pytest.mark.parametrize(("verbosity", "style"), [(0, "text"), (3, "json"), (10, "text")])
def test_the_settings_can_be_handed_on(verbosity, style):
    logs.setup(verbosity, style, io.StringIO())
    try:
        assert logs.current() == (verbosity, style)
    finally:
        logs.remove()
    assert logs.current() == (0, "text")


def test_a_burst_each_period_and_the_rest_is_counted():
    time = [0.0]
    throttle = logs.Throttle(lambda: time[0], seconds=60.0, burst=2)
    assert [throttle.admits() for _ in range(5)] == [True, True, False, False, False]
    time[0] = 60.0
    assert throttle.admits()
    assert throttle.take_suppressed() == 3
    assert throttle.take_suppressed() == 0


def test_a_period_begins_with_its_first_call():
    time = [0.0]
    throttle = logs.Throttle(lambda: time[0], seconds=60.0, burst=1)
    time[0] = 59.0
    assert throttle.admits()
    time[0] = 61.0
    assert not throttle.admits()
    time[0] = 119.0
    assert throttle.admits()
