"""`moorage`: the options that all commands share, and the list of commands."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from moorage.cli import printing
from moorage.cli.version import print_version
from moorage.telemetry import logs

_NAMES = (
    "check",
    "convert",
    "new",
    "run",
    "extender",
    "manifests",
    "demo",
    "up",
    "explain",
    "what-if",
    "ui",
    "snapshot",
    "record",
    "evaluate",
    "simulate",
    "bench",
    "version",
)
"""Each name is a module of this package with a function of the same name, or with a group `app`."""


class _Commands(Mapping[str, Any]):
    """Name → command. A command is imported when it is looked up, so that it does not load the others."""

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise KeyError(name)
        attribute = name.replace("-", "_")
        try:
            module = importlib.import_module(f"moorage.cli.{attribute}")
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("moorage."):
                raise
            return _absent(name)
        if hasattr(module, "app"):
            return typer.main.get_command(module.app)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        alone.command(name, **getattr(module, "SETTINGS", {}))(getattr(module, attribute))
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


def _absent(name: str) -> Any:
    """Return a command for one whose packages were left out, as the container image leaves some out."""
    sentence = (
        f"`moorage {name}` is not part of this installation, which holds only what a scheduler in a cluster "
        "needs. Install Moorage with pip to use it."
    )
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}

    @alone.command(name, help=sentence, context_settings=settings)
    def refuse() -> None:
        printing.fail(sentence)

    return typer.main.get_command(alone)


class _Group(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()  # type: ignore[assignment]  # none is ever added


app = typer.Typer(
    name="moorage",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class LoggingFormat(enum.StrEnum):
    """The values of kube-scheduler's flag --logging-format."""

    TEXT = "text"
    JSON = "json"


def _verbosity(given: str | int) -> int:
    """Parse a verbosity. Of klog's `-v=3` the parser leaves `=3`; the default is a number."""
    number = str(given).removeprefix("=")
    if not (number.isascii() and number.isdigit()):
        raise typer.BadParameter(f"{number!r} is not a verbosity; write a number from 0 to {logs.MAX_VERBOSITY}")
    return int(number)


def _show_version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@app.callback()
def root(
    verbosity: Annotated[
        int,
        typer.Option(
            "-v",
            "--v",
            metavar="N",
            parser=_verbosity,
            help="Verbosity of the log on standard error: 0 for operators, 2 for state changes, "
            "3 for every attempt, 10 for the scores of every plugin.",
        ),
    ] = 0,
    logging_format: Annotated[
        LoggingFormat, typer.Option("--logging-format", help="Format of log lines.")
    ] = LoggingFormat.TEXT,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The Kubernetes scheduler that you program in Python.

    Run [bold]moorage demo[/bold] to see a plugin at work, [bold]moorage new NAME[/bold] to create one, and
    [bold]moorage check FILE[/bold] to check a scheduler configuration.
    """
    logs.setup(verbosity, "json" if logging_format is LoggingFormat.JSON else "text")


def main() -> None:
    """Run the command line. This is the entry point of the `moorage` script."""
    printing.tolerate_any_encoding()
    app(prog_name="moorage")
