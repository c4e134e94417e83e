"""`python -m perf.extender`: what it prints, and that its extender takes part. Speed is not checked."""

import json

from perf.extender.__main__ import app
from perf.extender.responder import answer_to

from tests.cli.running import runner

SMALL = ("--nodes", "30", "--pods", "20", "--measure", "3")


def test_prints_a_row_for_each_way(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # a test runner may have set it
    result = runner.invoke(app, [*SMALL])
    assert result.exit_code == 0, result.output
    assert "30 nodes, filter and prioritize for each pod" in result.stdout
    for text in ("nodeCacheCapable", "whole nodes", "is the extender", "bytes per node", "pods/s"):
        assert text in result.stdout


def test_json_has_the_same_figures_and_the_size_of_a_node():
    result = runner.invoke(app, [*SMALL, "-o", "json"])
    names, nodes, served = json.loads(result.stdout)
    assert (names["exchange"], names["node_bytes"]) == ("names", 9)
    assert (nodes["exchange"], nodes["nodes"], nodes["measured"]) == ("nodes", 30, 3)
    assert nodes["node_bytes"] > 3000
    assert (served["exchange"], served["measured"]) == ("served", 3)
    assert 0 < nodes["median_ms"] <= nodes["p99_ms"]


def test_the_extender_refuses_and_scores_by_name_in_the_form_of_the_question():
    names = [f"node-{i}" for i in range(40)]
    items = [{"metadata": {"name": name}} for name in names]
    by_name = answer_to(b"/filter", {"Nodes": None, "NodeNames": names})
    whole = answer_to(b"/filter", {"Nodes": {"items": items}, "NodeNames": None})
    assert by_name["FailedNodes"] == whole["FailedNodes"] != {}
    assert [item["metadata"]["name"] for item in whole["Nodes"]["items"]] == by_name["NodeNames"]
    assert sorted([*by_name["NodeNames"], *by_name["FailedNodes"]]) == sorted(names)
    assert (by_name["Nodes"], whole["NodeNames"]) == (None, None)
    scores = answer_to(b"/prioritize", {"Nodes": {"items": items}, "NodeNames": None})
    assert [score["Host"] for score in scores] == names
    assert {score["Score"] for score in scores} <= set(range(11))
