"""How commands write: consoles that stay readable without colours, on narrow terminals and in files."""

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
"""Columns where there is no terminal: tables in a file or a pipe need not fit a terminal."""


class Form(enum.StrEnum):
    """What to print for people, or for programs."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputForm = Annotated[Form, typer.Option("--output", "-o", help="For people, or for programs.")]


def console(*, stderr: bool = False, no_color: bool = False) -> Console:
    """A console of this moment: tests and pipes replace the streams. Markup in data is never obeyed."""
    made = Console(stderr=stderr, no_color=no_color or None, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = FILE_WIDTH
    return made


def line(text: str, *, style: str = "", stderr: bool = False) -> None:
    """One line that the terminal may wrap and that is never cut."""
    console(stderr=stderr).print(printable(text), style=style or None, soft_wrap=True)


def print_data(value: Any, form: Form) -> None:
    """For programs."""
    if form is Form.YAML:
        print(yaml_text.dump(msgspec.to_builtins(value)), end="")
    else:
        print(json.dumps(value, indent=2, ensure_ascii=False))


def printable(text: str) -> str:
    """Without control characters: file contents must not drive the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def fail(message: str) -> NoReturn:
    """One clear sentence on standard error, exit code 1."""
    line(f"Error: {message}", style="bold red", stderr=True)
    raise typer.Exit(1)


def complain(error: ConfigError) -> NoReturn:
    """Every mistake with its place; one sentence when there is no place, as for a file that is not there."""
    if len(error.problems) == 1 and not error.problems[0].path:
        fail(f"{error.source}: {error.problems[0]}")
    line(str(error), stderr=True)
    raise typer.Exit(1) from error


def tolerate_any_encoding() -> None:
    """A terminal that cannot show a character gets its escape, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def current_folder() -> tuple[str, ...]:
    """The current folder; nothing when it is gone, or when `python -I` asks to keep it out."""
    if sys.flags.isolated:
        return ()
    try:
        return (os.getcwd(),)
    except OSError:
        return ()
