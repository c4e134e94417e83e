"""Puts an HTTP client together: credentials in, a client of that API server out."""

from __future__ import annotations

import platform
from importlib.metadata import version
from random import Random

from mooring.client.aiohttp_transport import AiohttpTransport
from mooring.client.credentials import Credentials
from mooring.client.http_client import Fence, HttpClient
from mooring.client.limiter import Limits
from mooring.client.observing import RequestObserver
from mooring.framework.ports import Clock

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
        limits=Limits(clock, qps, burst),
        user_agent=user_agent or default_user_agent(),
        fence=fence,
        observer=observer,
    )


def default_user_agent(component: str = "scheduler") -> str:
    """As audit logs and API priority rules see us: program, version, system, component."""
    system, machine = platform.system().lower(), platform.machine()
    return f"mooring/{version('mooring')} ({system}/{machine}) {component}"
