"""Text is read strictly, safely, and within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.config import yaml_source


def parse(text: str | bytes) -> tuple[object, list[str]]:
    value, problems = yaml_source.parse(text)
    return value, [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: 1\nb: [x, true, null, 1.5]", {"a": 1, "b": ["x", True, None, 1.5]}, id="YAML"),
        pytest.param('{"a": {"b": "\\ud83d\\ude00"}}', {"a": {"b": "\U0001f600"}}, id="JSON with surrogates"),
        pytest.param("{a: 1, b: 2,}", {"a": 1, "b": 2}, id="YAML in flow style, trailing comma"),
        pytest.param("a: 2024-01-01", {"a": "2024-01-01"}, id="dates stay text"),
        pytest.param("b: &x {p: 1}\nc: {<<: *x, q: 2}", {"b": {"p": 1}, "c": {"p": 1, "q": 2}}, id="merge key"),
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="alias"),
        pytest.param(b"\xef\xbb\xbfa: 1", {"a": 1}, id="byte order mark"),
    ],
)
def test_reads_plain_values(text, value):
    assert parse(text) == (value, [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "the file is empty", id="empty"),
        pytest.param("a: 1\n---\nb: 2", "the file holds more than one document", id="two documents"),
        pytest.param(
            "a:\n\tb: 1",
            "line 2, column 1: found character that cannot start any token (YAML is indented with spaces, not tabs)",
            id="tab",
        ),
        pytest.param(
            "a: 1\n// b\nc: 2",
            "line 3, column 1: could not find expected ':' (a YAML comment begins with #, not //)",
            id="comment of another language",
        ),
        pytest.param(b"\xff\xfe", "the file is not UTF-8", id="not UTF-8"),
        pytest.param("a: \ud800", "the file is not UTF-8", id="lone surrogate"),
        pytest.param("[" * 100_000, "the file is nested deeper than 64 levels", id="too deep"),
        pytest.param('{"a":' * 100_000, "the file is nested deeper than 64 levels", id="too deep in JSON"),
        pytest.param('{"a":' * 99 + "1" + "}" * 99, "nested deeper than 64 levels", id="a little too deep"),
        pytest.param("#" * (1 << 20) + "#", "the file has 1048577 bytes; at most 1048576 are read", id="too long"),
        pytest.param("? [a]\n: 1", "line 1: keys must be text", id="list as a key"),
    ],
)
def test_refuses_what_cannot_be_read(text, problem):
    value, problems = parse(text)
    assert value is None
    assert len(problems) == 1
    assert problem in problems[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a:\n- b: 1\n  b: 2", 'a[0].b: line 3: key "b" already set in map', id="key twice"),
        pytest.param('{"a": [{"b": 1, "b": 2}]}', 'a[0].b: key "b" already set in map', id="key twice in JSON"),
        pytest.param("a: !!python/name:os.system", "a: line 1: the tag", id="tag of Python"),
        pytest.param("a: !!binary aGk=", "a: line 1: the tag", id="binary tag"),
        pytest.param("a: .inf", "a: line 1: .inf is not a number", id="infinity"),
        pytest.param('{"a": NaN}', "a: nan is not a number", id="not a number in JSON"),
        pytest.param("a: " + "9" * 5000, "a: line 1: 9999", id="endless number"),
        pytest.param("a: !!int x", "a: line 1: x is not a number", id="tag and value disagree"),
        pytest.param("a: !!bool x", "a: line 1: x is not a number", id="no boolean"),
        pytest.param("1: x", ': keys must be text, got 1 (write "1")', id="number as a key"),
        pytest.param("a: {<<: 1}", "a.<<: expected a mapping to merge", id="merging a number"),
    ],
)
def test_tells_what_is_wrong_and_where(text, problem):
    _, problems = parse(text)
    assert len(problems) == 1
    assert problem in problems[0] or problems[0].startswith(problem)


def test_an_alias_bomb_is_stopped():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    _, problems = parse("\n".join(lines))
    assert problems == ["the file expands to more than 50000 values; are aliases nested?"]


def test_an_alias_to_itself_is_stopped():
    assert parse("a: &a [*a]") == (None, ["the file is nested deeper than 64 levels"])


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_answered(text):
    yaml_source.parse(text)
