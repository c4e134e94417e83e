"""`moorage up`: a cluster on this machine without Docker: API server, nodes, controllers, scheduler."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from moorage.api.errors import MoorageError
from moorage.cli import options, printing
from moorage.cli.printing import current_folder
from moorage.up import pools
from moorage.up.cluster import EmbeddedCluster, PodCounts
from moorage.up.cluster_plan import ClusterPlan

REFRESH_SECONDS = 0.5


def up(
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            min=0,
            max=pools.MAX_NODES,
            metavar="N",
            help="Number of identical nodes, spread over three zones. Default: 3.",
        ),
    ] = None,
    cluster: Annotated[
        Path | None,
        typer.Option("--cluster", metavar="FILE", help="Create the node pools that this YAML file describes."),
    ] = None,
    numa: Annotated[
        int,
        typer.Option(
            "--numa",
            min=0,
            max=pools.MAX_NUMA_ZONES,
            metavar="N",
            help="Split every node into N NUMA zones, published as NodeResourceTopology objects.",
        ),
    ] = 0,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration for the scheduler.")
    ] = None,
    apply: Annotated[
        list[Path] | None, typer.Option("--apply", metavar="FILE", help="Manifests to apply at start; may be repeated.")
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--snapshot",
            metavar="FILE",
            help="Start with the nodes, pods and other objects of a `moorage snapshot` file.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="DIR", help="Keep the cluster in this folder. Default: in memory only."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            help="Port of the API server; 0 for any free port. Default: 7443, or a free port.",
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", metavar="PATH", help="Where to write the kubeconfig. Default: ~/.moorage/kubeconfig."
        ),
    ] = None,
    scheduler: Annotated[
        bool,
        typer.Option("--scheduler/--no-scheduler", help="Run a scheduler. Without it, start your own: `moorage run`."),
    ] = True,
    emulated_version: options.EmulatedVersion = "",
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Start the web UI, if the extra `ui` is installed.")] = True,
) -> None:
    """Start a Kubernetes cluster on this machine in seconds. Ctrl-C stops it.

    The API server works with kubectl. The nodes are simulated: pods become Running but use no resources.
    """
    options.check_version(emulated_version)
    console = printing.console()
    try:
        plan = ClusterPlan.of(
            nodes=nodes,
            cluster=cluster,
            numa=numa,
            config=config,
            apply=tuple(apply or ()),
            snapshot=snapshot,
            data_dir=data_dir,
            port=port,
            kubeconfig=kubeconfig,
            scheduler=scheduler,
            ui=ui,
            plugin_folders=current_folder(),
            emulated_version=emulated_version,
        )
        asyncio.run(_run(plan, console))
    except MoorageError as error:
        printing.fail(str(error))


async def _run(plan: ClusterPlan, console: Console) -> None:
    async with EmbeddedCluster(plan, until_signal=True) as running:
        for text in running.greeting():
            console.print(text, soft_wrap=True)
        ended = asyncio.ensure_future(running.ended())
        try:
            await _show(running, console, ended)
        finally:
            ended.cancel()
        console.print("Stopping …")
    console.print(running.farewell(), soft_wrap=True)


async def _show(running: EmbeddedCluster, console: Console, ended: asyncio.Future[None]) -> None:
    """Show a line of counts on a terminal until the user stops the cluster."""
    if not console.is_terminal:
        await ended
        return
    with console.status(_line(running.counts())) as status:
        while not ended.done():
            status.update(_line(running.counts()))
            await asyncio.wait({ended}, timeout=REFRESH_SECONDS)
    await ended


def _line(counts: PodCounts) -> str:
    return f"{counts.nodes} nodes · {counts.bound} pods on nodes · {counts.pending} pending · Ctrl-C stops"
