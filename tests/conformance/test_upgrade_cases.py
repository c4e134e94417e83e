"""The preview of an upgrade reports what changed between the recorded answers of two versions, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.explain.upgrading import SEVERAL
from tests.conformance import upgrade_cases
from tests.conformance.upgrade_cases import TOTALS, Pair, differences, main, reasons, recorded, sample

DATA = Path(__file__).parent / "data" / "upgrade_cases.jsonl.gz"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "conformance"
FAMILIES = sorted({pair[0]["family"] for pair in sample(DATA)})
RESPONSIBLE = {
    "preempt": "reports_preemption",
    "nodename": "node_name_narrows",
    "nsselect": "namespace_selector_leaks",
    "resize": "resize_takes_largest_sum",
    "imagevol": "image_volumes_raise_ceiling",
    "unfilled": "decoding_fills_pod_level",
}
"""Families whose differences have one reason."""


def of_family(family: str) -> list[Pair]:
    return [pair for pair in sample(DATA) if pair[0]["family"] == family]


@pytest.mark.parametrize("family", FAMILIES)
def test_exactly_the_recorded_changes_are_reported(family):
    assert [text for pair in of_family(family) for text in differences(pair)] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_every_change_with_an_effect_has_a_reason(family):
    for old, new in of_family(family):
        if "*" in old["expect"]["plugins"]:
            continue
        named = reasons(old)
        assert bool(named) == bool(recorded((old, new)).keys() - {TOTALS}), old["id"]
        assert SEVERAL not in named
        assert not named or RESPONSIBLE.get(family, named[0]) == named[0]


def test_the_sample_has_every_kind_of_change():
    kinds = {kind for pair in sample(DATA) if "*" not in pair[0]["expect"]["plugins"] for kind in recorded(pair)}
    assert kinds == {upgrade_cases.FEASIBLE, TOTALS, upgrade_cases.ORDER, upgrade_cases.MESSAGE}


@pytest.mark.slow
def test_all_recorded_inputs():
    if not SHARED.is_dir():
        pytest.skip(f"there is no {SHARED}: the recorded answers are not stored beside this checkout")
    assert main(SHARED) == 0
