"""Two attempts side by side: what differs, and what is not claimed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.endpoints.answers import AttemptDetails
from moorage.web.pages import attempt_diff

EMPTY = {
    **dict.fromkeys(("attempt", "sequence", "started", "durationSeconds"), 0),
    **dict.fromkeys(("pod", "uid", "profile", "result", "message", "node", "nominatedNode", "plugin"), ""),
    **dict.fromkeys(("wokenBy", "wokenHint", "preFilter", "postFilter"), ""),
    **dict.fromkeys(("victims", "refusals", "extenders", "scores"), ()),
    "margin": None,
}


def attempt(total: int = 3, evaluated: int = 3, feasible: int = 0, **fields: Any) -> AttemptDetails:
    nodes = {"total": total, "evaluated": evaluated, "feasible": feasible}
    return msgspec.convert({**EMPTY, "nodes": nodes, **fields}, AttemptDetails)


def refusal(plugin: str, reason: str, *names: str) -> dict[str, Any]:
    group = {"plugin": plugin, "code": "Unschedulable", "reasons": [reason]}
    return {**group, "nodes": len(names), "nodeNames": list(names)}


def score(node: str, **points: int) -> dict[str, Any]:
    plugins = [{"plugin": plugin, "raw": 0, "normalized": 0, "weighted": number} for plugin, number in points.items()]
    return {"node": node, "total": sum(points.values()), "plugins": plugins}


FIT, TAINT = "Fit: too small", "Taint: tainted"
BEFORE = attempt(refusals=[refusal("Fit", "too small", "a", "b"), refusal("Taint", "tainted", "c")])
AFTER = attempt(refusals=[refusal("Fit", "too small", "a"), refusal("Taint", "tainted", "b")])


def test_only_nodes_with_another_verdict_are_listed():
    assert attempt_diff.changes(BEFORE, AFTER) == [("b", FIT, TAINT), ("c", TAINT, "not rejected")]
    assert attempt_diff.changes(BEFORE, BEFORE) == []


def test_changes_are_counted_by_what_became_of_what():
    changed = [("a", FIT, TAINT), ("b", TAINT, FIT), ("c", FIT, TAINT)]
    assert attempt_diff.groups(changed) == [("2 nodes", FIT, TAINT), ("1 node", TAINT, FIT)]


def test_the_table_has_a_column_for_each_attempt():
    table = attempt_diff.table([("a", FIT, TAINT), ("b", TAINT, FIT)], ("Attempt 1", "Attempt 2"))
    assert table["nodes"] == ["a", "b"]
    said = [[column["reasons"][at - 1] for at in column["verdicts"]] for column in table["plugins"]]
    assert said == [[FIT, TAINT], [TAINT, FIT]]


def test_facts_that_are_equal_are_omitted():
    now = attempt(feasible=1, result="scheduled", node="c")
    assert attempt_diff.facts(BEFORE, now) == [
        ("Result", "-", "scheduled"),
        ("Node", "-", "c"),
        ("Nodes", "0 feasible of 3 evaluated (3 in total)", "1 feasible of 3 evaluated (3 in total)"),
    ]


def test_scores_that_moved_name_the_plugins_whose_points_did():
    before = attempt(scores=[score("a", Fit=60, Spread=20), score("b", Fit=50, Spread=20), score("c", Fit=1)])
    after = attempt(scores=[score("b", Fit=50, Spread=40), score("a", Fit=60, Spread=20), score("d", Fit=2)])
    assert attempt_diff.scores(before, after) == [
        ("b", "70", "90", "Spread 20 → 40"),
        ("d", "not among the best", "2", ""),
        ("c", "1", "not among the best", ""),
    ]


def test_an_attempt_without_scores_on_record_has_none_that_moved():
    assert attempt_diff.scores(attempt(), attempt(scores=[score("a", Fit=1)])) == []


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (attempt(), ""),
        (attempt(total=4), "Nodes were added or removed"),
        (attempt(evaluated=2), "Not all nodes were evaluated"),
    ],
)
def test_what_the_records_cannot_tell_is_said(after, says):
    found = attempt_diff.note(attempt(), after)
    assert says in found
    assert bool(found) == bool(says)
