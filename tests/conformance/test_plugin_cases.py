"""The answers of scheduler-plugins v0.34.7: a fifth of the cases that `make conformance` runs, by family."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.plugin_cases import evaluate_plugin

DATA = sorted((Path(__file__).parent / "data").glob("plugin_cases*.jsonl.gz"))
MAKEFILE = Path(__file__).parents[2] / "Makefile"


def read() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for path in DATA:
        for line in gzip.decompress(path.read_bytes()).splitlines():
            case = json.loads(line)
            found.setdefault(case["family"], []).append(case)
    return found


CASES = read()


@pytest.mark.parametrize("family", CASES)
def test_the_answers_are_those_of_scheduler_plugins(family):
    assert len(CASES[family]) >= 30
    for case in CASES[family]:
        answer = evaluate_plugin(case)
        assert answer.pop("id") == case["id"]
        if case["plugin"] == "Peaks":
            assert_close(answer, case["expect"])
        else:
            assert answer == case["expect"], case["id"]


DEFECTS = [
    json.loads(line)
    for path in sorted(DATA[0].parent.glob("plugin_defects*.jsonl"))
    for line in path.read_text().splitlines()
]


@pytest.mark.parametrize("case", DEFECTS, ids=[case["id"] for case in DEFECTS])
def test_inputs_that_break_scheduler_plugins_have_the_right_answer(case):
    assert evaluate_plugin(case) == {"id": case["id"], **case["expect"]}


def assert_close(answer: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raw scores of Peaks have sixteen digits, of which the last are those of the machine's exp()."""
    found, wanted = answer["plugins"]["Peaks"], expected["plugins"]["Peaks"]
    assert found["raw"] == pytest.approx(wanted["raw"], rel=1e-9, abs=1)
    assert found["score"] == pytest.approx(wanted["score"], abs=1)


def test_the_families_are_those_of_the_whole_comparison():
    [families] = re.findall(r"^PLUGIN_FAMILIES := (.*)$", MAKEFILE.read_text(), re.MULTILINE)
    assert sorted(families.split("|")) == sorted(CASES)


@pytest.mark.parametrize(
    ("case", "error"),
    [
        ({"plugin": "PodStates"}, 'did you mean "PodState"'),
        ({"plugin": "PodState", "input": {"pod": {}, "nodes": 7}}, "input.nodes: expected a list"),
        ({"plugin": "NodeMetadata", "input": {"pod": {}}}, "metadataKey: Required value"),
        ({"plugin": "PodState", "input": {"pod": {}, "node": []}}, "input.node: unknown; known are"),
        ({"plugin": "PodState", "input": {"pod": {}, "metrics": {}}}, "PodState looks at no metrics"),
        ({"plugin": "Coscheduling", "input": {"steps": [{"op": "rest"}]}}, "unknown op 'rest'"),
        ({"plugin": "Coscheduling", "input": {"steps": [{"op": "unbind", "pod": "a/b"}]}}, "pod 'a/b' is not"),
    ],
)
def test_a_case_that_cannot_be_read_is_answered_with_the_reason(case, error):
    assert error in evaluate_plugin({"id": 1, **case})["error"]
