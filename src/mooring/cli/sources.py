"""The options of commands that ask about a cluster: where it is read from, and by which configuration."""

from __future__ import annotations

import asyncio
import enum
import gc
import json
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from mooring.api.errors import MooringError
from mooring.app import live_cluster, snapshots
from mooring.app.asking import LoadedCluster
from mooring.app.configuring import Configuration, configure
from mooring.app.live_cluster import LiveCluster
from mooring.cli.printing import fail, line

Kubeconfig = Annotated[
    str,
    typer.Option(metavar="FILE", help="The cluster that this file leads to; without, as kubectl finds it."),
]
Context = Annotated[str, typer.Option(metavar="NAME", help="The context in the kubeconfig.")]
SnapshotFile = Annotated[
    Path | None,
    typer.Option(
        "--snapshot", metavar="FILE", help="A file of `mooring snapshot` instead of a live cluster."
    ),
]


class Form(enum.StrEnum):
    """What to print for people, or for programs."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputForm = Annotated[Form, typer.Option("--output", "-o", help="For people, or for programs.")]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Without, that of the kubeconfig.")
]


def print_data(value: Any, form: Form) -> None:
    """For programs."""
    if form is Form.JSON:
        print(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        print(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), end="")


def load(own: Configuration | None, kubeconfig: str, context: str, snapshot: Path | None) -> LoadedCluster:
    """The cluster, read once and loaded."""
    gc.disable()  # all that is read stays; looking through it for garbage takes a third of the time
    try:
        configured = own or configure()
        return LoadedCluster(read(configured, kubeconfig, context, snapshot), configured)
    except MooringError as error:
        fail(str(error))
    finally:
        gc.freeze()
        gc.enable()


def read(configured: Configuration, kubeconfig: str, context: str, snapshot: Path | None) -> LiveCluster:
    """The objects of the cluster, read once. What could not be read is said on standard error."""
    if snapshot is not None and (kubeconfig or context):
        fail("--snapshot and --kubeconfig or --context exclude each other: drop one")
    resources = live_cluster.resources_of(configured)
    if snapshot is not None:
        cluster = snapshots.load(snapshot, resources)
    else:
        cluster = asyncio.run(live_cluster.read(resources, kubeconfig, context))
    for gap in cluster.gaps(configured):
        line(f"Warning: {gap}", style="yellow", stderr=True)
    return cluster
