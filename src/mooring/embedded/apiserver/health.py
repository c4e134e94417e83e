"""The paths that are answered to everybody: health and version."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from mooring.embedded.http import Answer, Request, json_answer, text_answer

_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_MAJOR, _MINOR, _PATCH = "1", "36", "4"
"""The release whose API is served."""


class Health:
    """`ready` says why the server should get no requests yet, or nothing."""

    def __init__(self, ready: Callable[[], str] | None = None) -> None:
        self._ready = ready

    def answer(self, request: Request) -> Answer | None:
        if request.method not in ("GET", "HEAD"):
            return None
        if request.path in _HEALTH:
            problem = self._ready() if self._ready is not None and request.path == "/readyz" else ""
            return text_answer(f"not ready: {problem}\n", 503) if problem else text_answer("ok")
        return _version() if request.path == "/version" else None


def _version() -> Answer:
    release = f"v{_MAJOR}.{_MINOR}.{_PATCH}+mooring-{version('mooring')}"
    return json_answer(
        {
            "major": _MAJOR,
            "minor": _MINOR,
            "gitVersion": release,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "",
            "platform": "python",
        }
    )
