"""Results of `moorage bench cluster`: intervals, resuming, and ratios within a round."""

from dataclasses import replace

import pytest

from moorage.api.errors import MoorageError
from moorage.bench.cluster.comparison import planned
from moorage.bench.cluster.results import ClusterResult, ResultsFile, estimate, key_of, summarize
from moorage.bench.cluster.schedulers import CEILING, MOORAGE, parse_beside
from moorage.bench.cluster.workloads import read_workloads

[PLAIN] = read_workloads(params={"nodes": 5, "pods": 10}, names=["plain"])
OTHER = parse_beside("other=/bin/other --config={config}")


def result(scheduler, number, rate, cpu=1.0) -> ClusterResult:
    return ClusterResult(*key_of(PLAIN, scheduler, number), 5, 10, rate, 1.5, cpu, 2.0, 100.0)


@pytest.mark.parametrize(("count", "low", "high"), [(6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (20, 6, 15)])
def test_the_interval_of_a_median_has_the_ranks_of_the_sign_test(count, low, high) -> None:
    found = estimate(list(range(count, 0, -1)))
    assert (found.low, found.high, found.is_range) == (low, high, False)
    assert found.median == (count + 1) / 2


@pytest.mark.parametrize("count", range(1, 6))
def test_few_rounds_have_only_a_range(count) -> None:
    found = estimate(list(range(count)))
    assert (found.low, found.high, found.is_range) == (0, count - 1, True)


def test_every_second_round_has_the_opposite_order() -> None:
    order = [(number, scheduler.name) for _, number, scheduler in planned([PLAIN], 2, [CEILING, MOORAGE, OTHER])]
    assert order == [(0, "ceiling"), (0, "moorage"), (0, "other"), (1, "other"), (1, "moorage"), (1, "ceiling")]


def test_results_are_read_again_without_the_line_that_a_killed_run_began(tmp_path) -> None:
    file = ResultsFile(tmp_path / "new" / "folder")
    file.add(result(MOORAGE, 0, 100.0))
    with file.path.open("a") as text:
        text.write('{"workload": "pla')
    again = ResultsFile(file.path.parent)
    again.add(result(MOORAGE, 1, 120.0))
    assert list(ResultsFile(file.path.parent).rounds(PLAIN, MOORAGE)) == [0, 1]


def test_results_of_another_size_or_command_are_others(tmp_path) -> None:
    file = ResultsFile(tmp_path)
    file.add(result(OTHER, 0, 100.0))
    assert not file.rounds(replace(PLAIN, steps=PLAIN.steps[:1]), OTHER)
    assert not file.rounds(PLAIN, parse_beside("other=/bin/other --config={config} -v=2"))
    assert file.rounds(PLAIN, OTHER)


def test_a_line_that_is_no_result_is_reported_with_its_number(tmp_path) -> None:
    (tmp_path / "results.jsonl").write_text('{"workload": 1}\n')
    with pytest.raises(MoorageError, match="line 1 is not a result"):
        ResultsFile(tmp_path)


def test_ratios_are_those_within_a_round(tmp_path) -> None:
    file = ResultsFile(tmp_path)
    for number, speed in enumerate((1.0, 10.0, 3.0)):  # the machine changes its speed
        file.add(result(CEILING, number, 400.0 * speed))
        file.add(result(MOORAGE, number, 200.0 * speed, cpu=0.5))
        file.add(result(OTHER, number, 50.0 * speed, cpu=2.0))
    ceiling, ours, other = summarize(file, [PLAIN], [CEILING, MOORAGE, OTHER])
    assert ceiling.ceiling_share is None
    assert not ceiling.moorage_times
    assert not ours.moorage_times
    assert ours.ceiling_share
    assert ours.ceiling_share.median == ours.ceiling_share.high == 0.5
    assert other.moorage_times["pods_per_second"].low == other.moorage_times["pods_per_second"].high == 4
    assert other.moorage_times["cpu_ms_per_pod"].median == 0.25
    assert other.to_dict()["figures"]["pods_per_second"]["median"] == 150
    assert (ours.nodes, ours.running, ours.pods, ours.rounds) == (5, 0, 10, 3)


def test_a_scheduler_without_results_has_no_row(tmp_path) -> None:
    assert summarize(ResultsFile(tmp_path), [PLAIN], [CEILING, MOORAGE]) == []
