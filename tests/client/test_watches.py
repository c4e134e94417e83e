"""From the bytes of a watch to events."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.errors import BadAnswer, Gone, ServerError
from moorage.api.pod import Pod
from moorage.api.resources import PODS, Unstructured, custom
from moorage.client import watches
from moorage.client.watches import Lines, Stranger
from moorage.framework.ports import ADDED, BOOKMARK, MODIFIED, Malformed, WatchEvent

WIDGETS = custom("example.com", "v1", "widgets", "Widget")


def line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}, ensure_ascii=False).encode()


def pod(name: str = "p", version: str = "7", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "a", "resourceVersion": version, **more.pop("metadata", {})}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, **more}


def read(data: bytes, resource: Any = PODS) -> WatchEvent:
    return watches.reader(resource)(data)


# Framing

TEXT = st.characters(exclude_characters="\n", codec="utf-8")


@given(
    st.lists(st.text(TEXT).filter(str.strip), max_size=8),
    st.text(TEXT, max_size=20),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
)
def test_a5_lines_come_out_whole_however_the_bytes_are_cut(lines, partial, sizes):
    """Two events in a chunk, an event in many, cuts inside a character. What is not complete is dropped."""
    stream = "".join(f"{text}\n" for text in lines).encode() + partial.encode()
    framing, found, start, turn = Lines(10_000), [], 0, 0
    while start < len(stream):
        size = sizes[turn % len(sizes)]
        found += framing.feed(stream[start : start + size])
        start, turn = start + size, turn + 1
    assert [text.decode() for text in found] == [text for text in lines if text.encode().strip()]


def test_blank_lines_are_no_events():
    assert Lines(100).feed(b"\n\r\n  \n{}\n") == [b"{}"]


def test_a28_a_line_without_end_is_given_up():
    framing = Lines(1000)
    for _ in range(10):
        framing.feed(b"x" * 100)
    with pytest.raises(BadAnswer, match="longer than 1000 bytes"):
        framing.feed(b"x" * 100)


def test_a28_an_object_of_three_mebibytes_passes():
    big = line(ADDED, pod(metadata={"annotations": {"big": "x" * 3 * 2**20}}))
    framing = Lines(16 * 2**20)
    found = [piece for i in range(0, len(big), 65536) for piece in framing.feed(big[i : i + 65536])]
    found += framing.feed(b"\n")
    assert [len(read(piece).object.annotations["big"]) for piece in found] == [3 * 2**20]


# Events


def test_an_event_is_typed():
    event = read(line(MODIFIED, pod(spec={"nodeName": "n"})))
    assert (event.type, event.resource_version) == (MODIFIED, "7")
    assert isinstance(event.object, Pod)
    assert event.object.spec.node_name == "n"


def test_a_custom_object_is_unstructured():
    event = read(line(ADDED, {"kind": "Widget", "metadata": {"resourceVersion": "3"}, "size": 1}), WIDGETS)
    assert isinstance(event.object, Unstructured)
    assert event.object.get("size") == 1
    assert event.resource_version == "3"


@pytest.mark.parametrize("resource", [PODS, WIDGETS], ids=str)
def test_a18_a_bookmark_with_nothing_but_kind_and_version(resource):
    event = read(line(BOOKMARK, {"kind": resource.kind, "metadata": {"resourceVersion": "12"}}), resource)
    assert event == WatchEvent(BOOKMARK, None, "12")


@pytest.mark.parametrize("value", ["true", "false"])
def test_a19_the_end_of_the_initial_events_is_marked(value):
    meta = {"resourceVersion": "12", "annotations": {"k8s.io/initial-events-end": value}}
    event = read(line(BOOKMARK, {"kind": "Pod", "metadata": meta}))
    assert event.initial_events_end == (value == "true")


def test_a7_an_error_line_is_raised_and_never_an_object():
    status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
    for resource in (PODS, WIDGETS):
        with pytest.raises(Gone, match="too old"):
            read(line("ERROR", status), resource)


def test_an_error_line_that_cannot_be_read_is_an_error_all_the_same():
    with pytest.raises(ServerError):
        read(line("ERROR", {"kind": "Status", "code": "x"}))


@pytest.mark.parametrize(
    "obj",
    [None, {"kind": "Node", "metadata": {"name": "n"}}, {"kind": "Table", "rows": []}, {}, 3, []],
    ids=["null", "another kind", "Table", "nothing", "a number", "a list"],
)
@pytest.mark.parametrize("resource", [PODS, WIDGETS], ids=str)
def test_a26_objects_of_another_kind_are_marked_as_such(obj, resource):
    event = read(line(ADDED, obj), resource)
    assert isinstance(event.object, Stranger)
    assert event.resource_version == "", "a version of something else leads nowhere"


def test_a26_an_unknown_type_is_handed_on_for_the_reader_to_skip():
    assert read(line("RENAMED", pod())).type == "RENAMED"


@pytest.mark.parametrize(
    "broken",
    [
        {"spec": {"priority": "high"}},
        {"metadata": {"labels": {"a": 3}}},
        {"metadata": {"annotations": 7}},
        {"metadata": {"resourceVersion": 7}},
    ],
)
def test_a27_a_malformed_object_is_an_event_about_that(broken):
    event = read(line(MODIFIED, pod(**broken)))
    assert isinstance(event.object, Malformed)
    assert event.object.key == "a/p"


def test_nulls_are_empty_values():
    event = read(line(ADDED, pod(metadata={"labels": None}, spec={"containers": None})))
    assert isinstance(event.object, Pod)
    assert event.object.labels == {}


@pytest.mark.parametrize("data", [b"<html>", b"{", b"[]", b"3", b'{"type": 3}', b"\xff\xfe"])
def test_lines_that_are_no_events_are_errors(data):
    with pytest.raises(BadAnswer, match="watch of pods: a line is not an event"):
        read(data)


@given(st.binary(max_size=60))
def test_whatever_comes_is_an_event_or_one_of_our_errors(data):
    with suppress(BadAnswer):
        read(data)
