"""Times on the wire: RFC 3339 timestamps, and durations as Go writes them (`15s`, `1m30s`). In Python both are seconds.

Durations are exact to the nanosecond in both directions, like Go's time.ParseDuration and Duration.String.
"""

import re
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated

import msgspec

_MAX_DOUBLINGS = 30
_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def parse_time(text: str | None) -> float | None:
    """Return the epoch seconds of an RFC 3339 time, or None if the text is missing or invalid."""
    match = _RFC3339.fullmatch(text) if text else None
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in 'Zz' else zone}")
    except ValueError:
        return None
    return whole.timestamp() + float(fraction or 0)


def format_time(epoch: float, micro: bool = False) -> str:
    """Return RFC 3339 text in UTC: whole seconds (metav1.Time), or six digits with `micro` (metav1.MicroTime)."""
    micros = round(epoch * 1_000_000)
    seconds, rest = divmod(micros, 1_000_000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:06d}Z" if micro else f"{text}Z"


# Marks a float field that is a duration string on the wire, for `config.wire`.
DURATION_ON_WIRE = {"wire": "duration"}
Duration = Annotated[float, msgspec.Meta(extra=DURATION_ON_WIRE)]

NANOSECOND = 1
MICROSECOND = 1000 * NANOSECOND
MILLISECOND = 1000 * MICROSECOND
SECOND = 1000 * MILLISECOND
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

_UNITS = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "\u00b5s": MICROSECOND,  # micro sign
    "\u03bcs": MICROSECOND,  # Greek letter mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_PART = re.compile(r"([0-9]*)(\.([0-9]*))?([^0-9.]*)")
_MAX = 2**63


class DurationError(ValueError):
    """The text is not a Go duration. The message is Go's."""


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration."""
    return parse_nanoseconds(text) / SECOND


def format_duration(seconds: float) -> str:
    """Return the Go duration of a number of seconds, rounded to the nanosecond."""
    # Fraction is exact; multiplying the float would lose nanoseconds.
    return format_nanoseconds(round(Fraction(seconds) * SECOND))


def parse_nanoseconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f'time: invalid duration "{text}"')
    total = 0
    while rest:
        value, rest = _parse_part(text, rest)
        total += value
        if total > _MAX:
            raise DurationError(f'time: invalid duration "{text}"')
    if total == _MAX and sign > 0:
        raise DurationError(f'time: invalid duration "{text}"')
    return sign * total


def _parse_part(text: str, rest: str) -> tuple[int, str]:
    """Parse one number with its unit; return its value and the rest of the text."""
    match = _PART.match(rest)
    whole, fraction, name = (match[1], match[3] or "", match[4]) if match else ("", "", "")
    if match is None or not (whole or fraction):
        raise DurationError(f'time: invalid duration "{text}"')
    if not name:
        raise DurationError(f'time: missing unit in duration "{text}"')
    if name not in _UNITS:
        raise DurationError(f'time: unknown unit "{name}" in duration "{text}"')
    unit = _UNITS[name]
    value = int(whole or "0") * unit
    if fraction:
        # Like Go, digits below a nanosecond are cut off.
        value += int(fraction) * unit // 10 ** len(fraction)
    return value, rest[match.end() :]


def format_nanoseconds(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign, value = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if value < SECOND:
        return sign + _format_small(value)
    minutes, below = divmod(value, MINUTE)
    hours, minutes = divmod(minutes, 60)
    text = _decimal(below, SECOND) + "s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _format_small(value: int) -> str:
    if value < MICROSECOND:
        return f"{value}ns"
    if value < MILLISECOND:
        return _decimal(value, MICROSECOND) + "\u00b5s"
    return _decimal(value, MILLISECOND) + "ms"


def _decimal(value: int, unit: int) -> str:
    """Return `value / unit` in decimal without trailing zeros; `unit` is a power of ten."""
    whole, rest = divmod(value, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def backoff(failures: int, first: float, longest: float) -> float:
    """Return the pause after consecutive failures: `first` seconds, doubled each time, at most `longest`."""
    return min(first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), longest)
