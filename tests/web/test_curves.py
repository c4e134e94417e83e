"""The curves of the last minutes."""

from __future__ import annotations

import msgspec

from moorage.endpoints.answers import SummaryStep
from moorage.web.pages import curves

BUSY = SummaryStep(
    from_=100.0, seconds=10, scheduled=50, unschedulable=10, error=0, p50_seconds=0.0012, p99_seconds=0.25
)
IDLE = msgspec.structs.replace(BUSY, from_=110.0, scheduled=0, unschedulable=0, p50_seconds=None, p99_seconds=None)
STEPS = [BUSY, IDLE]


def points(options):
    return {line["name"]: line["data"] for line in options["series"]}


def test_attempts_are_per_second_and_stand_at_the_end_of_their_step():
    assert points(curves.rates(STEPS)) == {
        "scheduled": [[110_000, 5.0], [120_000, 0.0]],
        "unschedulable": [[110_000, 1.0], [120_000, 0.0]],
        "error": [[110_000, 0.0], [120_000, 0.0]],
    }


def test_a_step_without_attempts_is_a_gap_in_the_latencies():
    assert points(curves.latencies(STEPS)) == {
        "p50": [[110_000, 1.2], [120_000, None]],
        "p99": [[110_000, 250.0], [120_000, None]],
    }


def test_a_scheduler_without_attempts_has_empty_curves():
    assert points(curves.rates([])) == {"scheduled": [], "unschedulable": [], "error": []}
