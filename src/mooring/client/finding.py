"""Finds the credentials to use: a kubeconfig that somebody named, or those of the pod that we run in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mooring.client import kubeconfig
from mooring.client.credentials import Credentials, CredentialsError, Pem

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


async def find(path: str = "", context: str = "", environ: Mapping[str, str] = os.environ) -> Credentials:
    """The credentials to use: from the file that is named, else from KUBECONFIG, else those of the pod that
    we run in, else from ~/.kube/config. `context` selects another one than the current."""
    named = path or environ.get("KUBECONFIG", "")
    if named:
        return await kubeconfig.load(named, context)
    if environ.get(HOST):
        return in_cluster(environ)
    default = Path.home() / ".kube" / "config"
    if default.is_file():
        return await kubeconfig.load(str(default), context)
    raise CredentialsError(
        f"no credentials for an API server: --kubeconfig and KUBECONFIG are not set, {default} does not "
        f"exist, and {HOST} is not set, so this is no pod; name a kubeconfig file"
    )


def in_cluster(environ: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT) -> Credentials:
    """Those of the service account of the pod that we run in. Two variables and two files are all there is,
    so no library is asked."""
    source = "service account of this pod"
    host, port = environ.get(HOST, ""), environ.get(PORT, "")
    if not host or not port:
        raise CredentialsError(
            f"{source}: {HOST} and {PORT} are not both set; this is no pod, so name a kubeconfig file"
        )
    for file in (directory / "token", directory / "ca.crt"):
        if not file.is_file() or not file.stat().st_size:
            raise CredentialsError(
                f"{source}: {file} is missing or empty; "
                "set automountServiceAccountToken in the pod, or name a kubeconfig file"
            )
    return Credentials(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        source=source,
        ca=Pem(path=str(directory / "ca.crt")),
        token_file=str(directory / "token"),
        namespace=_namespace(directory / "namespace"),
    )


def _namespace(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
