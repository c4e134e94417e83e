"""Endpoints for debugging: /debug/pprof and /debug/flags/v.

Paths, rights and the option that disables them (`enableProfiling`) are those of kube-scheduler
(pkg/routes of the API server library). The formats are those that tools for Python read.
"""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import traceback

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from moorage.endpoints import profiling
from moorage.endpoints.loop_bridge import LoopBridge, NotNow
from moorage.endpoints.v1.routes import as_json
from moorage.serving.access import HEADERS
from moorage.telemetry import logs

_log = logs.get(__name__)

PPROF = "/debug/pprof"
VERBOSITY = "/debug/flags/v"
DEFAULT_SECONDS = 30
MAX_SECONDS = 300
FORMATS = ("collapsed", "speedscope")
TASK_FRAMES = 20
MAX_TASKS = 1000
"""Tasks whose stacks are shown."""


class Debugging:
    """What the debugging endpoints do in a process."""

    def __init__(self, bridge: LoopBridge) -> None:
        self._bridge = bridge
        self._sampling = False

    async def profile(self, seconds: int) -> profiling.StackProfile | None:
        """Return a profile of the next seconds; None while another one is being taken."""
        if self._sampling:
            return None
        self._sampling = True
        try:
            return await profiling.sample(seconds)
        finally:
            self._sampling = False

    async def stacks(self) -> str:
        """Return the stacks of all threads, and of the tasks of the scheduling loop unless it is blocked."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        parts = [
            f"Thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
            for ident, frame in sys._current_frames().items()
        ]
        try:
            parts.append(await self._bridge.call(_task_stacks))
        except NotNow:
            parts.append("The tasks of the scheduling loop are not shown: the loop did not answer within a second.\n")
        return "\n".join(parts)


def _task_stacks() -> str:
    """Return the stacks of the tasks of this loop."""
    text, tasks = io.StringIO(), sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    for task in tasks[:MAX_TASKS]:
        task.print_stack(limit=TASK_FRAMES, file=text)
    if len(tasks) > MAX_TASKS:
        text.write(f"and {len(tasks) - MAX_TASKS} more tasks\n")
    return text.getvalue()


def debugging_routes(debugging: Debugging) -> list[Route]:
    """Return the routes. A PUT passes the guard of `serving.access` only for VERBOSITY."""

    async def profile(request: Request) -> Response:
        given, form = request.query_params.get("seconds", str(DEFAULT_SECONDS)), request.query_params.get("format")
        if not given.isascii() or not given.isdigit() or not 1 <= int(given[:9]) <= MAX_SECONDS:
            return _text(f"seconds must be a whole number from 1 to {MAX_SECONDS}, not {given[:20]!r}\n", 400)
        if form is not None and form not in FORMATS:
            return _text(f"format must be {' or '.join(FORMATS)}, not {form[:20]!r}\n", 400)
        found = await debugging.profile(int(given))
        if found is None:
            return _text("another profile is being taken; try again when it has ended\n", 429)
        return as_json(found.speedscope()) if form == "speedscope" else _text(found.collapsed())

    async def stacks(request: Request) -> Response:
        return _text(await debugging.stacks())

    async def index(request: Request) -> Response:
        return _text(
            f"{PPROF}/profile?seconds=N&format=collapsed|speedscope   samples of all stacks for N seconds\n"
            f"{PPROF}/stacks                                          the stacks of all threads and tasks now\n"
        )

    async def verbosity(request: Request) -> Response:
        if request.method != "PUT":
            return _text(f"{logs.current()[0]}\n")
        given = (await request.body()).decode("ascii", "replace").strip()
        if not given.isascii() or not given.isdigit() or int(given[:9]) > logs.MAX_VERBOSITY:
            return _text(f"send a whole number from 0 to {logs.MAX_VERBOSITY}, not {given[:20]!r}\n", 400)
        logs.set_verbosity(int(given))
        _log.info(0, "The verbosity of the log was changed", v=given)
        return _text(f"successfully set the verbosity to {given}\n")

    return [
        Route(f"{PPROF}/", index),
        Route(f"{PPROF}/profile", profile),
        Route(f"{PPROF}/stacks", stacks),
        Route(VERBOSITY, verbosity, methods=["GET", "PUT"]),
    ]


def _text(text: str, code: int = 200) -> Response:
    return PlainTextResponse(text, code, HEADERS)
