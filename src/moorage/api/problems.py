"""Mistakes in text that a person wrote, as values with a field path and a message.

The messages follow the API server's (`Invalid value: …`), so that people who search for an upstream message
find it. Configurations and plugin arguments decide what is a mistake. See
k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

import difflib
import json
import re
from collections.abc import Iterable, Sequence

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One mistake: its path (`profiles[1].plugins.score.enabled[0].weight`), a message, and perhaps a hint."""

    path: str
    message: str
    value: object = None
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text} ({self.hint})" if self.hint else text


def child(path: str, *names: str | int) -> str:
    """Return the path of a field or list item below `path`."""
    for name in names:
        if isinstance(name, int):
            path = f"{path}[{name}]"
        else:
            path = f"{path}.{name}" if path else name
    return path


def invalid(path: str, value: object, detail: str, hint: str = "") -> Problem:
    """Return a problem with an invalid value; `detail` describes valid ones."""
    return Problem(path=path, message=f"Invalid value: {_shown(value)}: {detail}", value=value, hint=hint)


def required(path: str, detail: str = "") -> Problem:
    """Return a problem with a missing value."""
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
    """Return a question with the closest known word, or an empty text."""
    by_lower = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    if not close and len(name) > 2:  # difflib does not find abbreviations
        close = [word for word in by_lower if word.startswith(name.lower())]
    return f'did you mean "{by_lower[close[0]]}"?' if close else ""


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def without_addresses(text: str) -> str:
    """Remove memory addresses from a text that quotes objects by repr.

    Equal mistakes then have equal texts in all processes and attempts, so that the API server counts one
    event instead of keeping many.
    """
    return _ADDRESS.sub("", text)


def _shown(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."
