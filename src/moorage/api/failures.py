"""Exceptions of code that belongs to others: plugins and the objects that they return.

Such code may raise anything, also a BaseException that would end the task or the process that called it. A caller
catches BaseException, re-raises an interruption, and reports everything else with the text of `failure_text`.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sysconfig
import traceback
from typing import Any


def is_interruption(error: BaseException) -> bool:
    """Return whether the exception is a Ctrl-C that arrived during a call, and not a failure of the called code.

    Python raises KeyboardInterrupt from its own handler or from that of asyncio.Runner. Where a process handles SIGINT
    itself, as `moorage run` does, only the called code can have raised it.
    """
    if not isinstance(error, KeyboardInterrupt):
        return False
    handler = signal.getsignal(signal.SIGINT)
    return handler is signal.default_int_handler or isinstance(handler, functools.partial)


def is_cancellation(error: BaseException) -> bool:
    """Return whether the exception ends the coroutine that awaited the code, and not the code itself.

    The running task is being cancelled, or its coroutine is being closed after its loop has ended. If neither holds, a
    CancelledError comes from a task that the code cancelled itself, and is a failure like any other.
    """
    if isinstance(error, asyncio.CancelledError):
        return is_being_cancelled()
    return isinstance(error, GeneratorExit) and _task() is None


def is_being_cancelled() -> bool:
    """Return whether the running task is being cancelled."""
    task = _task()
    return task is not None and task.cancelling() > 0


def _task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs
        return None


def text_of(value: object) -> str:
    """Return `str(value)`, even if its `__str__` raises."""
    try:
        return str(value)
    except BaseException as error:
        if is_interruption(error):
            raise
        return f"<{type(value).__name__} whose __str__ raises {type(error).__name__}>"


def repr_of(value: object) -> str:
    """Return `repr(value)`, even if its `__repr__` raises."""
    try:
        return repr(value)
    except BaseException as error:
        if is_interruption(error):
            raise
        return f"<{type(value).__name__} whose __repr__ raises {type(error).__name__}>"


def failure_text(error: BaseException) -> str:
    """Return the type and the text of an exception, as `ValueError: too large`."""
    return f"{type(error).__name__}: {text_of(error)}"


_OWN_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_INSTALLED = tuple(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib"))


def place_of(error: BaseException) -> str:
    """Return the file and line at which an exception was raised, as `plugin.py, line 3`; empty if unknown.

    The innermost line outside installed packages is the one to correct. If there is none, it is the innermost line
    outside Moorage.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    others = [frame for frame in frames if not frame.filename.startswith(("<", _OWN_FOLDER))]
    own = [frame for frame in others if not frame.filename.startswith(_INSTALLED)]
    if not others:
        return ""
    last = (own or others)[-1]
    return f"{last.filename}, line {last.lineno}"
