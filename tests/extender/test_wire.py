"""The JSON of extenders: exact keys in requests, any case in answers, and nothing beyond what was sent."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.extender import wire
from moorage.framework.ports import ExtenderError, ExtenderFilterResult, Victims
from moorage.state.node_table import NodeTable
from moorage.testing import make_node, make_pod
from tests.extender.kit import POD, nodes_of

SENT = ("a", "b", "c")
LOW, MID = make_pod("low", uid="1"), make_pod("mid", uid="2")
OFFERED = {"a": Victims((MID, LOW), 1), "b": Victims((make_pod("other", uid="3"),))}


def test_nodes_go_by_name_to_an_extender_that_knows_them():
    sent = json.loads(wire.node_args(POD, nodes_of("a", "b"), names_only=True))
    assert sent.pop("Pod")["metadata"]["name"] == "p"
    assert sent == {"Nodes": None, "NodeNames": ["a", "b"]}


def test_nodes_go_as_objects_to_any_other():
    sent = json.loads(wire.node_args(POD, nodes_of("a", "b"), names_only=False))
    items = sent["Nodes"].pop("items")
    assert [item["metadata"]["name"] for item in items] == ["a", "b"]
    assert items[0]["status"]["allocatable"]["cpu"] == "4"
    assert (sent["Nodes"], sent["NodeNames"]) == ({"metadata": {}}, None)


@pytest.mark.parametrize("names", [(), ("a",)], ids=["none", "one"])
def test_any_number_of_nodes_makes_a_document(names):
    sent = json.loads(wire.node_args(POD, nodes_of(*names), names_only=False))
    assert sent["Pod"]["metadata"]["name"] == "p"
    assert [item["metadata"]["name"] for item in sent["Nodes"]["items"]] == list(names)


def test_a_node_is_encoded_once_per_version(monkeypatch):
    table = NodeTable()
    for name in ("a", "b"):
        table.set_node(make_node(name))
    wire.node_args(POD, table.nodes(), names_only=False)
    encoded = []
    encode = wire._encode

    def noted(value):
        encoded.append(value)
        return encode(value)

    monkeypatch.setattr(wire, "_encode", noted)
    table.set_node(make_node("b", labels={"x": "y"}))
    again = json.loads(wire.node_args(POD, table.nodes(), names_only=False))
    assert [value.name for value in encoded if isinstance(value, Node)] == ["b"]
    assert again["Nodes"]["items"][1]["metadata"]["labels"]["x"] == "y"


def test_victims_go_by_uid_or_as_pods():
    by_uid = json.loads(wire.preemption_args(POD, OFFERED, names_only=True))
    assert by_uid["NodeNameToVictims"] is None
    expected = {"Pods": [{"UID": "2"}, {"UID": "1"}], "NumPDBViolations": 1}
    assert by_uid["NodeNameToMetaVictims"]["a"] == expected
    as_pods = json.loads(wire.preemption_args(POD, OFFERED, names_only=False))
    assert as_pods["NodeNameToMetaVictims"] is None
    assert [pod["metadata"]["name"] for pod in as_pods["NodeNameToVictims"]["a"]["Pods"]] == ["mid", "low"]


def test_a_bind_names_pod_and_node():
    expected = {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "a"}
    assert json.loads(wire.binding_args(POD, "a")) == expected


def result(*names: str, failed: dict[str, str] | None = None, never: dict[str, str] | None = None):
    return ExtenderFilterResult(frozenset(names), failed or {}, never or {})


FILTER = [
    pytest.param('{"NodeNames": ["a", "b"]}', True, result("a", "b"), id="names"),
    pytest.param('{"nodenames": ["a"], "failednodes": {"b": "x"}}', True, result("a", failed={"b": "x"}),
                 id="keys in lower case"),
    pytest.param('{"NodeNames": ["a", "a"]}', True, result("a"), id="F3: twice"),
    pytest.param('{"Nodes": {"items": [{"metadata": {"name": "b"}}]}}', True, result("b"),
                 id="nodes where names were sent"),
    pytest.param('{"NodeNames": ["a"], "Nodes": null}', False, result(), id="names where nodes were sent"),
    pytest.param('{"Nodes": {"items": [{"metadata": {"name": "c"}, "status": {"allocatable": {"cpu": 9}}}]}}',
                 False, result("c"), id="F2: nodes, of which the names count"),
    pytest.param('{"Nodes": {"items": [{"metadata": {"name": "c"}}, {"metadata": {"name": "zz"}}, {}]}}',
                 False, result("c"), id="F2: nodes that were not sent"),
    pytest.param('{"NodeNames": null, "Nodes": null, "Error": ""}', True, result(), id="F4: null"),
    pytest.param('{"NodeNames": []}', True, result(), id="F4: empty"),
    pytest.param("{}", True, result(), id="F4: missing"),
    pytest.param("null", False, result(), id="F4: nothing"),
    pytest.param('{"Nodes": {"items": null}, "FailedNodes": null}', False, result(), id="F4: null inside"),
    pytest.param('{"NodeNames": ["a"], "FailedNodes": {"b": "x"}, "FailedAndUnresolvableNodes": {"b": "y"}}',
                 True, result("a", failed={"b": "x"}, never={"b": "y"}), id="F14: both"),
    pytest.param('{"FailedNodes": {"b": "two\\nlines"}}', True, result(failed={"b": "two\\nlines"}),
                 id="control characters"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "names_only", "expected"), FILTER)
def test_an_answer_to_filter(answer, names_only, expected):
    assert wire.filter_result(answer.encode(), SENT, names_only=names_only) == expected


WRONG = [
    pytest.param('{"NodeNames": ["a", "z\\u0007"]}', 'node "z\\x07" is not found in the input node list', id="F1"),
    pytest.param('{"Error": "no\\u001b[31m way"}', "no\\x1b[31m way", id="an error of its own"),
    pytest.param("[]", "invalid response: Expected `object | null`, got `array`", id="a list"),
    pytest.param(
        '{"NodeNames": "a"}', "Expected `array | null`, got `str` - at `$.NodeNames`", id="a string for a list"
    ),
    pytest.param('{"NodeNames": [1]}', "Expected `str`, got `int`", id="numbers for names"),
    pytest.param(
        '{"FailedNodes": {"a": 1}}', "Expected `str`, got `int` - at `$.FailedNodes", id="a number for a text"
    ),
    pytest.param('{"NodeNames": ["a"]', "truncated", id="F6: truncated"),
    pytest.param('{"NodeNames": ["a"]} {}', "trailing characters", id="F6: two documents"),
    pytest.param("<html></html>", "invalid response", id="F6: HTML"),
    pytest.param("", "invalid response", id="empty"),
    pytest.param('{"Error": "\xff"}'.encode("latin-1"), "invalid response", id="not UTF-8"),
    pytest.param('{"Nodes": ' + "[" * 100_000, "invalid response", id="very deep"),
]


@pytest.mark.parametrize(("answer", "message"), WRONG)
def test_an_answer_that_is_not_as_agreed_is_an_error(answer, message):
    with pytest.raises(ExtenderError, match=re.escape(message)):
        wire.filter_result(answer if isinstance(answer, bytes) else answer.encode(), SENT, names_only=True)


SCORES = [
    pytest.param('[{"Host": "a", "Score": 3}, {"Host": "b", "Score": 0}]', {"a": 3, "b": 0}, id="scores"),
    pytest.param('[{"host": "a", "score": 3}]', {"a": 3}, id="keys in lower case"),
    pytest.param('[{"Host": "a", "Score": 3}, {"Host": "a", "Score": 4}]', {"a": 4}, id="twice"),
    pytest.param('[{"Host": "a"}]', {"a": 0}, id="no score"),
    pytest.param("[]", {}, id="none"),
    pytest.param("null", {}, id="null"),
]


@pytest.mark.parametrize(("answer", "expected"), SCORES)
def test_an_answer_to_prioritize(answer, expected):
    assert wire.host_priorities(answer.encode()) == expected


@pytest.mark.parametrize("score", ["-1", "11", "1000000000000000000", "9.9", "NaN", "true", '"9"', "1" * 5000])
def test_f5_scores_are_integers_from_0_to_10(score):
    with pytest.raises(ExtenderError, match="invalid response"):
        wire.host_priorities(f'[{{"Host": "b", "Score": 1}}, {{"Host": "a", "Score": {score}}}]'.encode())


@pytest.mark.parametrize("answer", ['[{"Host": 1, "Score": 9}]', '[{"Score": 9}]', '{"a": 9}', "[null]"])
def test_scores_are_a_list_of_hosts(answer):
    with pytest.raises(ExtenderError, match="invalid response"):
        wire.host_priorities(answer.encode())


PREEMPT = [
    pytest.param({"a": {"Pods": [{"UID": "1"}], "NumPDBViolations": 0}}, {"a": Victims([LOW], 0)},
                 id="fewer nodes and victims"),
    pytest.param({"a": {"pods": [{"uid": "1"}, {"uid": "2"}, {"uid": "1"}], "numPDBViolations": 1}},
                 {"a": Victims([MID, LOW], 1)}, id="in the order of what was offered, each once"),
    pytest.param({"a": None}, {"a": Victims([], 0)}, id="no victims"),
    pytest.param({}, {}, id="no node"),
    pytest.param(None, {}, id="null"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "expected"), PREEMPT)
def test_an_answer_to_preempt(answer, expected):
    encoded = json.dumps({"NodeNameToMetaVictims": answer}).encode()
    assert wire.preemption_result(encoded, OFFERED) == expected


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param({"a": {"Pods": [{"UID": "3"}]}}, 'UID "3" was not offered', id="a pod of another node"),
        pytest.param({"a": {"Pods": [{"UID": "9"}]}}, 'UID "9" was not offered', id="no pod"),
        pytest.param({"z": {"Pods": [{"UID": "1"}]}}, 'node "z" was not in the request', id="another node"),
        pytest.param({"a": {"Pods": [{}]}}, "missing required field `UID`", id="no UID"),
        pytest.param({"a": {"Pods": [None]}}, "missing required field `UID`", id="null"),
        pytest.param({"a": {"Pods": [], "NumPDBViolations": -1}}, "Expected `int` >= 0", id="negative"),
        pytest.param({"a": {"Pods": [{"UID": 1}]}}, "Expected `str`, got `int`", id="a number"),
    ],
)
def test_f12_victims_are_among_those_offered(answer, message):
    with pytest.raises(ExtenderError, match=message):
        wire.preemption_result(json.dumps({"NodeNameToMetaVictims": answer}).encode(), OFFERED)


def test_an_answer_to_bind():
    wire.check_binding_result(b'{"Error": ""}')
    wire.check_binding_result(b"null")
    with pytest.raises(ExtenderError, match="taken"):
        wire.check_binding_result(b'{"error": "taken"}')


@pytest.mark.parametrize(
    ("text", "expected"),
    [("short", "short"), ("x" * 300, "x" * 256 + "..."), ("a\nb", "a\\nb"), ("\n" * 200, "\\n" * 200)],
)
def test_texts_are_short_and_on_one_line(text, expected):
    assert wire.shown(text) == expected


KEYS = st.sampled_from(
    ["NodeNames", "nodenames", "Nodes", "items", "metadata", "name", "Error", "FailedNodes", "Host", "Score",
     "NodeNameToMetaVictims", "Pods", "UID", "NumPDBViolations", "a", "b"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "a", "z", "1", "\x00"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12)


@settings(deadline=None)
@given(VALUES.map(json.dumps).map(str.encode) | st.binary())
def test_any_answer_is_narrowed_or_refused(answer):
    with contextlib.suppress(ExtenderError):
        assert wire.filter_result(answer, SENT, names_only=True).names <= set(SENT)
    with contextlib.suppress(ExtenderError):
        assert wire.filter_result(answer, SENT, names_only=False).names <= set(SENT)
    with contextlib.suppress(ExtenderError):
        assert all(0 <= score <= 10 for score in wire.host_priorities(answer).values())
    with contextlib.suppress(ExtenderError):
        for node, victims in wire.preemption_result(answer, OFFERED).items():
            assert {pod.uid for pod in victims.pods} <= {pod.uid for pod in OFFERED[node].pods}
    with contextlib.suppress(ExtenderError):
        wire.check_binding_result(answer)
