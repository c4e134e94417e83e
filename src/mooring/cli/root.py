"""`mooring`: the options that every command has, and the list of commands."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from mooring.cli import bench, printing
from mooring.cli.check import check
from mooring.cli.convert import convert
from mooring.cli.demo import demo
from mooring.cli.evaluate import evaluate
from mooring.cli.explain import explain
from mooring.cli.extender import extender
from mooring.cli.manifests import manifests
from mooring.cli.new import new
from mooring.cli.record import record
from mooring.cli.run import SETTINGS, run
from mooring.cli.simulate import simulate
from mooring.cli.snapshot import snapshot
from mooring.cli.ui import ui
from mooring.cli.up import up
from mooring.cli.version import print_version, version
from mooring.cli.what_if import what_if
from mooring.telemetry import logs

app = typer.Typer(
    name="mooring",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(check)
app.command()(convert)
app.command()(new)
app.command(context_settings=SETTINGS, add_help_option=False)(run)
app.command()(extender)
app.command()(manifests)
app.command()(demo)
app.command()(up)
app.command()(explain)
app.command("what-if")(what_if)
app.command()(ui)
app.command()(snapshot)
app.command()(record)
app.command()(evaluate)
app.command()(simulate)
app.add_typer(bench.app, name="bench")
app.command()(version)


class LoggingFormat(enum.StrEnum):
    """The words of kube-scheduler's flag."""

    TEXT = "text"
    JSON = "json"


def _verbosity(given: str | int) -> int:
    """klog's users write `-v=3`, of which the parser leaves `=3`; the default arrives as a number."""
    number = str(given).removeprefix("=")
    if not (number.isascii() and number.isdigit()):
        raise typer.BadParameter(
            f"{number!r} is not a verbosity; write a number from 0 to {logs.MAX_VERBOSITY}"
        )
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
            help="How much to log to standard error: 0 for operators, 2 for state changes, "
            "3 for every attempt, 10 for the scores of every plugin.",
        ),
    ] = 0,
    logging_format: Annotated[
        LoggingFormat, typer.Option("--logging-format", help="How log lines look.")
    ] = LoggingFormat.TEXT,
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop."),
    ] = False,
) -> None:
    """The Kubernetes scheduler that you program in Python.

    Try [bold]mooring demo[/bold] to see a plugin at work, [bold]mooring new NAME[/bold] to write one, and
    [bold]mooring check FILE[/bold] to see what a scheduler configuration means.
    """
    logs.setup(verbosity, "json" if logging_format is LoggingFormat.JSON else "text")


def main() -> None:
    """The entry point of the `mooring` script."""
    printing.tolerate_any_encoding()
    app(prog_name="mooring")
