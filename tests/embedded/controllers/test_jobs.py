"""Jobs and CronJobs."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from moorage.api.times import format_time, parse_time
from moorage.embedded.controllers import cron_jobs, kinds
from moorage.embedded.controllers.job_status import format_indexes, parse_indexes
from tests.embedded.controllers.world import World, template

Raw = dict[str, Any]


def job(name: str = "sum", run: str = "1", code: str = "0", policy: str = "Never", **spec: Any) -> Raw:
    notes = {"moorage.dev/run-seconds": run, "moorage.dev/exit-code": code}
    made = template({"app": name}, notes, restartPolicy=policy)
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": made, **spec}}


def status(world: World, name: str = "sum") -> Raw:
    return dict(world.get(kinds.JOBS, name).get("status") or {})


def ended(world: World, name: str = "sum") -> tuple[str, str] | None:
    for found in status(world, name).get("conditions") or ():
        if found["type"] in ("Complete", "Failed") and found["status"] == "True":
            return found["type"], found["reason"]
    return None


def test_a_job_runs_its_completions_in_parallel_and_ends():
    with World() as world:
        world.create(kinds.JOBS, job(completions=7, parallelism=3))
        most = 0
        for _ in range(200):
            world.settle(0.1)
            most = max(most, status(world).get("active", 0))
        assert most == 3
        assert ended(world) == ("Complete", "CompletionsReached")
        found = status(world)
        assert found["succeeded"] == 7
        assert "failed" not in found
        assert found["completionTime"]
        assert len(world.all(kinds.PODS)) == 7
        assert not any(pod["metadata"].get("finalizers") for pod in world.all(kinds.PODS))
        since = world.clock.now()
        world.settle(100)
        assert world.writes(since) == []


def test_pods_that_are_deleted_after_their_end_stay_counted():
    with World() as world:
        world.create(kinds.JOBS, job(completions=5, parallelism=1))
        for _ in range(150):
            world.settle(0.2)
            for pod in world.all(kinds.PODS):
                if pod["status"]["phase"] == "Succeeded":
                    world.delete(kinds.PODS, pod["metadata"]["name"])
        assert status(world)["succeeded"] == 5
        assert ended(world) == ("Complete", "CompletionsReached")
        assert len(world.faults.calls_of("create", kinds.PODS)) == 5


def test_failures_are_retried_with_pauses_until_the_limit():
    with World() as world:
        world.create(kinds.JOBS, job(code="3", backoffLimit=3))
        world.settle(25)
        assert ended(world) is None
        world.settle(200)
        assert ended(world) == ("Failed", "BackoffLimitExceeded")
        assert status(world)["failed"] == 4
        times = [call.time for call in world.faults.calls_of("create", kinds.PODS)]
        gaps = [b - a for a, b in itertools.pairwise(times)]
        assert gaps == pytest.approx([11.5, 21.5, 41.5], abs=1.5)


def test_restarts_on_failure_count_too():
    with World() as world:
        world.create(kinds.JOBS, job(code="1", policy="OnFailure", backoffLimit=2))
        world.settle(100)
        assert ended(world) == ("Failed", "BackoffLimitExceeded")
        assert len(world.faults.calls_of("create", kinds.PODS)) == 1


def test_indexed_pods_know_their_index():
    with World() as world:
        world.create(kinds.JOBS, job(completions=5, parallelism=2, completionMode="Indexed"))
        world.settle(30)
        assert ended(world) == ("Complete", "CompletionsReached")
        assert status(world)["completedIndexes"] == "0-4"
        pods = {p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: p for p in _pods(world)}
        assert sorted(pods) == ["0", "1", "2", "3", "4"]
        env = pods["3"]["spec"]["containers"][0]["env"]
        assert env == [{"name": "JOB_COMPLETION_INDEX", "value": "3"}]
        assert pods["3"]["metadata"]["name"].startswith("sum-3-")


def _pods(world: World) -> list[Raw]:
    return world.all(kinds.PODS)


def test_a_work_queue_ends_when_one_has_succeeded_and_all_have_ended():
    with World() as world:
        world.create(kinds.JOBS, job(parallelism=3))
        world.settle(20)
        assert ended(world) == ("Complete", "CompletionsReached")
        assert status(world)["succeeded"] == 3


def test_a_deadline_stops_the_job():
    with World() as world:
        world.create(kinds.JOBS, job(run="forever", completions=1, activeDeadlineSeconds=10))
        world.settle(20)
        assert ended(world) == ("Failed", "DeadlineExceeded")
        assert _pods(world) == []


def test_suspending_removes_pods_without_counting_failures():
    with World() as world:
        world.create(kinds.JOBS, job(run="8", completions=2, parallelism=2, backoffLimit=0))
        world.settle(3)
        world.patch(kinds.JOBS, "sum", {"spec": {"suspend": True}})
        world.settle(5)
        assert _pods(world) == []
        assert "startTime" not in status(world)
        assert "failed" not in status(world)
        assert [e["note"] for e in world.events("Suspended")] == ["Job suspended"]
        world.patch(kinds.JOBS, "sum", {"spec": {"suspend": False}})
        world.settle(20)
        assert ended(world) == ("Complete", "CompletionsReached")


def test_a_finished_job_expires_with_its_pods():
    with World() as world:
        world.create(kinds.JOBS, job(completions=1, ttlSecondsAfterFinished=30))
        world.settle(20)
        assert ended(world) is not None
        world.settle(30)
        assert world.find(kinds.JOBS, "sum") is None
        assert _pods(world) == []


def test_a_deleted_job_takes_its_pods_along():
    with World() as world:
        world.create(kinds.JOBS, job(run="forever", completions=3, parallelism=3))
        world.settle(5)
        world.delete(kinds.JOBS, "sum")
        world.settle(10)
        assert _pods(world) == []


@pytest.mark.parametrize(
    ("text", "numbers"), [("", []), ("3", [3]), ("0-2,5", [0, 1, 2, 5]), ("1,2", [1, 2]), ("0,1,7-9", [0, 1, 7, 8, 9])]
)
def test_indexes_are_written_short(text: str, numbers: list[int]):
    assert format_indexes(numbers) == text
    assert parse_indexes(text) == set(numbers)


SCHEDULES = [
    ("*/15 * * * *", "2026-01-01T00:07:30Z", "2026-01-01T00:15:00Z"),
    ("0 9-17/4 * * mon-fri", "2026-01-02T17:00:00Z", "2026-01-05T09:00:00Z"),
    ("30 2 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T02:30:00Z"),
    ("0 0 13 * 5", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"),
    ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
    ("0 12 * jan,mar sun", "2026-01-26T00:00:00Z", "2026-03-01T12:00:00Z"),
    ("5/20 * * * 7", "2026-01-03T23:59:00Z", "2026-01-04T00:05:00Z"),
]


@pytest.mark.parametrize(("text", "after", "expected"), SCHEDULES)
def test_schedules(text: str, after: str, expected: str):
    found = cron_jobs.parse(text).after(parse_time(after) or 0.0, UTC)
    assert found is not None
    assert format_time(found) == expected


def test_a_schedule_without_a_next_time():
    assert cron_jobs.parse("0 0 30 2 *").after(0.0, UTC) is None


def test_schedules_follow_the_zone():
    zone = ZoneInfo("Europe/Berlin")
    start = datetime(2026, 7, 1, tzinfo=UTC).timestamp()
    assert format_time(cron_jobs.parse("0 8 * * *").after(start, zone) or 0) == "2026-07-01T06:00:00Z"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param("2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z", id="the skipped hour has no Job"),
        pytest.param("2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z", id="first of the repeated hour"),
        pytest.param("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", id="second of the repeated hour"),
    ],
)
def test_schedules_at_changes_of_summer_time_are_those_of_kubernetes(after: str, expected: str):
    found = cron_jobs.parse("30 2 * * *").after(parse_time(after) or 0.0, ZoneInfo("Europe/Berlin"))
    assert format_time(found or 0) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "* * * *", "60 * * * *", "* * 0 * *", "a * * * *", "*/0 * * * *", "5-1 * * * *"),
        *("0 * * * * *", "0 0 * 13 *", "0 0 L * *", "0 0 LW * *", "0 0 * * 5L", "0 0 * * 5#2", "0 0 * * 8"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str):
    with pytest.raises(cron_jobs.ScheduleError):
        cron_jobs.parse(text)


def cron(**spec: Any) -> Raw:
    made = job("tick", run="5", completions=1)["spec"]
    return {
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": made}, **spec},
    }


def test_a_cron_job_makes_a_job_each_time_and_keeps_the_last_three():
    with World() as world:
        world.create(kinds.CRON_JOBS, cron())
        world.settle(290)
        assert world.all(kinds.JOBS) == []
        world.settle(15)
        assert len(world.all(kinds.JOBS)) == 1
        world.settle(1800)
        jobs = world.all(kinds.JOBS)
        assert len(jobs) == 3
        assert world.get(kinds.CRON_JOBS, "tick")["status"]["lastScheduleTime"] == "2026-01-01T00:35:00Z"
        assert len(world.faults.calls_of("create", kinds.JOBS)) == 7


@pytest.mark.parametrize(("policy", "expected"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_concurrency(policy: str, expected: int):
    raw = cron(concurrencyPolicy=policy)
    raw["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"] = {"moorage.dev/run-seconds": "forever"}
    with World() as world:
        world.create(kinds.CRON_JOBS, raw)
        world.settle(920)
        assert len(world.all(kinds.JOBS)) == expected
        assert len(world.get(kinds.CRON_JOBS, "tick")["status"]["active"]) == expected


def test_a_schedule_that_cannot_be_read_is_reported():
    with World(strict=False) as world:
        world.create(kinds.CRON_JOBS, cron(schedule="never"))
        world.settle(5)
        (event,) = world.events("UnparseableSchedule")
        assert "fields" in event["note"]
