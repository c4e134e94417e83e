"""What the views and pages compute without a browser."""

from __future__ import annotations

import msgspec
import pytest
import yaml

from moorage.endpoints.answers import PLACES, PastConfiguration, PendingPod
from moorage.web.pages import attempts_view, configuration_page, queue_page, what_if_page
from moorage.web.pages.explanation_view import RefusalRow
from moorage.web.pages.templates import TEMPLATES, template
from moorage.web.pages.transfer_view import FILES
from moorage.web.sources.node_columns import MAX_VALUES, label_columns
from tests.web.test_attempt_diff import attempt, refusal, score

POD = PendingPod(
    pod="a/b", uid="u", profile="p", place="backoff", why="Tried.", plugins=(), since=60.0, until=130.0,
    attempts=2, priority=7, nominated_node="",
)  # fmt: skip


def test_a_row_of_the_queue_has_state_reason_and_age():
    assert queue_page._row(POD, 100.0) == {
        "pod": "a/b",
        "pod_url": "/pod/a/b",
        "place": "Backoff, retried within 30s",
        "why": "Tried. 2 attempts.",
        "age": "40s",
        "priority": 7,
    }
    unknown = msgspec.structs.replace(POD, since=None, until=None, attempts=0)
    row = queue_page._row(unknown, 100.0)
    assert (row["age"], row["place"], row["why"]) == ("", "Backoff", "Tried.")


def test_every_place_has_a_label():
    assert set(PLACES) <= queue_page.PLACES.keys()


def test_the_table_of_an_attempt_has_the_best_nodes_before_the_rejected_ones():
    record = attempt(
        scores=[score("best", Fit=3)],
        refusals=[refusal("Fit", "small", "a"), refusal("Taint", "tainted", "b"), refusal("Fit", "full", "c")],
    )
    table = attempts_view.verdict_table(record)
    assert table["nodes"] == ["best", "a", "b", "c"]
    assert table["scores"] == [3, None, None, None]
    columns = {each["plugin"]: (each["reasons"], each["verdicts"]) for each in table["plugins"]}
    assert columns == {"Fit": (["small", "full"], [0, 1, 0, 2]), "Taint": (["tainted"], [0, 0, 1, 0])}


def test_the_points_of_an_attempt_are_those_on_record():
    extender = {"extender": "http://e", "removedNodes": 1, "error": "slow"}
    record = attempt(feasible=1, scores=[score("n", Fit=9)], margin=2, extenders=[extender], plugin="Fit")
    assert attempts_view._points(record) == [
        ("Filter", "3 of 3 nodes evaluated, 1 feasible"),
        ("Extender http://e", "removed 1 node: slow"),
        ("Score", "n has 9 points, 2 ahead of the second"),
        ("Failed or rejected by", "Fit"),
    ]


def test_rejections_of_explanations_and_attempts_are_read_alike():
    explained = {"plugin": "Fit", "code": "X", "reasons": ["r"], "nodes": 2, "onlyReason": 1, "details": ["d"]}
    rows = msgspec.convert(
        [explained, attempt(refusals=[refusal("Fit", "r", "a")]).refusals[0]], list[RefusalRow], from_attributes=True
    )
    assert [(row.nodes, row.only_reason, list(row.details)) for row in rows] == [(2, 1, ["d"]), (1, None, [])]


@pytest.mark.parametrize(
    ("error", "restart", "expected"),
    [
        ("", (), "Applied: generation 3"),
        ("", ("leaderElection",), "Applied: generation 3; these fields need a restart: leaderElection"),
        ("a typo", (), "Rejected; generation 3 stays in use: a typo"),
    ],
)
def test_the_outcome_of_a_configuration_is_a_sentence(error, restart, expected):
    entry = PastConfiguration(number=1, time=0.0, origin="file", generation=3, error=error, needs_restart=restart)
    assert configuration_page.outcome(entry) == expected


def test_what_if_lists_every_pod_that_would_change():
    outcome = {
        "placed": {"a/new": "n1"},
        "moved": {"a/moved": {"from": "n1", "to": "n2"}},
        "pending": {"a/stuck": "0/1 nodes"},
        "preempted": ["a/victim"],
        "lost": ["a/lone"],
        "present": {"a/moved": "n1", "a/stuck": "", "a/victim": "n1", "a/lone": "n1"},
    }
    rows = {row["pod"]: (row["now"], row["then"]) for row in what_if_page._rows(outcome)}
    assert rows == {
        "a/new": ("does not exist", "n1"),
        "a/moved": ("n1", "n2"),
        "a/stuck": ("pending", "pending: 0/1 nodes"),
        "a/victim": ("n1", "preempted"),
        "a/lone": ("n1", "deleted; no controller recreates it"),
    }
    assert what_if_page._headline(outcome) == "1 pod placed, 1 pod moved, 1 pod pending, 1 pod preempted, 1 pod lost"


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_is_an_object_whose_name_the_server_makes(kind):
    made = yaml.safe_load(TEMPLATES[kind])
    assert made["metadata"]["generateName"].endswith("-")
    assert made["apiVersion"]
    assert kind.startswith(made["kind"].lower())


def test_other_kinds_start_from_what_every_object_has():
    made = yaml.safe_load(template("widgets.v1.example.com", "example.com/v1", "Widget"))
    assert made == {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "example"}}


def test_both_forms_of_an_export_have_a_file():
    assert {form: name for form, (_, name) in FILES.items()} == {"snapshot": "snapshot.json", "simulator": "export.yml"}


def test_labels_with_a_value_for_each_node_are_no_groups():
    labels = [{"name": f"n{place}", "zone": "a"} for place in range(MAX_VALUES + 1)]
    assert label_columns([*labels, {}]) == {"zone": ["a"] * (MAX_VALUES + 1) + [""]}
