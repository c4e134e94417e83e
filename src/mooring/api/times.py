"""Kubernetes timestamps (RFC 3339 text) to epoch seconds and back. Reading a clock is left to others."""

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def parse_time(text: str | None) -> float | None:
    """Epoch seconds of an RFC 3339 time; None when the text is absent, empty or not such a time."""
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
    """RFC 3339 text in UTC: whole seconds (metav1.Time), or six digits with `micro` (metav1.MicroTime)."""
    micros = round(epoch * 1_000_000)
    seconds, rest = divmod(micros, 1_000_000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:06d}Z" if micro else f"{text}Z"
