"""`moorage check`: checks a configuration, and shows its profiles or all of its problems."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from moorage import config
from moorage.api.errors import MoorageError
from moorage.app import checks
from moorage.app.configuration import Configuration, configure_file, find_plugin
from moorage.cli.printing import Form, OutputForm, complain, console, current_folder, fail, line, print_data, printable
from moorage.config import ConfigError, PluginRef, ResolvedProfile


def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="KubeSchedulerConfiguration in YAML or JSON, v1beta1 to v1.")
    ],
    write_config_to: Annotated[
        str,
        typer.Option(
            "--write-config-to",
            metavar="FILE",
            help="Write the completed configuration (v1) to FILE, or to standard output with -, and exit.",
        ),
    ] = "",
    plugins: Annotated[
        list[str] | None, typer.Option("--plugin", metavar="MODULE:CLASS", help="Register a plugin. Repeatable.")
    ] = None,
    output: OutputForm = Form.TABLE,
) -> None:
    """Check a scheduler configuration and show its profiles.

    Prints the plugins of each extension point in order, and their arguments. Plugins are built as a scheduler
    builds them. If the file or its plugins have problems, all of them are printed and the exit code is 1.
    Warnings do not change the exit code. Plugins are referred to by name if they are built in or installed,
    or as [bold]module:Class[/bold], also from the current folder.
    """
    configuration = _load(file, plugins or [], output)
    if write_config_to:
        _write(configuration, write_config_to)
    elif output is Form.TABLE:
        _print(configuration, file)
    else:
        print_data(_described(configuration, file), output)


def _load(file: Path, plugins: Iterable[str], output: Form) -> Configuration:
    try:
        here = current_folder()
        named = [find_plugin(reference, here) for reference in plugins]
        found = configure_file(file, plugins=named, folders=here)
        if mistakes := checks.find_mistakes(found):
            raise ConfigError(mistakes, str(file))
        return found
    except ConfigError as error:
        if output is not Form.TABLE:
            problems = [msgspec.to_builtins(problem, enc_hook=str) for problem in error.problems]
            print_data({"source": error.source, "problems": problems}, output)
        complain(error)
    except MoorageError as error:
        fail(str(error))


def _write(configuration: Configuration, target: str) -> None:
    text = config.dump(configuration.config)
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"Cannot write {target}: {error.strerror}.")
    line(f"Wrote the configuration to {target}.", stderr=True)


def _print(configuration: Configuration, file: Path) -> None:
    for note in configuration.config.notes:
        line(f"note: {note}", style="yellow")
    for warning in checks.find_warnings(configuration):
        line(f"warning: {warning}", style="bold yellow")
    for profile in configuration.profiles:
        print_profile(profile)
    count = len(configuration.profiles)
    line(f"{file}: valid, {count} profile{'s' if count != 1 else ''}", style="green")


def _described(configuration: Configuration, file: Path) -> dict[str, Any]:
    """Return what `_print` prints, as data."""
    return {"source": str(file), "problems": [], **checks.describe(configuration)}


OWN = "*"
"""Marks plugins that the file names. The others are defaults of kube-scheduler."""


def print_profile(profile: ResolvedProfile) -> None:
    """Print the plugins of a profile, their arguments, and the plugins that are not available."""
    out = console()
    line(f"profile {profile.scheduler_name}", style="bold")
    out.print(_points(profile))
    if any(not ref.default for refs in profile.points.values() for ref in refs):
        line(f"{OWN} enabled in the file")
    args = checks.plugin_args_of(profile)
    if args:
        out.print(_args(args))
    if profile.missing:
        line(f"Not implemented, left out of this profile: {', '.join(profile.missing)}", style="yellow")
    line("")


def _points(profile: ResolvedProfile) -> Table:
    table = Table()
    table.add_column("extension point", no_wrap=True)
    table.add_column("plugins, in order (weight)", overflow="fold")
    for point, refs in profile.points.items():
        table.add_row(point, ", ".join(_shown(ref) for ref in refs) or "-")
    return table


def _shown(ref: PluginRef) -> str:
    weight = f" ({ref.weight})" if ref.weight else ""
    return f"{printable(ref.name)}{'' if ref.default else OWN}{weight}"


def _args(plugins: Mapping[str, Any]) -> Table:
    table = Table("plugin", "argument", "value")
    for name, args in plugins.items():
        entries = args.items() if isinstance(args, Mapping) else [("", args)]
        for index, (key, value) in enumerate(entries):
            shown = json.dumps(value, ensure_ascii=False, default=str)
            table.add_row(printable(name) if index == 0 else "", printable(str(key)), printable(shown))
    return table
