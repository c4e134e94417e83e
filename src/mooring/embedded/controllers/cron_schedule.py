"""Schedules of CronJobs: five fields (minute, hour, day of month, month, day of week), or a word such as
@hourly.

Each field is a list of `*`, numbers, names of months and days, ranges `a-b`, and steps `/n`. As in cron,
when both days are given, either is enough. Seven is Sunday too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

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
