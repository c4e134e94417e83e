"""How a log record becomes one line of text or JSON.

Values come from pod names, labels and error texts that others write, so control characters, line ends and
terminal escapes never reach the output: a record cannot forge another one.
"""

import json
import logging
import math
import operator
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, SupportsIndex

VALUES: Final = "moorage_values"
"""The attribute of a LogRecord that holds the key/value pairs."""
ERR: Final = "err"
MAX_VALUE = 8192
"""Characters of one value; the rest is cut, so that a hostile object cannot fill the disk."""

_LETTERS = ((logging.ERROR, "E"), (logging.WARNING, "W"))
_NAMES = ((logging.ERROR, "error"), (logging.WARNING, "warning"))
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


class _Lines(logging.Formatter):
    def __init__(self, now: Callable[[], float] | None = None) -> None:
        super().__init__()
        self._now = now

    def _time(self, record: logging.LogRecord) -> float:
        return self._now() if self._now is not None else record.created

    def _stack(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""


class TextLines(_Lines):
    """`I0731 09:14:44.663787       1 cycle.py:80] "Attempting to schedule pod" pod="default/x"`, in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(self._time(record), UTC)
        head = (
            f"{_by_level(record, _LETTERS, 'I')}{moment:%m%d %H:%M:%S.%f} {os.getpid():7d} "
            f"{record.filename}:{record.lineno}]"
        )
        pairs = [f"{key}={_as_text(value)}" for key, value in _values(record).items()]
        lines = [" ".join([head, quote(record.getMessage()), *pairs])]
        # Indented, so that no line of a traceback can pass for a record of its own.
        lines += [f"    {_escape(line)}" for line in self._stack(record).splitlines()]
        return "\n".join(lines)


class JsonLines(_Lines):
    """One object a line: ts (epoch seconds), level, caller, v (information only), msg, then the pairs."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "ts": round(self._time(record), 6),
            "level": _by_level(record, _NAMES, "info"),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno <= logging.INFO:
            fields["v"] = logging.INFO - record.levelno
        if stack := self._stack(record):
            fields["stack"] = stack
        for key, value in _values(record).items():
            fields[f"{key}_" if key in fields else key] = _as_json(value)
        return json.dumps(fields)


def quote(text: str) -> str:
    """In double quotes, with everything escaped that is not printable."""
    return f'"{_escape(text)}"'


def _escape(text: str) -> str:
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(_escaped(char) for char in text)


def _escaped(char: str) -> str:
    short = _SHORT.get(char)
    if short is not None or char.isprintable():
        return short or char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _values(record: logging.LogRecord) -> Mapping[str, object]:
    values: Mapping[str, object] = getattr(record, VALUES, {})
    return values


def _by_level(record: logging.LogRecord, names: tuple[tuple[int, str], ...], otherwise: str) -> str:
    return next((name for level, name in names if record.levelno >= level), otherwise)


def _as_text(value: object) -> str:
    plain = _as_json(value)
    if isinstance(plain, str):
        return quote(plain)
    return json.dumps(plain)


def _as_json(value: object) -> Any:
    """Numbers, truth values and collections of them as they are; anything else as text."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, SupportsIndex):
        return operator.index(value)  # integers of NumPy
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_json(item) for item in value]
    key = getattr(value, "key", None)
    return _cut(key if isinstance(key, str) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."
