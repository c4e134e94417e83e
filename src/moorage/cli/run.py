"""`moorage run`: a scheduler for a cluster, with kube-scheduler's flags."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from moorage import config
from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration
from moorage.cli import printing
from moorage.cli.version import print_version
from moorage.run import flags, options, process
from moorage.run.flag_table import GROUPS, Flag, FlagKind
from moorage.run.flags import FlagError, Flags
from moorage.telemetry import logs

_log = logs.get(__name__)

SETTINGS = {
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    "add_help_option": False,
}
"""`run.flags` reads the flags by Go's rules, which differ from those of other command lines."""


def run(
    context: typer.Context,
    args: Annotated[list[str] | None, typer.Argument(metavar="[FLAGS]", show_default=False)] = None,
) -> None:
    """Schedule the pods of a cluster. Takes kube-scheduler's flags; --help lists them.

    Runs until SIGTERM (exit code 0), or until the lease is lost (exit code 1).
    """
    given = _parse([*(args or []), *context.args])
    if given.boolean("help"):
        _print_help()
        return
    if given.boolean("version"):
        print_version()
        return
    _set_up_logs(given)
    for warning in given.warnings:
        _log.warning(warning)
    try:
        configuration, chosen = options.configuration_of(given), options.options_of(given)
        for note in configuration.config.notes:
            _log.info(0, f"note: {note}")
        for warning in options.gate_warnings(chosen.gates):
            _log.warning(warning)
        if target := given.text("write-config-to"):
            _write(configuration, target)
            return
        code = process.run(configuration, chosen)
    except config.ConfigError as error:
        printing.line(str(error), stderr=True)
        raise typer.Exit(1) from error
    except MoorageError as error:
        printing.fail(str(error))
    raise typer.Exit(code)


def _parse(args: list[str]) -> Flags:
    try:
        return flags.parse(args)
    except FlagError as error:
        for mistake in str(error).splitlines():
            printing.line(f"Error: {mistake}", style="bold red", stderr=True)
        printing.line("See `moorage run --help` for all flags.", stderr=True)
        raise typer.Exit(1) from error


def _set_up_logs(given: Flags) -> None:
    """Set up logging; flags after `run` take precedence over options before it."""
    form = given.text("logging-format")
    if form not in ("text", "json"):
        printing.fail(f"--logging-format: unknown format {form!r}; expected text or json")
    if given.has("v") or given.has("logging-format"):
        logs.setup(given.number("v"), "json" if form == "json" else "text")


def _write(configuration: Configuration, target: str) -> None:
    text = config.dump(configuration.config)
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        printing.fail(f"cannot write {target}: {error.strerror}")
    printing.line(f"Wrote configuration to {target}", stderr=True)


def _print_help() -> None:
    printing.line("Usage: moorage run [FLAGS]\n")
    printing.line("Schedule the pods of a cluster, as kube-scheduler does and with its flags.")
    for group, members in GROUPS.items():
        shown = [flag for flag in members if not flag.note]
        printing.line(f"\n{group} flags:\n")
        for flag in shown:
            printing.line(f"    {_usage(flag)}\n        {flag.help}{_default(flag)}")
    unused = [f"--{flag.name}" for members in GROUPS.values() for flag in members if flag.note]
    printing.line("\nFlags of kube-scheduler that are accepted with a warning, or refused: " + ", ".join(unused))


def _usage(flag: Flag) -> str:
    dashes = "-v, --v" if flag.name == "v" else f"--{flag.name}"
    return dashes if flag.kind is FlagKind.BOOL else f"{dashes} {flag.kind.value}"


def _default(flag: Flag) -> str:
    return f" (default {flag.default})" if flag.default not in ("", "false") else ""
