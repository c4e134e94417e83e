"""The parts of the NodeTable that forget what is out of use."""

from __future__ import annotations

import pytest

from moorage.api.taints import Taint
from moorage.state import node_columns
from moorage.state.columns import ChangeLog, Interner
from moorage.state.node_columns import StoredLabelColumns, TaintClasses
from tests.state.objects import make_node


def test_codes_count_from_zero_in_the_order_of_first_sight():
    interner: Interner[str] = Interner(min_crowd=2)

    assert [interner.code(value) for value in ("b", "a", "b")] == [0, 1, 0]
    assert not interner.crowded
    interner.code("c")
    assert interner.crowded


def test_label_values_of_gone_nodes_are_forgotten(monkeypatch):
    monkeypatch.setattr(node_columns, "_MIN_LABEL_CROWD", 8)
    labels = StoredLabelColumns(width=4)
    labels.put(1, {"host": "stays"})
    labels.numbers("host")
    before = labels.values("host")
    for index in range(1000):
        labels.put(0, {"host": str(index)})

    assert len(labels.values("host")) <= 10
    assert labels.values("host") is not before
    codes = labels.codes("host")
    assert [labels.values("host")["999"], labels.values("host")["stays"], -1, -1] == codes.tolist()
    assert labels.numbers("host")[0] == 999


def test_label_columns_not_asked_for_are_dropped_first(monkeypatch):
    monkeypatch.setattr(node_columns, "_MAX_LABEL_COLUMNS", 2)
    labels = StoredLabelColumns(width=1)
    labels.put(0, {"a": "1", "b": "1", "c": "1"})
    kept, dropped = labels.values("a"), labels.values("b")
    labels.values("a")
    labels.values("c")

    assert labels.values("a") is kept
    assert labels.values("b") is not dropped
    assert labels.codes("b").tolist() == [0]


def test_taint_classes_out_of_use_are_forgotten():
    classes = TaintClasses(width=3)
    first = make_node("a", taints=(Taint(key="stays", effect="NoExecute"),))
    classes.put(0, first)
    for stamp in range(1000):
        node = make_node("b", taints=(Taint(key="deleting", value=str(stamp), effect="NoSchedule"),))
        classes.put(1, node)

        assert classes.classes[classes.ids[0]] == node_columns.taint_class(first)
        assert classes.classes[classes.ids[1]] == node_columns.taint_class(node)
        assert classes.classes[classes.ids[2]] == node_columns.PLAIN
    assert len(classes.classes) <= 70


@pytest.mark.parametrize("width", [4, 2000])
def test_the_change_log_answers_for_any_version(width):
    log = ChangeLog(width)
    changed = [(7 * step) % 4 if step % 3 else 1 for step in range(20_000)]
    for row in changed:
        log.mark(row)

    for back in (0, 1, 2, 5, 100, 20_000):
        expected = set(changed[len(changed) - back :])
        assert set(log.since(log.version - back)) == expected
        assert len(log.since(log.version - back)) == len(expected)
