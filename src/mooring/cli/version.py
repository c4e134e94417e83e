"""`mooring version`."""

from __future__ import annotations

import json
import platform
from typing import Annotated

import typer

import mooring
from mooring.cli.printing import Output, line

KUBE_SCHEDULER = "v1.36"
"""The release whose behaviour Mooring follows."""


def version(
    output: Annotated[
        Output, typer.Option("--output", "-o", help="For people or for programs.")
    ] = Output.TABLE,
) -> None:
    """Print the version of Mooring, and of the kube-scheduler that it follows."""
    print_version(output)


def print_version(output: Output = Output.TABLE) -> None:
    facts = {
        "mooring": mooring.__version__,
        "kubeScheduler": KUBE_SCHEDULER,
        "python": platform.python_version(),
    }
    if output is Output.JSON:
        print(json.dumps(facts))
        return
    line(f"mooring {mooring.__version__} (behaves as kube-scheduler {KUBE_SCHEDULER})")
