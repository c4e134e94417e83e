"""Output of commands: consoles that stay readable without colours, on narrow terminals and in files.

Errors are sentences on standard error that begin with "Error: ". They say what happened, to what, and what to do.
Help shows flags without a type, values in capitals, and arguments without braces; Typer writes the Python type of every
parameter (`<bool>`, `<list[int]>`) and braces around required arguments.
"""

from __future__ import annotations

import enum
import io
import json
import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from moorage.api import yaml_text

if TYPE_CHECKING:
    from rich.console import Console

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
    from rich.console import Console  # not at the top: `moorage run` starts sooner without its forty modules

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


_NUMBER = re.compile(r"\b(int|float|integer)\b", re.IGNORECASE)


def in_plain_words(command: Any) -> Any:
    """Change how the parameters of a command and its subcommands are shown, and return the command."""
    command.get_params = _shown_plainly(command.get_params)
    for sub in getattr(command, "commands", {}).values():
        in_plain_words(sub)
    return command


def _shown_plainly(params_of: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    def params(context: Any) -> list[Any]:
        return [plain(param) for param in params_of(context)]

    return params


def plain(param: Any) -> Any:
    """Change how one parameter is shown, and return it."""
    if param.param_type_name == "argument":
        _show_argument(param)
    elif getattr(param, "is_flag", False) or getattr(param, "count", False):
        param.metavar = ""
    elif param.metavar is None and not _is_choice(param):
        param.metavar = "N" if _NUMBER.search(_type_of(param)) else "TEXT"
    return param


def _is_choice(param: Any) -> bool:
    described = getattr(param, "type_descriptor", None)
    return bool(getattr(described, "is_choice", False) or getattr(getattr(param, "type", None), "choices", None))


def _type_of(param: Any) -> str:
    """Return the name of the type; it is in another place in newer versions of Typer."""
    described = getattr(param, "type_descriptor", None)
    return str(described.annotation) if described is not None else str(getattr(param, "type", ""))


def _show_argument(param: Any) -> None:
    name = (param.metavar or param.name).strip("[].").upper()
    shown = name if param.required else f"[{name}]"
    param.metavar = name
    param.display_type_rich = lambda ctx: ""
    param.get_usage_pieces = lambda ctx: [f"{shown}..." if param.nargs != 1 else shown]
