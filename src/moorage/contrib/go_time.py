"""Parse times in the layouts of Go's `time` package, such as `2006-01-02 15:04:05`, for arguments of plugins that were
first written in Go."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from moorage.api.times import parse_time

RFC3339 = "2006-01-02T15:04:05Z07:00"

_DIRECTIVES = {
    "2006": "%Y", "06": "%y", "January": "%B", "Jan": "%b", "01": "%m", "1": "%m",
    "Monday": "%A", "Mon": "%a", "02": "%d", "_2": "%d", "2": "%d",
    "15": "%H", "03": "%I", "3": "%I", "PM": "%p", "04": "%M", "4": "%M", "05": "%S", "5": "%S",
    "Z07:00": "%z", "-07:00": "%z", "Z0700": "%z", "-0700": "%z",
}  # fmt: skip
_ELEMENT = re.compile(
    "|".join(re.escape(text) for text in sorted(_DIRECTIVES, key=len, reverse=True)) + r"|[.,](0+|9+)(?!\d)|%"
)
_OTHER = re.compile(r"[A-SU-Za-z0-9]")
"""What is left of a layout may be punctuation, and the T between date and time."""


def unreadable(layout: str) -> str:
    """Return why times of this layout cannot be parsed; empty if they can."""
    rest = _ELEMENT.sub("", layout)
    if found := _OTHER.search(rest):
        return f"{found[0]!r} is not an element of a Go time layout that is supported"
    return "" if "%Y" in _format(layout) or "%y" in _format(layout) else "a time without a year has no place"


def parse(layout: str, text: str) -> float | None:
    """Return epoch seconds; None for a text without this layout. A layout without a zone means UTC."""
    if layout == RFC3339:
        return parse_time(text)
    try:
        moment = datetime.strptime(text, _format(layout))  # noqa: DTZ007 (a zone is added below)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _format(layout: str) -> str:
    """Return the layout in the format of `strptime`."""

    def directive(found: re.Match[str]) -> str:
        if found[0] == "%":
            return "%%"
        return _DIRECTIVES.get(found[0]) or f"{found[0][0]}%f"

    return _ELEMENT.sub(directive, layout)
