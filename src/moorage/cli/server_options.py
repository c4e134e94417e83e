"""The options of commands that ask a running scheduler: which one, and as whom."""

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
        help="The endpoints of a running `moorage run` or `moorage up`: what it knows and has decided.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A token for --server; without, the user of the kubeconfig."),
]
Authority = Annotated[
    Path | None,
    typer.Option(
        "--certificate-authority",
        metavar="FILE",
        help="Who signed the certificate of --server; without, the authority of the kubeconfig.",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure-skip-tls-verify", help="Do not check who answers at --server."),
]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Which scheduler to ask, and as whom."""

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
    """None without --server."""
    if server:
        return Scheduler(server, token_file, kubeconfig, context, authority, insecure)
    if token_file or authority or insecure:
        fail("--token-file, --certificate-authority and --insecure-skip-tls-verify belong to --server")
    return None
