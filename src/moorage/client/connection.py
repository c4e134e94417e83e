"""From nothing to a client of an API server: finds the credentials to use (a kubeconfig that is named, or those of the
pod that we run in) and puts the HTTP client together."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from random import Random

from moorage.api.version import VERSION
from moorage.client import kubeconfig
from moorage.client.aiohttp_transport import AiohttpTransport
from moorage.client.credentials import Credentials, CredentialsError, Pem
from moorage.client.http_client import Fence, HttpClient, RequestObserver
from moorage.client.pacing import RateLimits
from moorage.framework.ports import Clock

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
        f"exist, and {HOST} is not set, so this is not a pod; pass a kubeconfig file"
    )


def in_cluster(environ: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT) -> Credentials:
    """Those of the service account of the pod that we run in. Two variables and two files are all there is,
    so no library is asked."""
    source = "service account of this pod"
    host, port = environ.get(HOST, ""), environ.get(PORT, "")
    if not host or not port:
        raise CredentialsError(
            f"{source}: {HOST} and {PORT} are not both set, so this is not a pod; pass a kubeconfig file"
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


QPS, BURST = 50.0, 100
"""What kube-scheduler's clientConnection has by default."""


def connect(
    credentials: Credentials,
    clock: Clock,
    *,
    qps: float = QPS,
    burst: int = BURST,
    user_agent: str = "",
    random: Random | None = None,
    fence: Fence | None = None,
    observer: RequestObserver | None = None,
) -> HttpClient:
    """A client that connects at its first request, on the loop where that happens; close it there too."""
    return HttpClient(
        AiohttpTransport(credentials, clock),
        clock,
        random or Random(),
        limits=RateLimits(clock, qps, burst),
        user_agent=user_agent or default_user_agent(),
        fence=fence,
        observer=observer,
    )


def default_user_agent(component: str = "scheduler") -> str:
    """As audit logs and API priority rules see us: program, version, system, component."""
    system, machine = platform.system().lower(), platform.machine()
    return f"moorage/{VERSION} ({system}/{machine}) {component}"
