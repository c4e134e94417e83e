"""CronJobs: a Job at each time of their schedule, as in pkg/controller/cronjob/cronjob_controllerv2.go.

Schedules have the standard syntax of github.com/robfig/cron/v3: five fields (minute, hour, day of month,
month, day of week), or a word such as @hourly. cronsim computes the times. It gets a sixth field, the
seconds: with five it would imitate Debian's cron, which makes up for times that summer time skips.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from moorage.api.errors import AlreadyExists
from moorage.api.resources import Unstructured
from moorage.api.times import format_time, parse_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
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
_NOT_IN_KUBERNETES = re.compile(r"#|\dL|\bLW?\b", re.IGNORECASE)
"""Extensions of cronsim: the nth or last weekday of a month."""
Raw = dict[str, Any]
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
TOO_MANY = 100
"""More missed times than this are reported. Only the last one gets a Job."""


class ScheduleError(ValueError):
    """A text that is not a schedule."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule that has been checked."""

    expression: str

    def after(self, epoch: float, zone: tzinfo) -> float | None:
        """Return the first time after `epoch` in Unix seconds, or None if there is none within decades."""
        try:
            times = CronSim(f"0 {self.expression}", datetime.fromtimestamp(epoch, zone))
        except CronSimError:  # a day that none of the months has
            return None
        following = next(times, None)
        return None if following is None else following.timestamp()


def parse(text: str) -> Schedule:
    """Read a schedule. ScheduleError names the field that is wrong."""
    fields = WORDS.get(text.strip().lower(), text).replace("?", "*").split()
    if len(fields) != 5:
        raise ScheduleError(
            f"expected exactly 5 fields or a word such as @hourly, found {len(fields)} fields: {text!r}"
        )
    if _NOT_IN_KUBERNETES.search(text):
        raise ScheduleError(f"{text!r}: L, LW and # are not supported")
    # Days and months are checked apart: 30 February is a valid schedule that is never due.
    minute, hour, day, month, weekday = fields
    try:
        for expression in (f"{minute} {hour} {day} * {weekday}", f"0 0 * {month} *"):
            CronSim(expression, datetime.fromtimestamp(0.0, UTC))
    except CronSimError as error:
        raise ScheduleError(f"{text!r}: {error}") from error
    return Schedule(" ".join(fields))


class CronJobs(Controller):
    """The controller of CronJobs."""

    name = "cronjob-controller"

    def __init__(self, world: ControllerContext) -> None:
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
        """Create the Job for the last time that is due, and return that time."""
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
        """Delete all but the newest finished Jobs."""
        spec = cron.raw["spec"]
        for kind, field, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            limit = spec.get(field)
            done = [j for j in self.jobs.owned_by(cron) if is_true(j, kind) and not is_terminating(j)]
            done.sort(key=lambda j: (j.metadata.creation_timestamp or "", j.name))
            for job in done[: max(0, len(done) - (default if limit is None else int(limit)))]:
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
    return UTC if name in (None, "", "UTC") else ZoneInfo(str(name))


def last_due(cron: Unstructured, schedule: Schedule, zone: tzinfo, wall: float) -> tuple[float | None, int]:
    """Return the last due time that has no Job yet, and the number of times that were missed."""
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
