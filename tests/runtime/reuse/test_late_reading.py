"""A record tells the best nodes of the moment of its attempt, however late it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.framework.nodes import IntArray
from moorage.runtime.attempt import Attempt
from moorage.runtime.record import DecisionRecord
from moorage.runtime.reuse import turns
from moorage.runtime.reuse.template import TemplateBaseline
from moorage.runtime.top_scores import AddedScore, KeptTop, ScoreLayout, pack
from moorage.scheduler.records import RecordRing, make_record
from moorage.state.node_listing import NodeEpoch
from moorage.testing import make_node
from tests.runtime.reuse.test_equals_fresh import TEMPLATES, Clusters
from tests.runtime.reuse.test_turns import InTurn


def record_of(attempt: Attempt) -> DecisionRecord:
    epoch = NodeEpoch(0, attempt.nodes.columns.node_names())
    return make_record(attempt, 0.0, 0.0, lambda: epoch)


def scores_of(record: DecisionRecord) -> list[Any]:
    return [(entry.node, entry.total, sorted(entry.plugins, key=lambda p: p.plugin)) for entry in record.scores]


class Archive:
    """The records of all reused attempts, none of which was read, and what fresh attempts record at the same moment."""

    def __init__(self, clusters: Clusters) -> None:
        self.ring = RecordRing()
        self.expected: list[list[Any]] = []
        self.forms: set[str] = set()
        self._clusters, self._choose = clusters, clusters.choose
        clusters.choose = self._watch  # type: ignore[method-assign]

    def _watch(self, chooser: Any, pod: Any) -> Attempt:
        attempt = self._choose(chooser, pod)
        if chooser is self._clusters.warm:
            record = record_of(attempt)
            self.ring.add(record)
            if isinstance(record.top, KeptTop):
                packed = "packed" if isinstance(record.top.ranked, bytes) else "ranked"
                level = "" if record.top.level is None else " level"
                added = " added" if record.top.layout.added else ""
                self.forms.add(f"{packed}{level}{added}")
        else:
            self.expected.append(scores_of(record_of(attempt)))
        return attempt

    def check(self) -> None:
        """Compare them after all baselines are gone."""
        self._clusters.reuse.clear()
        assert [scores_of(record) for record in self.ring] == self.expected


@pytest.mark.parametrize("seed", range(3))
def test_records_of_templates_in_turn_are_read_after_turns_have_ended(seed, monkeypatch):
    monkeypatch.setattr(turns, "_SHORT", 64)
    clusters = InTurn(seed, nodes=40, cpus=("24", "64"))
    archive = Archive(clusters)
    for _ in range(400):
        clusters.step()
    clusters.only = 39
    clusters.place_all(20)
    assert {"packed level", "packed", "ranked"} <= archive.forms
    archive.check()


class Alike(Clusters):
    """Nodes that are alike, and templates that prefer nodes and zones with few pods of their own."""

    def node(self, name: str):
        return make_node(name, cpu="8", zone="xyz"[int(name[1:]) % 3])  # rows are in snapshot order

    def template(self):
        return self.draw.choice([known for known in TEMPLATES if known["labels"]["app"] in ("soft", "zonal")])


def test_records_of_incremental_scores_are_read_late():
    clusters = Alike(1, nodes=80, calm=True)
    archive = Archive(clusters)
    for _ in range(400):
        clusters.step()
    assert {"packed level added", "packed added"} <= archive.forms
    archive.check()


def test_what_plugins_wrote_for_refused_rows_makes_no_row_feasible(monkeypatch):
    """Turns add what a row gains to the totals of all members, also of those that the row is refused to."""
    join = turns.Turns.join

    def spoil(self: turns.Turns, found: TemplateBaseline, pod: Any) -> None:
        for raw in found.raws.values():
            if not isinstance(raw, int) and not found.shares_arrays:
                raw[~found.ok] = -(1 << 60)
        join(self, found, pod)

    monkeypatch.setattr(turns.Turns, "join", spoil)
    clusters = InTurn(3)
    clusters.place_all(300)
    assert clusters.in_turn > 30


LINES: dict[str, IntArray] = {
    "rows": np.array([4, 7, 9]),
    "first": np.array([10, 20, 30]),
    "second": np.array([50, 40, 0]),
    "raw": np.array([900, 800, 700]),
    "added": np.array([6, 5, 9]),
}
VARYING = (("First", 2), ("Second", 3))


def test_the_last_plugin_gets_what_the_totals_count_besides():
    totals = 5 + 2 * LINES["first"] + 3 * LINES["second"]
    layout = ScoreLayout((("Same", 1, 5, 5),), VARYING, (), 100, 5)
    packed = b"".join(map(pack, (LINES["rows"], totals, LINES["first"])))
    top = KeptTop(layout, packed, 0, 3)
    assert list(top.rows) == [4, 7, 9]
    assert top.totals == (totals + 100).tolist()
    assert [column.raw for column in top.columns] == [5, LINES["first"].tolist(), LINES["second"].tolist()]


@pytest.mark.parametrize("level", [None, 700])
def test_a_total_that_all_rows_share_is_not_packed(level):
    """Two plugins were added: the totals after the first one differ in any case."""
    base = 2 * LINES["first"] + 3 * LINES["second"]
    between = base + 4 * LINES["added"]
    final: IntArray = np.full(3, 700)
    added = (AddedScore("Added", 4, False), AddedScore("Last", 1, True))
    layout = ScoreLayout((), VARYING, added, 0, 0)
    lines = [LINES["rows"], base, LINES["first"], between, *([final] if level is None else []), LINES["raw"]]
    top = KeptTop(layout, b"".join(map(pack, lines)), 0, 3, level)
    assert top.totals == [700] * 3
    columns = {column.plugin: column for column in top.columns}
    assert columns["Second"].raw == LINES["second"].tolist()
    assert columns["Added"].normalized == LINES["added"].tolist()
    assert columns["Last"].raw == LINES["raw"].tolist()
    assert columns["Last"].normalized == (final - between).tolist()
