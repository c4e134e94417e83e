"""`mooring check`: what a configuration means, or everything that is wrong with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer

from mooring import config
from mooring.api.errors import MooringError
from mooring.app.configuring import Configuration, configure_file
from mooring.cli import profile_table
from mooring.cli.printing import Output, fail, line
from mooring.config import ConfigError, ResolvedProfile
from mooring.framework.points import Plugin
from mooring.runtime.registry import Registry

NO_EXTENDERS = "extenders: this version cannot call them; a scheduler with this file refuses to start"


def check(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A KubeSchedulerConfiguration, YAML or JSON, v1beta1 to v1."),
    ],
    write_config_to: Annotated[
        str,
        typer.Option(
            "--write-config-to",
            metavar="FILE",
            help="Write the completed configuration (version v1) there, with - to standard output, and stop.",
        ),
    ] = "",
    plugins: Annotated[
        list[str] | None,
        typer.Option("--plugin", metavar="MODULE:CLASS", help="Make a plugin known by its name. Repeatable."),
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="For people or for programs.")
    ] = Output.TABLE,
) -> None:
    """Check a scheduler configuration and show what it means.

    Prints the profiles with the plugins at each extension point, in order, and their arguments. With
    mistakes in the file it prints all of them and ends with exit code 1. Plugins are found by name among
    the built-in and installed ones, and as [bold]module:Class[/bold] from the current folder.
    """
    configuration = _load(file, plugins or [], output)
    if write_config_to:
        _write(configuration, write_config_to)
    elif output is Output.JSON:
        print(json.dumps(_described(configuration, file), indent=2, ensure_ascii=False))
    else:
        _print(configuration, file)


def _load(file: Path, plugins: Iterable[str], output: Output) -> Configuration:
    try:
        return configure_file(file, plugins=[_find(reference) for reference in plugins])
    except ConfigError as error:
        if output is Output.JSON:
            problems = [msgspec.to_builtins(problem, enc_hook=str) for problem in error.problems]
            print(json.dumps({"source": error.source, "problems": problems}, indent=2, ensure_ascii=False))
        _complain(error)
    except MooringError as error:
        fail(str(error))


def _complain(error: ConfigError) -> NoReturn:
    """Every mistake with its place; one sentence when there is no place, as for a file that is not there."""
    if len(error.problems) == 1 and not error.problems[0].path:
        fail(f"{error.source}: {error.problems[0]}")
    line(str(error), stderr=True)
    raise typer.Exit(1) from error


def _find(reference: str) -> type[Plugin]:
    registry = Registry()
    return registry[registry.follow(reference)]


def _write(configuration: Configuration, target: str) -> None:
    text = config.dump(configuration.config)
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{target}: cannot be written: {error.strerror}")
    line(f"Wrote configuration to {target}", stderr=True)


def _print(configuration: Configuration, file: Path) -> None:
    for note in configuration.config.notes:
        line(f"note: {note}", style="yellow")
    if configuration.config.extenders:
        line(f"warning: {NO_EXTENDERS}", style="bold yellow")
    for profile in configuration.profiles:
        profile_table.print_profile(profile)
    count = len(configuration.profiles)
    line(f"{file}: valid, {count} profile{'s' if count != 1 else ''}", style="green")


def _described(configuration: Configuration, file: Path) -> dict[str, Any]:
    """What `_print` prints, for programs."""
    return {
        "source": str(file),
        "problems": [],
        "notes": [msgspec.to_builtins(note) for note in configuration.config.notes],
        "warnings": [NO_EXTENDERS] if configuration.config.extenders else [],
        "profiles": [_profile(profile) for profile in configuration.profiles],
    }


def _profile(profile: ResolvedProfile) -> dict[str, Any]:
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": {
            point: [msgspec.to_builtins(ref) for ref in refs] for point, refs in profile.points.items()
        },
        "pluginConfig": profile_table.shown_args(profile),
        "missing": list(profile.missing),
    }
