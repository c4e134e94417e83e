"""Options that commands share: which configuration, which cluster and which running scheduler to use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.api.resources import Resource
from moorage.api.versions import BEHAVIOURS, DEFAULT_VERSION, behaviour_of
from moorage.app.configuration import Configuration, configure, configure_file, find_plugin, plugin_folders
from moorage.cli import completing
from moorage.cli.printing import current_folder, fail, line
from moorage.client.credentials import Credentials
from moorage.endpoints import client
from moorage.snapshots.cluster import ClusterObjects, read_cluster

Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration (default: the default profile).")
]
ProfileName = Annotated[
    str, typer.Option("--profile", metavar="NAME", help="The schedulerName in --config (default: the first).")
]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", metavar="MODULE:CLASS", help="Register a plugin by its name. Repeatable."),
]
PluginPath = Annotated[
    list[str] | None,
    typer.Option(metavar="DIR", help="Where to look for module:Class (default: the current folder). Repeatable."),
]
Kubeconfig = Annotated[
    str, typer.Option(metavar="FILE", help="The kubeconfig of the cluster (default: as kubectl finds it).")
]
Context = Annotated[
    str, typer.Option(metavar="NAME", help="The context in the kubeconfig.", autocompletion=completing.contexts)
]
SnapshotFile = Annotated[
    Path | None,
    typer.Option(
        "--snapshot",
        metavar="FILE",
        help="A file of `moorage snapshot` instead of a live cluster, or a recording of `moorage record` at its end.",
    ),
]
Annotations = Annotated[bool, typer.Option("--annotations", help="Keep annotations; some plugins read theirs.")]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Default: the namespace of the kubeconfig.")
]
Server = Annotated[str, typer.Option(metavar="URL", help="The endpoints of a running `moorage run` or `moorage up`.")]
TokenFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A token for --server (default: the user of the kubeconfig).")
]
Authority = Annotated[
    Path | None,
    typer.Option(
        "--certificate-authority",
        metavar="FILE",
        help="The authority of the certificate of --server (default: that of the kubeconfig).",
    ),
]
NoExtenders = Annotated[bool, typer.Option("--no-extenders", help="Do not call the extenders of the configuration.")]
EmulatedVersion = Annotated[
    str,
    typer.Option(
        "--emulated-version",
        metavar="VERSION",
        help=f"Answer as kube-scheduler of this version: {' or '.join(BEHAVIOURS)} (default: {DEFAULT_VERSION}).",
    ),
]
Insecure = Annotated[
    bool, typer.Option("--insecure-skip-tls-verify", help="Do not verify the certificate of --server.")
]


def configured(
    config: Path | None,
    profile: str,
    plugins: list[str] | None,
    plugin_path: list[str] | None,
    emulated_version: str = "",
    *,
    extenders: bool | None = None,
) -> Configuration | None:
    """Read the configuration, with one profile; None for the default of the command."""
    if config is None:
        check_version(emulated_version)
        if profile or plugins or plugin_path:
            fail("--profile, --plugin and --plugin-path need --config")
        return None
    return configured_by(config, profile, plugins, plugin_path, emulated_version, extenders=extenders)


def check_version(emulated_version: str) -> None:
    """End the command if the version is not one that Moorage can follow."""
    try:
        behaviour_of(emulated_version)
    except MoorageError as error:
        fail(f"--emulated-version: {error}")


def configured_by(
    config: Path,
    profile: str,
    plugins: list[str] | None,
    plugin_path: list[str] | None,
    emulated_version: str = "",
    *,
    extenders: bool | None = None,
) -> Configuration:
    """Read the configuration of a file, with one profile. `extenders` is whether the command calls them: True, False
    if the user has left them out, None if it cannot."""
    check_version(emulated_version)
    try:
        return load_configuration(config, profile, plugins, plugin_path, emulated_version, extenders=extenders)
    except MoorageError as error:
        fail(str(error))


def load_configuration(
    config: Path,
    profile: str,
    plugins: list[str] | None,
    plugin_path: list[str] | None,
    emulated_version: str = "",
    *,
    extenders: bool | None = None,
) -> Configuration:
    """Do the same, and raise a MoorageError if it cannot be used."""
    folders = plugin_folders(plugin_path) if plugin_path else current_folder()
    named = [find_plugin(reference, folders) for reference in plugins or ()]
    found = configure_file(config, plugins=named, folders=folders, emulated_version=emulated_version)
    found = found.without_extenders() if extenders is False else found
    return found.with_one_profile(profile, extenders=extenders is not None)


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    """A running scheduler, and the credentials for it."""

    server: str
    token_file: Path | None
    kubeconfig: str
    context: str
    authority: Path | None
    insecure: bool

    async def credentials(self) -> Credentials:
        return await client.credentials(
            self.server,
            token_file=str(self.token_file or ""),
            kubeconfig=self.kubeconfig,
            context=self.context,
            authority=str(self.authority or ""),
            verify=not self.insecure,
        )

    async def configuration(self, emulated_version: str = "") -> Configuration:
        return await client.configuration(await self.credentials(), emulated_version)

    async def cluster(self, resources: Iterable[Resource], annotations: bool) -> ClusterObjects:
        return await client.cluster(await self.credentials(), resources, annotations)


def scheduler_of(
    server: str, token_file: Path | None, kubeconfig: str, context: str, authority: Path | None, insecure: bool
) -> RunningScheduler | None:
    """Return the scheduler of --server; None without the option."""
    if server:
        return RunningScheduler(server, token_file, kubeconfig, context, authority, insecure)
    if token_file or authority or insecure:
        fail("--token-file, --certificate-authority and --insecure-skip-tls-verify need --server")
    return None


def configured_as(
    own: Configuration | None, scheduler: RunningScheduler | None, emulated_version: str = ""
) -> Configuration:
    """Return the configuration of the user, else that of the scheduler, else the default one. A running scheduler says
    itself which version it emulates, unless another is asked for."""
    if own is None and scheduler is not None:
        return asyncio.run(scheduler.configuration(emulated_version))
    return own or configure(emulated_version=emulated_version)


def read(
    configured: Configuration,
    kubeconfig: str,
    context: str,
    snapshot: Path | None,
    scheduler: RunningScheduler | None = None,
    annotations: bool = True,
    also: Iterable[Resource] = (),
) -> ClusterObjects:
    """Read the objects of the cluster once, with those of `also`; warn about kinds that cannot be read."""
    if snapshot is not None and (kubeconfig or context or scheduler):
        fail("--snapshot excludes --kubeconfig, --context and --server")
    resources = [*configured.resources(), *also]
    if scheduler is not None:
        cluster = asyncio.run(scheduler.cluster(resources, annotations))
    elif snapshot is not None:
        cluster = from_file(snapshot, resources)
    else:
        cluster = asyncio.run(read_cluster(resources, kubeconfig, context))
    warn(cluster.gaps(configured))
    return cluster


def from_file(path: Path, resources: Iterable[Resource]) -> ClusterObjects:
    """Return the cluster of a snapshot, or of a recording when it ends."""
    if ".jsonl" not in path.suffixes:
        return snapshots.load(path, resources)
    from moorage.sim.last_state import last_state  # simulations take a while to import

    return last_state(path, resources)


def warn(gaps: Iterable[str]) -> None:
    """Print what may make answers wrong."""
    for gap in gaps:
        line(f"Warning: {gap}", style="yellow", stderr=True)
