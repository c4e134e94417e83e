"""What the views and pages compute without a browser."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from moorage.endpoints.answers import PLACES, NodeAnswer, NodeCounts, PastConfiguration, PendingPod
from moorage.web.pages import attempts_view, configuration_page, node_page, pod_state, queue_page, what_if_page
from moorage.web.pages.alike import MIN_ALIKE, merged, runs
from moorage.web.pages.explanation_view import RefusalRow
from moorage.web.pages.templates import TEMPLATES, template
from moorage.web.pages.transfer_view import FILES
from moorage.web.source import PodContent
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
        "state": ("Backoff", ""),
        "reason": "Tried.",
        "why": "Tried. 2 attempts.",
        "age": "40s",
        "priority": 7,
    }
    unknown = msgspec.structs.replace(POD, since=None, until=None, attempts=0)
    row = queue_page._row(unknown, 100.0)
    assert (row["age"], row["place"], row["why"]) == ("", "Backoff", "Tried.")


def test_the_reason_of_a_pod_of_a_running_scheduler_has_figures_and_its_nomination():
    message = "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 not helpful."
    tried = msgspec.structs.replace(POD, message=message, nominated_node="n1", attempts=1)
    assert queue_page._row(tried, 100.0)["why"] == (
        "Nominated to n1. 0/2 nodes are available: 2 Insufficient cpu. 1 attempt."
    )


def test_thirty_pods_with_the_same_reason_are_one_row_with_a_count():
    pods = [msgspec.structs.replace(POD, pod=f"a/p{number}", attempts=number) for number in range(30)]
    other = msgspec.structs.replace(POD, pod="a/other", why="Another reason.")
    rows = merged([queue_page._row(pod, 100.0) for pod in [*pods, other]], "pod", queue_page.ALIKE)
    assert [(row["pod"], len(row.get("pod_more", ()))) for row in rows] == [("a/p0", 29), ("a/other", 0)]
    assert rows[0]["pod_more"][0] == {"text": "a/p1", "url": "/pod/a/p1"}
    mixed = merged([queue_page._row(pod, 100.0) for pod in (pods[0], other, pods[1])], "pod", queue_page.ALIKE)
    assert [row["pod"] for row in mixed] == ["a/p0", "a/other", "a/p1"], "few equal rows keep their places"
    counted = merged(({"pod": pod.pod, "why": "w", "pods": 2} for pod in pods), "pod", ("why",), "pods")
    assert [row["pods"] for row in counted] == [60]
    few = merged([queue_page._row(pod, 100.0) for pod in pods[: MIN_ALIKE - 1]], "pod", queue_page.ALIKE)
    assert len(few) == MIN_ALIKE - 1


def test_attempts_in_a_row_that_end_alike_are_one_entry():
    same = [attempt(sequence=number, message="no room") for number in range(30)]
    last = attempt(sequence=30, message="almost")
    assert [len(run) for run in runs([*same, last, *same[:2]], attempts_view._end_of)] == [30, 1, 1, 1]


def test_a_message_that_contains_what_post_filter_said_is_not_shown_twice():
    said = "preemption: 0/3 nodes are available"
    record = attempt(postFilter=said, message=f"0/3 nodes are available: 3 Insufficient cpu. {said}")
    assert "PostFilter" not in dict(attempts_view._points(record))
    assert dict(attempts_view._points(attempt(postFilter=said, message="")))["PostFilter"] == said


def test_a_scheduled_pod_says_why_its_node_was_chosen():
    nodes = NodeCounts(total=3, evaluated=3, feasible=2)
    scores = [score("n1", Fit=9, Spread=3), score("n2", Fit=4, Spread=4)]
    record = attempt(node="n1", result="scheduled", scores=scores, margin=4)
    record = msgspec.structs.replace(record, nodes=nodes)
    assert pod_state.why_chosen(record) == (
        "n1 had the highest score of 2 feasible nodes: 12 points, 4 more than n2, decided by Fit."
    )
    tied = msgspec.structs.replace(record, margin=0)
    assert "as n2; one of the best was chosen at random" in pod_state.why_chosen(tied)
    only = msgspec.structs.replace(record, nodes=NodeCounts(total=3, evaluated=3, feasible=1))
    assert pod_state.why_chosen(only) == "n1 was the only feasible node of 3."
    unknown = msgspec.structs.replace(record, scores=())
    assert pod_state.why_chosen(unknown).endswith("The scores of this attempt are not on record.")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "n1 is still the best node: 9 points, 2 more than the second, decided by Fit."),
        ({"own": {"node": "n1", "total": 5, "plugins": []}}, "n1 has 5 points now, and n2 has 4 more."),
        ({"ownRefused": ["Insufficient cpu"]}, "If the pod were created now, n1 would reject it: Insufficient cpu."),
    ],
)
def test_a_pod_without_a_record_says_how_its_node_compares_now(changes, expected):
    best: dict[str, Any] = {"node": "n2" if "own" in changes else "n1", "total": 9, "plugins": []}
    placement = {"scores": [best], "margin": 2, "decidedBy": ["Fit"], "own": None, "ownRefused": [], **changes}
    found = {"assignedTo": "n1", "placement": placement, "nodes": {"total": 3, "feasible": 2}}
    assert pod_state.why_there(found).endswith(expected)


def test_the_victims_of_a_nominated_pod_are_those_of_the_attempt_that_nominated_it():
    nominated = msgspec.structs.replace(POD, nominated_node="n1")
    first = attempt(sequence=1, nominatedNode="n1", victims=["a/low"])
    content = PodContent(None, nominated, [first, attempt(sequence=2)])
    assert list(pod_state.victims_of(content)) == ["a/low"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("Schedulable", "m-good")),
        ({"deletingSince": 0.0}, ("Terminating since 1970-01-01 00:00:00 UTC", "m-bad")),
        ({"unschedulable": True}, ("Cordoned: accepts no new pods", "m-bad")),
        (
            {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Gone", "message": "", "since": None}]},
            ("Not ready: Gone", "m-bad"),
        ),
        (
            {"taints": [{"key": "gpu", "value": "", "effect": "NoSchedule"}]},
            ("Accepts only pods that tolerate its taints", "m-warn"),
        ),
    ],
    ids=["plain", "deleted", "cordoned", "not ready", "tainted"],
)
def test_only_a_node_that_accepts_pods_is_called_schedulable(changes, expected):
    plain = {
        "name": "n", "labels": {}, "taints": [], "unschedulable": False, "allocatable": {}, "requested": {},
        "podCount": 0, "pods": [], "after": None,
    }  # fmt: skip
    assert node_page._state(msgspec.convert({**plain, **changes}, NodeAnswer)) == expected


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
