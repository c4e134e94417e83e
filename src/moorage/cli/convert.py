"""`moorage convert`: converts a legacy Policy to a KubeSchedulerConfiguration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from moorage.app.configuration import configure, read_file
from moorage.cli.complaining import complain
from moorage.cli.printing import line
from moorage.config import ConfigError, convert_policy


def convert(
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="A file with kind: Policy (Kubernetes up to 1.22).")],
    scheduler_name: Annotated[
        str, typer.Option(metavar="NAME", help="schedulerName of the profile.")
    ] = "default-scheduler",
) -> None:
    """Convert a legacy Policy to a KubeSchedulerConfiguration v1 and print it.

    Notes on standard error name fields that are approximated or dropped. Fields without an equivalent are errors (exit
    code 1). To run a scheduler with the Policy itself, use [bold]moorage run --policy-config-file[/bold].
    """
    try:
        converted = convert_policy(read_file(policy), scheduler_name=scheduler_name, source=str(policy))
        configure(converted.text, source=str(policy), discover=False)
    except ConfigError as error:
        complain(error)
    for note in converted.notes:
        line(f"note: {note}", style="yellow", stderr=True)
    sys.stdout.write(converted.text)
