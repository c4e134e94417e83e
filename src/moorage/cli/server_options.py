"""Options of commands that ask a running scheduler: its address, and the credentials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from moorage.api.resources import Resource
from moorage.app.configuration import Configuration
from moorage.cli.printing import fail
from moorage.client.credentials import Credentials
from moorage.endpoints import client
from moorage.snapshots.cluster import ClusterObjects

Server = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Endpoints of a running `moorage run` or `moorage up`, to use its state and decisions.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Token for --server. Default: the user of the kubeconfig."),
]
Authority = Annotated[
    Path | None,
    typer.Option(
        "--certificate-authority",
        metavar="FILE",
        help="Authority of the certificate of --server. Default: that of the kubeconfig.",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure-skip-tls-verify", help="Do not verify the certificate of --server."),
]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The scheduler to ask, and the credentials."""

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

    async def configuration(self) -> Configuration:
        return await client.configuration(await self.credentials())

    async def cluster(self, resources: Iterable[Resource], annotations: bool) -> ClusterObjects:
        return await client.cluster(await self.credentials(), resources, annotations)


def scheduler_of(
    server: str,
    token_file: Path | None,
    kubeconfig: str,
    context: str,
    authority: Path | None,
    insecure: bool,
) -> Scheduler | None:
    """Return None without --server."""
    if server:
        return Scheduler(server, token_file, kubeconfig, context, authority, insecure)
    if token_file or authority or insecure:
        fail("--token-file, --certificate-authority and --insecure-skip-tls-verify need --server")
    return None
