"""`mooring ui`: the cluster in a browser: which pods wait, why, and what would help."""

from __future__ import annotations

import asyncio
import importlib.util
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from mooring.api.errors import MooringError
from mooring.app import live_cluster, snapshots
from mooring.app.configuring import Configuration, configure
from mooring.app.live_cluster import LiveCluster
from mooring.cli.printing import fail, line
from mooring.cli.profile_options import Config, PluginPath, Plugins, ProfileName, configured
from mooring.cli.sources import Context, Kubeconfig, SnapshotFile, read

PORT = 7480
"""Beside the API server of `mooring up`; a free one where it is taken."""


def ui(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    snapshot: SnapshotFile = None,
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
    once and judged in memory, and nothing is written. Serves on this machine only; the address that is
    printed carries a token without which there is nothing to see.
    """
    if importlib.util.find_spec("nicegui") is None:
        fail("the web UI needs packages that are not installed: pip install 'mooring[ui]'")
    own = configured(config, profile, plugins, plugin_path) or configure()
    try:
        source = _cluster(own, kubeconfig, context, snapshot)
        asyncio.run(_serve(source, port, browser))
    except MooringError as error:
        fail(str(error))
    except KeyboardInterrupt:
        pass


def _cluster(own: Configuration, kubeconfig: str, context: str, snapshot: Path | None) -> Any:
    from mooring.app.ui.snapshot_source import SnapshotSource

    resources = live_cluster.resources_of(own)

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
