"""NodeStatuses and DecisionRecord: who refused which node, and what the record keeps of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework import Code, NodeStatuses, Status
from moorage.framework.status import SUCCESS
from moorage.runtime.record import DecisionRecord, Diagnosis, RefusalCount, size_of
from moorage.runtime.top_scores import TopScores, pack
from moorage.state.node_listing import NodeEpoch
from moorage.state.node_table import NodeTable
from moorage.testing import make_node

FULL = Status.unschedulable("full").by("Fit")
FULL_TWICE = Status.unschedulable("full", "no ports").by("Fit")
TAINTED = Status.unresolvable("tainted").by("Taint")
SOON = Status.pending("soon").by("Gang")
NAMELESS = Status.unresolvable("outside")
TEN = pack(range(10))


def statuses_of(*verdicts: Status) -> NodeStatuses:
    """One node per verdict, and one row in between that is free."""
    table = NodeTable()
    for i in range(len(verdicts) + 1):
        table.set_node(make_node(f"n{i}"))
    table.remove_node("n0")
    statuses = NodeStatuses(table.nodes())
    for i, verdict in enumerate(verdicts):
        if verdict is not SUCCESS:
            statuses.set_row(table.row_of(f"n{i + 1}"), verdict)
    return statuses


def test_nodes_that_no_plugin_refused_have_success():
    statuses = statuses_of(FULL, SUCCESS)
    assert [statuses.get(name) for name in ("n1", "n2", "unknown")] == [FULL, SUCCESS, SUCCESS]
    assert list(statuses) == [("n1", FULL)]
    assert len(statuses) == 1


def test_the_histogram_counts_each_reason_of_a_node():
    statuses = statuses_of(FULL, FULL_TWICE, TAINTED, SUCCESS)
    assert statuses.histogram() == {"full": 2, "no ports": 1, "tainted": 1}


def test_rejectors_are_distinguished_from_those_that_answered_pending():
    refused, pending = statuses_of(FULL, TAINTED, SOON, NAMELESS).rejectors()
    assert (sorted(refused), sorted(pending)) == (["Fit", "Taint"], ["Gang"])


def test_a_plugin_can_be_both():
    refused, pending = statuses_of(FULL, Status.pending("later").by("Fit")).rejectors()
    assert (sorted(refused), sorted(pending)) == (["Fit"], ["Fit"])


def test_nodes_by_code_come_in_snapshot_order():
    statuses = statuses_of(TAINTED, FULL, SUCCESS, TAINTED)
    assert statuses.names_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE) == ["n1", "n4"]
    assert statuses.names_with(Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE) == ["n1", "n2", "n4"]
    assert statuses.names_with(Code.PENDING) == []


def test_a_later_verdict_replaces_the_earlier_one():
    statuses = statuses_of(FULL)
    statuses.set_row(statuses.nodes.columns.row_of("n1"), TAINTED)
    assert statuses.histogram() == {"tainted": 1}
    assert statuses.rejectors() == (frozenset({"Taint"}), frozenset())


@given(st.lists(st.sampled_from((SUCCESS, FULL, FULL_TWICE, TAINTED, SOON, NAMELESS)), max_size=15))
def test_counts_equal_a_recount(verdicts):
    statuses = statuses_of(*verdicts)
    hit = [verdict for verdict in verdicts if verdict is not SUCCESS]
    assert [status for _, status in statuses] == hit
    assert statuses.histogram() == Counter(reason for verdict in hit for reason in verdict.reasons)
    assert dict(statuses.count_by_verdict()) == Counter(hit)
    assert len(statuses) == len(hit)


def record_with_refusals() -> DecisionRecord:
    record = DecisionRecord("default/p", "u", "default-scheduler", 2, 1000.0)
    record.diagnosis = Diagnosis(
        refusals=(RefusalCount("Fit", "Unschedulable", ("full",), 2),),
        reason_ids=np.array([1, 0, 1], dtype=np.uint8),
        epoch=NodeEpoch(1, ("a", "", "c")),
    )
    return record


def test_a_record_tells_why_a_node_was_refused():
    record = record_with_refusals()
    assert [record.refusal_of(name) for name in ("a", "c")] == [record.refusals[0]] * 2
    assert record.refusal_of("unknown") is None
    assert record.refusal_of("") is None


def test_a_record_without_refusals_knows_none():
    assert DecisionRecord("default/p", "u", "s", 1, 0.0).refusal_of("a") is None


def test_a_record_is_json():
    record = record_with_refusals()
    record.top = TopScores(pack([0, 1]), pack([300, 295]), [("Taint", 3, 0, pack([100, 98]))])
    shown = json.loads(json.dumps(record.to_dict()))
    refusal = {"plugin": "Fit", "code": "Unschedulable", "reasons": ["full"], "nodes": 2}
    assert shown["refusals"] == [{**refusal, "nodeNames": ["a", "c"]}]
    assert record.to_dict(names=1)["refusals"] == [{**refusal, "nodeNames": ["a"]}]
    assert shown["scores"][0]["plugins"][0] == {"plugin": "Taint", "raw": 0, "normalized": 100, "weighted": 300}
    assert (shown["attempt"], shown["margin"]) == (2, 5)


def size(record: DecisionRecord) -> int:
    return record.size + size_of(record.refusals, record.diagnosis.reason_ids)


@pytest.mark.parametrize("part", ["message", "refusals", "reason_ids", "top"])
def test_the_size_grows_with_what_is_kept(part):
    record = record_with_refusals()
    before = size(record)
    bigger: dict[str, Any] = {
        "message": "x" * 1000,
        "refusals": record.refusals * 20,
        "reason_ids": np.zeros(1000, dtype=np.uint8),
        "top": TopScores(TEN, TEN, [("T", 1, TEN, TEN)] * 10),
    }
    if hasattr(Diagnosis, part):
        record.diagnosis = record.diagnosis._replace(**{part: bigger[part]})
    else:
        setattr(record, part, bigger[part])
    assert size(record) >= before + 900
