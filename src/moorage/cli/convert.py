"""`moorage convert`: a legacy Policy as the configuration of today."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from moorage.app.configuration import configure, read_file
from moorage.cli.printing import complain, line
from moorage.config import ConfigError, convert_policy


def convert(
    policy: Annotated[
        Path, typer.Argument(metavar="POLICY", help="A file with kind: Policy (Kubernetes up to 1.22).")
    ],
    scheduler_name: Annotated[
        str, typer.Option(metavar="NAME", help="The schedulerName of the profile.")
    ] = "default-scheduler",
) -> None:
    """Print the KubeSchedulerConfiguration v1 that a legacy Policy amounts to.

    What is approximated or dropped is noted on standard error. What has no equivalent is a mistake, with
    exit code 1. A scheduler with the Policy itself: [bold]moorage run --policy-config-file[/bold].
    """
    try:
        converted = convert_policy(read_file(policy), scheduler_name=scheduler_name, source=str(policy))
        configure(converted.text, source=str(policy), discover=False)
    except ConfigError as error:
        complain(error)
    for note in converted.notes:
        line(f"note: {note}", style="yellow", stderr=True)
    sys.stdout.write(converted.text)
