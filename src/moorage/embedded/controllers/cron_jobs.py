"""CronJobs: a Job at each time of their schedule.

A schedule has five fields (minute, hour, day of month, month, day of week), or is a word such as @hourly.
Each field is a list of `*`, numbers, names of months and days, ranges `a-b`, and steps `/n`. As in cron, when
both days are given, either is enough. Seven is Sunday too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from moorage.api.errors import AlreadyExists
from moorage.api.resources import Unstructured
from moorage.api.times import format_time, parse_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, World, own_key
from moorage.embedded.controllers.job_status import is_over
from moorage.embedded.controllers.kinds import is_terminating, is_true
from moorage.embedded.controllers.ownership import owner_reference

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {
    m: i
    for i, m in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS = {d: i for i, d in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_HORIZON = 5 * 366
"""Days to look ahead; a schedule such as 30 February has no next time."""
Raw = dict[str, Any]
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
TOO_MANY = 100
"""More missed times than this are reported; only the last is ever made up for."""


class ScheduleError(ValueError):
    """A text that is no schedule."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule that was read."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def after(self, epoch: float, zone: tzinfo) -> float | None:
        """The first time after `epoch`, in Unix seconds; None when there is none within years."""
        moment = datetime.fromtimestamp(epoch, zone).replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = moment.replace(hour=0, minute=0)
        for _ in range(_HORIZON):
            if day.month in self.months and self._is_day(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        found = day.replace(hour=hour, minute=minute)
                        if found >= moment:
                            return found.timestamp()
            day = (day + timedelta(days=1)).replace(hour=0, minute=0)
        return None

    def _is_day(self, day: datetime) -> bool:
        in_month, in_week = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return in_month and in_week
        return in_month or in_week


def parse(text: str) -> Schedule:
    """Reads a schedule; ScheduleError names the field that is wrong."""
    parts = WORDS.get(text.strip().lower(), text).split()
    if len(parts) != 5:
        raise ScheduleError(
            f"schedule {text!r} has {len(parts)} fields; write five, or a word such as @hourly"
        )
    minutes, hours, days, months, weekdays = (
        _field(part, *bounds) for part, bounds in zip(parts, _FIELDS, strict=True)
    )
    weekdays = frozenset(day % 7 for day in weekdays)
    return Schedule(minutes, hours, days, months, weekdays, _is_any(parts[2]), _is_any(parts[4]))


def _is_any(part: str) -> bool:
    return part.startswith(("*", "?"))


def _field(text: str, name: str, low: int, high: int, words: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        body, _, step_text = part.partition("/")
        step = _number(step_text, name, {}, part) if step_text else 1
        if body in ("*", "?"):
            first, last = low, high
        else:
            first_text, dash, last_text = body.partition("-")
            first = _number(first_text, name, words, part)
            last = _number(last_text, name, words, part) if dash else (high if step_text else first)
        if step < 1 or not low <= first <= last <= high:
            raise ScheduleError(f"{name} {part!r} is outside of {low}-{high}")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, name: str, words: dict[str, int], part: str) -> int:
    if text.lower() in words:
        return words[text.lower()]
    if not (text.isascii() and text.isdigit()):
        raise ScheduleError(
            f"{name} {part!r} is not understood; write numbers, ranges a-b, lists a,b and steps /n"
        )
    return int(text)


class CronJobs(Controller):
    """The controller of CronJobs."""

    name = "cronjob-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.crons = self.watch(kinds.CRON_JOBS, own_key)
        self.jobs = self.watch(kinds.JOBS, self._crons_of)

    def _crons_of(self, job: Unstructured) -> Iterable[str]:
        return [f"{job.namespace}/{o.name}" for o in job.metadata.owner_references if o.kind == "CronJob"]

    async def reconcile(self, key: str) -> float | None:
        cron = self.crons.get(key)
        if cron is None or is_terminating(cron):
            return None
        await self._clean_up(cron)
        try:
            schedule = parse(str(cron.raw["spec"].get("schedule") or ""))
            zone = zone_of(cron)
        except (ScheduleError, ValueError, OSError) as error:
            self.warn(cron, "UnparseableSchedule", f"unparseable schedule: {error}")
            await self._report(cron, None)
            return None
        started = None
        if not cron.raw["spec"].get("suspend"):
            started = await self._start_due(cron, schedule, zone)
        await self._report(cron, started)
        following = schedule.after(self.clock.wall(), zone)
        return None if following is None else max(0.1, following - self.clock.wall())

    async def _start_due(self, cron: Unstructured, schedule: Schedule, zone: tzinfo) -> float | None:
        """Makes the Job of the last time that is due; gives that time."""
        wall = self.clock.wall()
        due, missed = last_due(cron, schedule, zone, wall)
        if due is None:
            return None
        if missed > TOO_MANY:
            note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds"
            note += " or check clock skew"
            self.warn(cron, "TooManyMissedTimes", note)
        active = self._active(cron)
        policy = cron.raw["spec"].get("concurrencyPolicy") or "Allow"
        if active and policy == "Forbid":
            note = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.event(cron, "JobAlreadyActive", note)
            return None
        if policy == "Replace":
            for job in active:
                await self.writer.delete(kinds.JOBS, job)
                self.event(cron, "SuccessfulDelete", f"Deleted job {job.name}")
        raw = job_for(cron, due)
        try:
            job = await self.writer.create(kinds.JOBS, raw)
        except AlreadyExists:
            await self.writer.refresh(kinds.JOBS, raw["metadata"]["name"], cron.namespace)
            return due
        self.event(cron, "SuccessfulCreate", f"Created job {job.name}")
        return due

    def _active(self, cron: Unstructured) -> list[Unstructured]:
        jobs = self.jobs.owned_by(cron)
        return sorted((j for j in jobs if not is_over(j) and not is_terminating(j)), key=lambda j: j.name)

    async def _clean_up(self, cron: Unstructured) -> None:
        """Keeps the last finished Jobs only."""
        spec = cron.raw["spec"]
        for kind, field, usual in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            limit = spec.get(field)
            done = [j for j in self.jobs.owned_by(cron) if is_true(j, kind) and not is_terminating(j)]
            done.sort(key=lambda j: (j.metadata.creation_timestamp or "", j.name))
            for job in done[: max(0, len(done) - (usual if limit is None else int(limit)))]:
                await self.writer.delete(kinds.JOBS, job)
                self.event(cron, "SuccessfulDelete", f"Deleted job {job.name}")

    async def _report(self, cron: Unstructured, started: float | None) -> None:
        current = self.crons.get(cron.key)
        if current is None:
            return
        status: Raw = dict(current.raw.get("status") or {})
        if started is not None:
            status["lastScheduleTime"] = format_time(started)
        status.pop("active", None)
        active = self._active(current)
        if active:
            status["active"] = [_reference(job) for job in active]
        done = [
            str((j.raw.get("status") or {}).get("completionTime") or "")
            for j in self.jobs.owned_by(current)
            if is_true(j, "Complete")
        ]
        if done and max(done) > str(status.get("lastSuccessfulTime") or ""):
            status["lastSuccessfulTime"] = max(done)
        await self.writer.update_status(kinds.CRON_JOBS, current, status)


def zone_of(cron: Unstructured) -> tzinfo:
    name = cron.raw["spec"].get("timeZone")
    return UTC if not name else ZoneInfo(str(name))


def last_due(cron: Unstructured, schedule: Schedule, zone: tzinfo, wall: float) -> tuple[float | None, int]:
    """The last time of the schedule that is due and was not served, and how many were missed."""
    since = parse_time((cron.raw.get("status") or {}).get("lastScheduleTime"))
    since = since or parse_time(cron.metadata.creation_timestamp) or wall
    deadline = cron.raw["spec"].get("startingDeadlineSeconds")
    if deadline is not None:
        since = max(since, wall - float(deadline))
    due, missed = None, 0
    moment = schedule.after(since, zone)
    while moment is not None and moment <= wall:
        due, missed = moment, missed + 1
        if missed > TOO_MANY:  # the rest need not be counted one by one
            moment = schedule.after(max(moment, wall - 3600.0), zone)
            continue
        moment = schedule.after(moment, zone)
    return due, missed


def job_for(cron: Unstructured, due: float) -> Raw:
    template = cron.raw["spec"].get("jobTemplate") or {}
    given = template.get("metadata") or {}
    meta: Raw = {
        "name": f"{cron.name[:52]}-{int(due) // 60}",
        "namespace": cron.namespace,
        "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: format_time(due)},
        "ownerReferences": [owner_reference(kinds.CRON_JOBS, cron)],
    }
    if given.get("labels"):
        meta["labels"] = given["labels"]
    return {"metadata": meta, "spec": template.get("spec") or {}}


def _reference(job: Unstructured) -> Raw:
    return {
        "apiVersion": kinds.JOBS.api_version,
        "kind": kinds.JOBS.kind,
        "namespace": job.namespace,
        "name": job.name,
        "uid": job.uid,
        "resourceVersion": job.resource_version,
    }
