"""The options of commands that ask about a cluster: where it is read from, and by which configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration, configure
from moorage.app.gc_tuning import gc_paused
from moorage.cli.printing import fail, line
from moorage.cli.server_options import Scheduler
from moorage.explain.loaded import LoadedCluster
from moorage.snapshots.cluster import ClusterObjects, read_cluster

Kubeconfig = Annotated[
    str,
    typer.Option(metavar="FILE", help="The cluster that this file leads to; without, as kubectl finds it."),
]
Context = Annotated[str, typer.Option(metavar="NAME", help="The context in the kubeconfig.")]
SnapshotFile = Annotated[
    Path | None,
    typer.Option(
        "--snapshot", metavar="FILE", help="A file of `moorage snapshot` instead of a live cluster."
    ),
]


Annotations = Annotated[
    bool, typer.Option("--annotations", help="Keep annotations; some plugins read theirs.")
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Without, that of the kubeconfig.")
]


def load(own: Configuration | None, kubeconfig: str, context: str, snapshot: Path | None) -> LoadedCluster:
    """The cluster, read once and loaded."""
    configured = own or configure()
    try:
        with gc_paused():
            return LoadedCluster.load(read(configured, kubeconfig, context, snapshot), configured)
    except MoorageError as error:
        fail(str(error))


def configured_as(own: Configuration | None, scheduler: Scheduler | None) -> Configuration:
    """By what to judge: by the user's configuration, by that of the scheduler, or as kube-scheduler does."""
    if own is None and scheduler is not None:
        return asyncio.run(scheduler.configuration())
    return own or configure()


def read(
    configured: Configuration,
    kubeconfig: str,
    context: str,
    snapshot: Path | None,
    scheduler: Scheduler | None = None,
    annotations: bool = True,
) -> ClusterObjects:
    """The objects of the cluster, read once. What could not be read is said on standard error."""
    if snapshot is not None and (kubeconfig or context or scheduler):
        fail("--snapshot excludes --kubeconfig, --context and --server: drop one")
    resources = configured.resources()
    if scheduler is not None:
        cluster = asyncio.run(scheduler.cluster(resources, annotations))
    elif snapshot is not None:
        cluster = snapshots.load(snapshot, resources)
    else:
        cluster = asyncio.run(read_cluster(resources, kubeconfig, context))
    warn(cluster.gaps(configured))
    return cluster


def warn(gaps: Iterable[str]) -> None:
    """What answers may be wrong for."""
    for gap in gaps:
        line(f"Warning: {gap}", style="yellow", stderr=True)
