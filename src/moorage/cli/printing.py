"""Output of commands: consoles that stay readable without colours, on narrow terminals and in files.

Errors are sentences on standard error that begin with "Error: ". They say what happened, to what, and what to do.
"""

from __future__ import annotations

import enum
import io
import json
import os
import sys
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from rich.console import Console

from moorage.api import yaml_text
from moorage.config import ConfigError

FILE_WIDTH = 120
"""Width in columns if the output is not a terminal."""


class Form(enum.StrEnum):
    """The output format: a table for users, JSON or YAML for programs."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputForm = Annotated[Form, typer.Option("--output", "-o", help="Output format.")]


def console(*, stderr: bool = False, no_color: bool = False) -> Console:
    """Return a console for the current streams. Markup in data is not interpreted."""
    made = Console(stderr=stderr, no_color=no_color or None, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = FILE_WIDTH
    return made


def line(text: str, *, style: str = "", stderr: bool = False) -> None:
    """Print a line, which the terminal may wrap and which is never truncated."""
    console(stderr=stderr).print(printable(text), style=style or None, soft_wrap=True)


def print_data(value: Any, form: Form) -> None:
    """Print a value as JSON or YAML."""
    if form is Form.YAML:
        print(yaml_text.dump(msgspec.to_builtins(value)), end="")
    else:
        print(json.dumps(value, indent=2, ensure_ascii=False))


def printable(text: str) -> str:
    """Escape control characters, so that file contents cannot control the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def fail(message: str) -> NoReturn:
    """Print an error on standard error and exit with code 1."""
    line(f"Error: {message}", style="bold red", stderr=True)
    raise typer.Exit(1)


def complain(error: ConfigError) -> NoReturn:
    """Print all problems of a configuration with their paths, and exit with code 1."""
    if len(error.problems) == 1 and not error.problems[0].path:
        fail(f"{error.source}: {error.problems[0]}")
    line(str(error), stderr=True)
    raise typer.Exit(1) from error


def tolerate_any_encoding() -> None:
    """Print characters that the terminal cannot show as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def current_folder() -> tuple[str, ...]:
    """Return the current folder, or nothing if it was deleted or `python -I` excludes it."""
    if sys.flags.isolated:
        return ()
    try:
        return (os.getcwd(),)
    except OSError:
        return ()
