"""Mistakes in what a person wrote, as values: a field path and a sentence.

The sentences follow the API server's (`Invalid value: …`), so that whoever searches for an upstream message
finds it here too. What is a mistake is decided by configurations and plugin arguments.
"""

import difflib
import json
import re
from collections.abc import Iterable, Sequence

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One mistake: where (`profiles[1].plugins.score.enabled[0].weight`), what, and perhaps a way out."""

    path: str
    message: str
    value: object = None
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text} ({self.hint})" if self.hint else text


def child(path: str, *names: str | int) -> str:
    """The path of a field or list item below `path`."""
    for name in names:
        if isinstance(name, int):
            path = f"{path}[{name}]"
        else:
            path = f"{path}.{name}" if path else name
    return path


def invalid(path: str, value: object, detail: str, hint: str = "") -> Problem:
    """A value that makes no sense; `detail` says what it has to be."""
    return Problem(path=path, message=f"Invalid value: {_shown(value)}: {detail}", value=value, hint=hint)


def required(path: str, detail: str = "") -> Problem:
    """A value that is missing."""
    return Problem(path=path, message=f"Required value: {detail}" if detail else "Required value")


def duplicate(path: str, value: object) -> Problem:
    return Problem(path=path, message=f"Duplicate value: {_shown(value)}", value=value)


def forbidden(path: str, detail: str) -> Problem:
    return Problem(path=path, message=f"Forbidden: {detail}")


def unsupported(path: str, value: str, supported: Sequence[str]) -> Problem:
    listed = ", ".join(f'"{name}"' for name in supported)
    message = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return Problem(path=path, message=message, value=value, hint=did_you_mean(value, supported))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question naming the nearest known word, or nothing when none is near."""
    by_lower = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    if not close and len(name) > 2:  # an abbreviation is far away by letters
        close = [word for word in by_lower if word.startswith(name.lower())]
    return f'did you mean "{by_lower[close[0]]}"?' if close else ""


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def without_addresses(text: str) -> str:
    """A text that quotes objects by repr, equal for the same mistake in every process and every attempt: so
    the API server counts one event instead of keeping many."""
    return _ADDRESS.sub("", text)


def _shown(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."
