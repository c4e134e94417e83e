"""`mooring ui`: the cluster in a browser: which pods wait, why, and what would help."""

from __future__ import annotations

import asyncio
import importlib.util
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from mooring.api.errors import MooringError
from mooring.app import live_cluster, running_scheduler, snapshots
from mooring.app.configuring import Configuration, configure
from mooring.app.live_cluster import LiveCluster
from mooring.cli.printing import fail, line
from mooring.cli.profile_options import Config, PluginPath, Plugins, ProfileName, configured
from mooring.cli.server_options import Authority, Insecure, Scheduler, Server, TokenFile, scheduler_of
from mooring.cli.sources import Context, Kubeconfig, SnapshotFile, read
from mooring.serving.api_v1 import ROOT

PORT = 7480
"""Beside the API server of `mooring up`; a free one where it is taken."""


def ui(
    server: Server = "",
    token_file: TokenFile = None,
    authority: Authority = None,
    insecure: Insecure = False,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    snapshot: SnapshotFile = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="A folder of `mooring simulate -o`: compare its results. Repeatable."
        ),
    ] = None,
    config: Config = None,
    profile: ProfileName = "",
    plugins: Plugins = None,
    plugin_path: PluginPath = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="0 takes any free one. Default: 7480, or a free one."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Show a cluster in the browser: which pods wait and why, and what would help.

    Works on any cluster, also one without Mooring, and on a file of `mooring snapshot`: its objects are read
    once and judged in memory. With --server it shows what a running scheduler sees and decides, as it
    happens; with --results, simulations side by side. Nothing is written. Serves on this machine only; the
    address that is printed carries a token without which there is nothing to see.
    """
    own = configured(config, profile, plugins, plugin_path)
    if server and (snapshot is not None or own is not None):
        fail(
            "--server shows what a scheduler sees and decides: drop --snapshot, and --config with its options"
        )
    scheduler = scheduler_of(server, token_file, kubeconfig, context, authority, insecure)
    if results and (server or snapshot or kubeconfig or context or own):
        fail("--results shows simulations: drop the options that name a cluster or a configuration")
    if importlib.util.find_spec("nicegui") is None:
        fail("the web UI needs packages that are not installed: pip install 'mooring[ui]'")
    try:
        if results:
            source = _results(results)
        elif scheduler is not None:
            source = _scheduler(scheduler)
        else:
            source = _cluster(own, kubeconfig, context, snapshot)
        asyncio.run(_serve(source, port, browser))
    except MooringError as error:
        fail(str(error))
    except KeyboardInterrupt:
        pass


def _results(folders: list[Path]) -> Any:
    from mooring.app.ui.folder_source import FolderSource

    return FolderSource(folders)


def _scheduler(given: Scheduler) -> Any:
    from mooring.app.ui.server_source import ServerSource

    found = asyncio.run(given.credentials())
    # A wrong address or token is said here, not in the browser.
    asyncio.run(running_scheduler.ask(found, f"{ROOT}/summary", {}))
    return ServerSource(found)


def _cluster(given: Configuration | None, kubeconfig: str, context: str, snapshot: Path | None) -> Any:
    from mooring.app.ui.snapshot_source import SnapshotSource

    own = given or configure()
    resources = own.resources()

    async def again() -> LiveCluster:
        if snapshot is not None:
            return snapshots.load(snapshot, resources)
        return await live_cluster.read(resources, kubeconfig, context)

    title = f"snapshot {snapshot.name}" if snapshot is not None else f"cluster {context}".strip()
    return SnapshotSource(title, read(own, kubeconfig, context, snapshot), own, again)


async def _serve(source: Any, port: int | None, browser: bool) -> None:
    from mooring.web.serving import serve

    def ready(address: str) -> None:
        line(f"Open {address}")
        line("It is served on this machine only. Ctrl-C stops it.")
        if browser:
            webbrowser.open(address)

    try:
        await serve(source, PORT if port is None else port, ready)
    except MooringError:
        if port is not None:
            raise
        await serve(source, 0, ready)
