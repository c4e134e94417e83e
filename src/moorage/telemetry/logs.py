"""Structured logging as in klog: a constant message followed by key="value" pairs, one line per record.

    log = logs.get(__name__)
    log.info(3, "Attempting to schedule pod", pod="default/web-1")

It builds on the standard `logging`, so handlers, levels and test tools work as usual. Verbosity v is the
level INFO - v. A Throttle keeps a repeated message from filling the log.

Values come from pod names, labels and error texts that others write. Control characters, line ends and
terminal escapes never reach the output, so a value cannot forge a log record.
"""

import json
import logging
import math
import operator
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, SupportsIndex, TextIO

ROOT = "moorage"
MAX_VERBOSITY = 10
"""The level INFO - 10 is DEBUG. Higher verbosities would mean nothing to other handlers."""

Format = Literal["text", "json"]


class Log:
    """The logger of a module. A disabled call costs about as much as an empty call."""

    __slots__ = ("_enabled", "_logger")

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._enabled = logger.isEnabledFor

    def enabled(self, v: int) -> bool:
        """Return whether verbosity `v` is logged. Check this before computing expensive values."""
        return self._enabled(logging.INFO - v)

    def info(self, v: int, message: str, /, **values: object) -> None:
        """Log a message at verbosity `v`: 0 for operators, 2 for state changes, 4 and more for debugging.

        An object with a `key` is logged as its key. Pass the pod itself, so that its key is built only if the
        line is logged.
        """
        level = logging.INFO - v
        if self._enabled(level):
            self._write(level, message, values)

    def warning(self, message: str, /, **values: object) -> None:
        """Log a warning."""
        if self._enabled(logging.WARNING):
            self._write(logging.WARNING, message, values)

    def error(
        self, message: str, /, error: BaseException | str | None = None, stack: bool = False, **values: object
    ) -> None:
        """Log an error. `stack` adds the traceback of `error`; use it for bugs, not for an unavailable server."""
        if not self._enabled(logging.ERROR):
            return
        trace = error if stack and isinstance(error, BaseException) else None
        shown = values if error is None else {ERR: error, **values}
        self._write(logging.ERROR, message, shown, trace)

    def _write(self, level: int, message: str, values: dict[str, Any], trace: BaseException | None = None) -> None:
        # Level 3: past this function and the method, at the line that logs.
        self._logger.log(level, message, extra={VALUES: values}, exc_info=trace, stacklevel=3)


def get(name: str) -> Log:
    """Return the logger of a module or plugin. Names outside Moorage are placed below it to share its verbosity."""
    inside = name == ROOT or name.startswith(f"{ROOT}.")
    return Log(logging.getLogger(name if inside else f"{ROOT}.{name}"))


def setup(
    verbosity: int = 0,
    format: Format = "text",  # noqa: A002 (the word of the option that sets it)
    stream: TextIO | None = None,
    now: Callable[[], float] | None = None,
) -> None:
    """Send all logs of the process to `stream` (default: standard error). A second call replaces the first.

    The handler is installed at the root, so that plugins and libraries that use plain `logging` have the same
    format. Only Moorage's own verbosity is changed. `now` returns epoch seconds for the timestamps; without
    it, the time of the log record is used.
    """
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(JsonLines(now) if format == "json" else TextLines(now))
    remove()
    logging.getLogger().addHandler(handler)
    set_verbosity(verbosity)


def set_verbosity(verbosity: int) -> None:
    """Change the verbosity of Moorage's own logs."""
    logging.getLogger(ROOT).setLevel(logging.INFO - max(0, min(verbosity, MAX_VERBOSITY)))


def current() -> tuple[int, Format]:
    """Return the verbosity and format of the last `setup`, to pass them to a child process."""
    level = logging.getLogger(ROOT).level
    installed = [handler for handler in logging.getLogger().handlers if isinstance(handler, _Handler)]
    as_json = any(isinstance(handler.formatter, JsonLines) for handler in installed)
    return (max(0, logging.INFO - level) if level else 0), ("json" if as_json else "text")


def remove() -> None:
    """Undo `setup`."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Handler)]:
        root.removeHandler(handler)
    logging.getLogger(ROOT).setLevel(logging.NOTSET)


class _Handler(logging.StreamHandler[TextIO]):
    """A type by which `remove` finds this handler among others."""


class Throttle:
    """Admits `burst` calls per period of `seconds`. A period starts with its first call. `now` is monotonic."""

    __slots__ = ("_admitted", "_burst", "_now", "_period", "_since", "_suppressed")

    def __init__(self, now: Callable[[], float], seconds: float = 60.0, burst: int = 5) -> None:
        self._now = now
        self._period = seconds
        self._burst = burst
        self._since = now()
        self._admitted = 0
        self._suppressed = 0

    def admits(self) -> bool:
        """Return whether to log now."""
        now = self._now()
        if not self._admitted or now - self._since >= self._period:
            self._since, self._admitted = now, 0
        if self._admitted < self._burst:
            self._admitted += 1
            return True
        self._suppressed += 1
        return False

    def take_suppressed(self) -> int:
        """Return how many calls were suppressed since the last call, to report it in the next line."""
        taken, self._suppressed = self._suppressed, 0
        return taken


VALUES: Final = "moorage_values"
"""The attribute of a LogRecord that holds the key/value pairs."""
ERR: Final = "err"
MAX_VALUE = 8192
"""Maximum characters of a value. The rest is cut, so that a hostile object cannot fill the disk."""

_LETTERS = ((logging.ERROR, "E"), (logging.WARNING, "W"))
_NAMES = ((logging.ERROR, "error"), (logging.WARNING, "warning"))
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


class _Lines(logging.Formatter):
    """The common parts of the two formats."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        super().__init__()
        self._now = now

    def _time(self, record: logging.LogRecord) -> float:
        return self._now() if self._now is not None else record.created

    def _stack(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""


class TextLines(_Lines):
    """Formats `I0731 09:14:44.663787       1 cycle.py:80] "Attempting to schedule pod" pod="default/x"`, in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(self._time(record), UTC)
        head = (
            f"{_by_level(record, _LETTERS, 'I')}{moment:%m%d %H:%M:%S.%f} {os.getpid():7d} "
            f"{record.filename}:{record.lineno}]"
        )
        pairs = [f"{key}={_as_text(value)}" for key, value in _values(record).items()]
        lines = [" ".join([head, quote(record.getMessage()), *pairs])]
        # Indented, so that no line of a traceback can look like a log record.
        lines += [f"    {_escape(line)}" for line in self._stack(record).splitlines()]
        return "\n".join(lines)


class JsonLines(_Lines):
    """Formats one JSON object per line: ts (epoch seconds), level, caller, v (info only), msg, then the pairs."""

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
    """Return the text in double quotes, with all unprintable characters escaped."""
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
    """Return numbers, booleans and collections of them unchanged, and anything else as text."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, SupportsIndex):
        return operator.index(value)  # NumPy integers
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_json(item) for item in value]
    key = getattr(value, "key", None)
    return _cut(key if isinstance(key, str) else _text_of(value))


def _text_of(value: object) -> str:
    """Return the text of a value. A plugin's exception or object whose `__str__` fails must not fail its caller."""
    try:
        return str(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<{type(value).__name__} whose __str__ raises {type(error).__name__}>"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."
