"""`moorage check`: checks a configuration, and shows its profiles or all of its problems."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from moorage import config
from moorage.api.errors import MoorageError
from moorage.app import checks
from moorage.app.configuration import (
    Configuration,
    build_registry,
    find_plugin,
    plugin_folders,
    read_configuration,
    read_file,
)
from moorage.cli import options
from moorage.cli.complaining import complain
from moorage.cli.printing import Form, OutputForm, console, current_folder, fail, line, print_data, printable
from moorage.config import ConfigError, FeatureGates, PluginRef, Problem, ResolvedProfile
from moorage.run import trial
from moorage.run.trial import TriedPlugins
from moorage.runtime.registry import PluginError


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
    plugins: options.Plugins = None,
    plugin_path: options.PluginPath = None,
    emulated_version: options.EmulatedVersion = "",
    try_out: Annotated[
        bool,
        typer.Option(
            "--try", help="Also schedule one pod per profile on two nodes in memory, and report what plugins do wrong."
        ),
    ] = False,
    output: OutputForm = Form.TABLE,
) -> None:
    """Check a scheduler configuration and show its profiles.

    Prints the plugins of each extension point in order, and their arguments. Plugins are built as a scheduler
    builds them. If the file or its plugins have problems, all of them are printed and the exit code is 1.
    Warnings do not change the exit code. Plugins are referred to by name if they are built in or installed,
    or as [bold]module:Class[/bold], also from the current folder or that of --plugin-path. With --try, the exit
    code is also 1 if a plugin raises, returns a wrong type, uses the API without declaring it, changes an object or
    is slow.
    """
    options.check_version(emulated_version)
    configuration, warnings = _load(file, plugins, plugin_path, output, FeatureGates.of(emulated_version))
    if write_config_to:
        _write(configuration, write_config_to)
        return
    tried = trial.try_out(configuration) if try_out else None
    if output is Form.TABLE:
        _print(configuration, warnings, file)
        if tried is not None:
            _print_trial(tried)
    else:
        described = {**checks.describe(configuration), "warnings": warnings}
        if tried is not None:
            described["trial"] = msgspec.to_builtins(tried)
        print_data({"source": str(file), "problems": [], **described}, output)
    if tried is not None and tried.problems:
        raise typer.Exit(1)


def _load(
    file: Path, plugins: list[str] | None, plugin_path: list[str] | None, output: Form, gates: FeatureGates
) -> tuple[Configuration, list[str]]:
    """Read the file, build its plugins, and return it with warnings. Exits with code 1 if there are problems."""
    try:
        folders = plugin_folders(plugin_path) if plugin_path else current_folder()
        configuration, problems, warnings = _examine(file, plugins or (), folders, gates)
        if configuration is None or problems:
            raise ConfigError(problems, str(file))
        return configuration, warnings
    except ConfigError as error:
        if output is not Form.TABLE:
            problems = [msgspec.to_builtins(problem, enc_hook=str) for problem in error.problems]
            print_data({"source": error.source, "problems": problems}, output)
        complain(error)
    except MoorageError as error:
        fail(str(error))


def _examine(
    file: Path, references: Iterable[str], folders: Sequence[str], gates: FeatureGates
) -> tuple[Configuration | None, list[Problem], list[str]]:
    """Return what can be used of the file, all problems, and warnings."""
    text, registry = read_file(file), build_registry()
    problems: list[Problem] = []
    for reference in references:
        try:
            registry.add(find_plugin(reference, folders), source=reference)
        except PluginError as error:
            problems.append(Problem(path="", message=str(error)))
    configuration, others = read_configuration(text, registry, gates=gates, folders=folders)
    problems += others
    if configuration is None:
        return None, problems, []
    mistakes, warnings = checks.build_all(configuration)
    return configuration, [*problems, *mistakes], [*warnings, *checks.find_warnings(configuration)]


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


def _print(configuration: Configuration, warnings: Iterable[str], file: Path) -> None:
    for note in configuration.config.notes:
        line(f"note: {note}", style="yellow")
    for warning in warnings:
        line(f"warning: {warning}", style="bold yellow")
    for profile in configuration.profiles:
        print_profile(profile)
    count = len(configuration.profiles)
    line(f"{file}: valid, {count} profile{'s' if count != 1 else ''}", style="green")


def _print_trial(tried: TriedPlugins) -> None:
    for outcome in tried.outcomes:
        result = f"bound to {outcome.node}" if outcome.node else f"not bound: {outcome.message}"
        line(f"tried a pod of profile {outcome.profile}: {result}")
    for note in tried.notes:
        line(f"note: {note}", style="yellow")
    for problem in tried.problems:
        line(f"Error: {problem}", style="bold red", stderr=True)
    count = len(tried.problems)
    if count:
        line(f"The trial found {count} problem{'s' if count != 1 else ''}.", style="bold red", stderr=True)
    else:
        line("The trial found no problem.", style="green")


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
