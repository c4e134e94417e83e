"""`moorage ui`: the web UI for a cluster, a snapshot, a running scheduler, or simulation results."""

from __future__ import annotations

import asyncio
import importlib.util
import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration, configure
from moorage.cli import options
from moorage.cli.options import configured, from_file, read, scheduler_of
from moorage.cli.printing import fail, line
from moorage.client.connection import find
from moorage.client.credentials import Credentials
from moorage.endpoints import client
from moorage.endpoints.answers import SummaryAnswer
from moorage.endpoints.queries import ROOT
from moorage.snapshots.cluster import ClusterObjects, read_cluster
from moorage.web.guard import address, new_token, take_port


def ui(
    server: options.Server = "",
    token_file: options.TokenFile = None,
    authority: options.Authority = None,
    insecure: options.Insecure = False,
    kubeconfig: options.Kubeconfig = "",
    context: options.Context = "",
    snapshot: options.SnapshotFile = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="Folder of `moorage simulate --output-dir` with results to compare. Repeatable."
        ),
    ] = None,
    config: options.Config = None,
    profile: options.ProfileName = "",
    plugins: options.Plugins = None,
    plugin_path: options.PluginPath = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="With --server: show everything, change nothing.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="0 for any free port. Default: 7480, or a free port.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Show a cluster in the browser: which pods are pending and why, and what would help.

    Works with any cluster, even without Moorage, and with a file of `moorage snapshot`: the objects are read
    once and evaluated in memory. With --server it shows a running scheduler live; with --results it compares
    simulations. Only the objects and the configuration of a `moorage up` can be changed. The pages are served
    on this machine only, and the printed address contains a token that is needed to open them.
    """
    own = configured(config, profile, plugins, plugin_path)
    if server and (snapshot is not None or own is not None):
        fail("--server shows a running scheduler: drop --snapshot, and --config with its options")
    if read_only and not server:
        fail("--read-only needs --server: without it nothing can be changed")
    scheduler = scheduler_of(server, token_file, kubeconfig, context, authority, insecure)
    if results and (server or snapshot or kubeconfig or context or own):
        fail("--results shows simulations: drop the options that name a cluster or a configuration")
    if importlib.util.find_spec("nicegui") is None:
        fail("the web UI needs packages that are not installed: pip install 'moorage[ui]'")
    try:
        if results:
            source = _results(results)
        elif scheduler is not None:
            source = _scheduler(scheduler, read_only)
        else:
            source = _cluster(own, kubeconfig, context, snapshot)
        asyncio.run(_serve(source, port, browser))
    except MoorageError as error:
        fail(str(error))
    except KeyboardInterrupt:
        pass


def _results(folders: list[Path]) -> Any:
    from moorage.web.sources.folder_source import FolderSource

    return FolderSource(folders)


def _scheduler(given: options.RunningScheduler, read_only: bool) -> Any:
    from moorage.web.sources.embedded_source import EmbeddedSource, api_objects, embedded_cluster
    from moorage.web.sources.node_columns import UsageColumns
    from moorage.web.sources.server_source import ServerSource

    found = asyncio.run(given.credentials())
    # Report a wrong address or token here, not in the browser.
    asyncio.run(client.ask(found, f"{ROOT}/summary", SummaryAnswer))
    measures = not given.token_file or given.kubeconfig or given.context
    usage = UsageColumns(partial(find, given.kubeconfig, given.context)) if measures else None
    own = None if given.token_file else asyncio.run(embedded_cluster(given.kubeconfig, given.context))
    if own is None:
        return ServerSource(found, usage=usage, read_only=read_only)
    server, first = own
    return EmbeddedSource(found, api_objects(server), first, usage=usage, read_only=read_only)


def _cluster(given: Configuration | None, kubeconfig: str, context: str, snapshot: Path | None) -> Any:
    from moorage.web.sources.node_columns import UsageColumns
    from moorage.web.sources.snapshot_source import SnapshotSource

    own = given or configure()
    resources = own.resources()

    async def again() -> ClusterObjects:
        if snapshot is not None:
            return from_file(snapshot, resources)
        return await read_cluster(resources, kubeconfig, context)

    cluster = read(own, kubeconfig, context, snapshot)
    if snapshot is not None:
        return SnapshotSource(f"snapshot {snapshot.name}", cluster, own, again)
    usage = UsageColumns(partial(find, kubeconfig, context))
    return SnapshotSource(title_of(asyncio.run(find(kubeconfig, context))), cluster, own, again, usage)


def title_of(server: Credentials) -> str:
    """Return the name of a cluster in the header of its pages."""
    return f"context {server.context}, {server.server}" if server.context else f"cluster at {server.server}"


async def _serve(source: Any, port: int | None, browser: bool) -> None:
    from moorage.web.serving import serve

    listening, token = take_port(port), new_token()

    def ready() -> None:
        where = address(listening, token)
        line(f"Open {where}")
        line("The pages are served on this machine only. Ctrl-C stops the server.")
        if browser:
            webbrowser.open(where)

    await serve(source, listening, token, ready)
