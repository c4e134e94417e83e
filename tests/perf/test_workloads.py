"""Every workload of perf/ runs on a small cluster, and the fresh evaluations agree."""

from __future__ import annotations

import asyncio

import pytest

import perf
from moorage.bench.measuring import Measurement


@pytest.mark.parametrize("workload", perf.WORKLOADS, ids=lambda workload: workload.name)
def test_the_workload_can_be_measured(workload):
    measured: list[int] = []
    result = asyncio.run(Measurement(workload, 30, 60, 5).run(measured.append))
    assert (result.workload, result.nodes) == (workload.name, workload.nodes or 30)
    assert sum(measured) == result.measured == (workload.attempts or 5)
