"""`moorage snapshot`: writes the cluster, as the scheduler sees it, to a file."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.cli import options
from moorage.cli.options import configured, configured_as, read, scheduler_of
from moorage.cli.printing import fail, line


def snapshot(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="File to write; .gz is compressed.")] = Path(
        "cluster.json.gz"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    kubeconfig: options.Kubeconfig = "",
    context: options.Context = "",
    server: options.Server = "",
    token_file: options.TokenFile = None,
    authority: options.Authority = None,
    insecure: options.Insecure = False,
    annotations: options.Annotations = False,
    selector: Annotated[
        str, typer.Option("--selector", "-l", metavar="SELECTOR", help="Write only pods with these labels.")
    ] = "",
    node_selector: Annotated[
        str, typer.Option(metavar="SELECTOR", help="Write only nodes with these labels, and the pods on them.")
    ] = "",
    hash_names: Annotated[bool, typer.Option("--hash-names", help="Replace names of objects by hashes.")] = False,
    salt: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Gives the same hashes in several snapshots. Default: random, and not stored."
        ),
    ] = "",
    config: options.Config = None,
    profile: options.ProfileName = "",
    plugins: options.Plugins = None,
    plugin_path: options.PluginPath = None,
) -> None:
    """Read a cluster once and write what the scheduler sees to a file.

    The file has nodes, pods and every kind that the plugins of the configuration read. Secrets are not read;
    environment, commands and annotations of pods are left out. Nothing is changed: credentials that may list
    are enough. With --server, the file has what a running scheduler sees now. `moorage explain`, `what-if`
    and `up` read the file with --snapshot.
    """
    if hash_names and annotations:
        fail("--hash-names and --annotations exclude each other: annotations may contain names; drop one")
    if salt and not hash_names:
        fail("--salt needs --hash-names")
    if file.exists() and not force:
        fail(f"{file} exists; name another file, or replace this one with --force")
    salted = (salt or secrets.token_hex(16)) if hash_names else None
    scheduler = scheduler_of(server, token_file, kubeconfig, context, authority, insecure)
    given = configured(config, profile, plugins, plugin_path)
    try:
        own = configured_as(given, scheduler)
        cluster = read(own, kubeconfig, context, None, scheduler, annotations)
        if selector or node_selector:
            cluster = cluster.selected(selector, node_selector)
        taken = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        snapshots.save(cluster, file, taken=taken, annotations=annotations, salt=salted)
    except MoorageError as error:
        fail(str(error))
    counts = ", ".join(f"{len(objects)} {kind}" for kind, objects in cluster.objects.items() if objects)
    line(f"{file}: {counts}")
