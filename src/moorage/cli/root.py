"""`moorage`: the options that all commands share, and the list of commands."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from moorage.cli import printing
from moorage.cli.printing import in_plain_words, plain
from moorage.cli.version import print_version
from moorage.telemetry import logs

_BRIEF = {
    "check": "Check a scheduler configuration and show its profiles.",
    "convert": "Convert a legacy Policy to a KubeSchedulerConfiguration v1 and print it.",
    "new": "Create a plugin package with a plugin, a configuration, a test and packaging.",
    "run": "Schedule the pods of a cluster. Takes kube-scheduler's flags; --help lists them.",
    "extender": "Serve the plugins of a profile to kube-scheduler, as an extender.",
    "manifests": "Print the Kubernetes objects that run Moorage on a cluster.",
    "demo": "Show a plugin at work: a pod stays pending, and is scheduled when a node gets the right label.",
    "up": "Start a Kubernetes cluster on this machine in seconds. Ctrl-C stops it.",
    "explain": "Explain why a pod is pending, or why it is on its node, and what would help.",
    "what-if": "Show what would happen, and change nothing.",
    "ui": "Show a cluster in the browser: which pods are pending and why, and what would help.",
    "snapshot": "Read a cluster once and write what the scheduler sees to a file.",
    "record": "Watch a cluster and record its changes, for `moorage simulate`.",
    "evaluate": "Judge pods on a cluster in a file, or on a live one, and write nothing anywhere.",
    "simulate": "Run a workload with the real scheduler in virtual time, and measure.",
    "bench": "Measure the speed of Moorage on this machine.",
    "version": "Print the version of Moorage and of the kube-scheduler that it follows.",
}
"""Each name is a module of this package with a function of the same name, or with a group `app`. The texts are the
first paragraphs of their help, so that `moorage --help` need not import them."""


class _Commands(Mapping[str, Any]):
    """Name → command. A command is imported when it is looked up, so that it does not load the others."""

    def __getitem__(self, name: str) -> Any:
        if name not in _BRIEF:
            raise KeyError(name)
        attribute = name.replace("-", "_")
        try:
            module = importlib.import_module(f"moorage.cli.{attribute}")
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("moorage."):
                raise
            return _absent(name)
        if hasattr(module, "app"):
            return in_plain_words(typer.main.get_command(module.app))
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        alone.command(name, **getattr(module, "SETTINGS", {}))(getattr(module, attribute))
        return in_plain_words(typer.main.get_command(alone))

    def __iter__(self) -> Iterator[str]:
        return iter(_BRIEF)

    def __len__(self) -> int:
        return len(_BRIEF)


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

    def get_params(self, ctx: Any) -> list[Any]:
        return [plain(param) for param in super().get_params(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands by their brief texts, without importing them."""
        before = self.commands
        self.commands = {name: TyperCommand(name, help=text) for name, text in _BRIEF.items()}
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = before


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
