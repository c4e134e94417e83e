"""The endpoints of a scheduler process: what they show of it, who may see it, and where they listen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from moorage.api.errors import Forbidden, MoorageError, NotFound
from moorage.api.pod import Pod
from moorage.api.resources import CONFIG_MAPS, PODS, Unstructured
from moorage.api.version import VERSION
from moorage.app.clock import SystemClock
from moorage.app.reloading import Reloader
from moorage.app.scheduler import Scheduler
from moorage.client.connection import connect, default_user_agent
from moorage.client.credentials import Credentials
from moorage.client.http_client import HttpClient
from moorage.config.types import API_VERSION, KIND
from moorage.config.wire import to_wire
from moorage.endpoints.client import EMULATED_VERSION
from moorage.endpoints.debugging import VERBOSITY, Debugging
from moorage.endpoints.health import Check, Health, ProcessView, application
from moorage.endpoints.loop_bridge import LoopBridge
from moorage.endpoints.v1.configuration import ConfigurationView
from moorage.endpoints.v1.routes import CONFIGURATION
from moorage.endpoints.v1.views import SchedulerViews
from moorage.run import metrics as process_metrics
from moorage.run.metrics import Exposition
from moorage.run.options import ServingOptions
from moorage.run.watchdog import Heart
from moorage.serving.access import Authenticator, Authorizer, Guard
from moorage.serving.certificates import Certificate, ServingCertificate
from moorage.serving.server import ServingThread
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

REFRESH_SECONDS = 10.0
"""Between two checks of the certificate files."""
CLIENT_CA = ("extension-apiserver-authentication", "kube-system", "client-ca-file")
LOOP_TOLERANCE = 30.0
"""Seconds without a heartbeat after which the process counts as dead."""


def process_view(
    scheduler: Scheduler,
    metrics: SchedulerMetrics,
    health: Health,
    *,
    started: float,
    leads: Callable[[], bool] = lambda: True,
    reloader: Reloader | None = None,
    flags: Mapping[str, str],
    without: frozenset[str] = frozenset(),
    writable: bool = False,
) -> ProcessView:
    """Return what the endpoints show of a scheduler. Call it on the scheduler's loop.

    `without` names metrics to leave out; `writable` allows changes of the configuration.
    """
    engine, bridge = scheduler.engine, LoopBridge(asyncio.get_running_loop())
    exposition = Exposition(
        metrics,
        lambda: process_metrics.refresh(metrics, engine, scheduler.recorder),
        lambda: _pods(scheduler),
        leads,
        health,
        bridge,
        without,
    )
    return ProcessView(
        health=health,
        metrics=exposition.metrics,
        resource_metrics=exposition.resource_metrics,
        slis=exposition.slis,
        config=lambda: _configz(scheduler, reloader),
        flags=flags,
        status=lambda: _status(scheduler, started, leads),
        views=SchedulerViews(scheduler, bridge, leads, lambda: reloader.outcome.generation if reloader else 1),
        configuration=ConfigurationView(scheduler, reloader, bridge, writable),
        debugging=Debugging(bridge) if scheduler.configuration.config.enable_profiling else None,
    )


def loop_check(heart: Heart) -> Check:
    """Return the check that the scheduling loop is alive."""

    def late() -> str:
        age = heart.age()
        return f"no heartbeat for {age:.0f}s" if age > LOOP_TOLERANCE else ""

    return Check("scheduling-loop", late)


def tasks_check(failure: Callable[[], str]) -> Check:
    """Return the check that every task that the process needs still runs. A process that lost one ends, but it may
    take a while to finish its bindings."""
    return Check("tasks", failure)


def _configz(scheduler: Scheduler, reloader: Reloader | None) -> dict[str, Any]:
    config = scheduler.configuration.config
    shown: dict[str, Any] = {"componentconfig": {"apiVersion": API_VERSION, "kind": KIND, **to_wire(config)}}
    shown[EMULATED_VERSION] = scheduler.configuration.behaviour.minor
    if reloader is not None:
        shown["reload"] = reloader.outcome.to_wire()
    return shown


def _pods(scheduler: Scheduler) -> list[Pod]:
    informer = scheduler.informers.informers[PODS]
    return [pod for pod in informer.objects.values() if isinstance(pod, Pod) and not pod.is_terminal]


def _status(scheduler: Scheduler, started: float, leads: Callable[[], bool]) -> dict[str, str]:
    """Return the content of /statusz."""
    return {
        "Started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "Up": f"{int(time.time() - started)}s",
        "Version": VERSION,
        "Compatible with": f"kube-scheduler {scheduler.configuration.behaviour.release}",
        "Profiles": " ".join(scheduler.engine.profiles),
        "Leads": "yes" if leads() else "no",
    }


class _App:
    """The guarded application, and the clients that are closed with it."""

    def __init__(self, app: Any, clients: list[HttpClient]) -> None:
        self._app = app
        self._clients = clients

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


class Endpoints:
    """The endpoints of one process, from `start` to `stop`."""

    def __init__(
        self,
        options: ServingOptions,
        process: ProcessView,
        reviewer: Credentials,
        authorizer: Credentials,
        on_refused: Callable[[str], None] = _log.warning,
        pair: Certificate | None = None,
    ) -> None:
        """`pair` is a certificate to use instead of the files in the options."""
        self._options = options
        self._process = process
        self._reviewer = reviewer
        self._authorizer = authorizer
        self._on_refused = on_refused
        self._certificate = ServingCertificate(
            cert_file=options.cert_file,
            key_file=options.key_file,
            cert_dir=options.cert_dir,
            host=options.bind_address,
            min_version=options.min_version,
            cipher_suites=options.cipher_suites,
            client_ca_file=options.client_ca_file,
            pair=pair,
        )
        self._thread = ServingThread(
            options.bind_address,
            options.port,
            self._certificate.context,
            self._make_app,
            (self._refresh, *(() if self._skips_lookup() else (self._look_up,))),
        )

    @property
    def port(self) -> int:
        return self._thread.port

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def _skips_lookup(self) -> bool:
        return self._options.skip_authentication or self._options.skip_client_ca_lookup

    async def _make_app(self) -> _App:
        """On the endpoints' own loop."""
        app, options, clock = application(self._process), self._options, SystemClock()
        if options.skip_authentication:
            _log.warning("Authentication is switched off: every client that reaches the endpoints may read them")
            return _App(Guard(app, authenticator=None, authorizer=None), [])
        reviewing = self._connect(self._reviewer, clock)
        authorizing = self._connect(self._authorizer, clock)
        guard = Guard(
            app,
            authenticator=Authenticator(reviewing, clock, options.token_cache_seconds),
            authorizer=Authorizer(authorizing, clock, options.allow_cache_seconds, options.deny_cache_seconds),
            always_allow=options.always_allow_paths,
            writable=[
                *([("POST", CONFIGURATION)] if options.configuration_changes else ()),
                *([("PUT", VERBOSITY)] if self._process.debugging is not None else ()),
            ],
        )
        return _App(guard, [reviewing, authorizing])

    def _connect(self, credentials: Credentials, clock: SystemClock) -> HttpClient:
        return connect(credentials, clock, qps=20, burst=50, user_agent=default_user_agent("endpoints"))

    # Background tasks on the endpoints' loop

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            self._certificate.refresh()

    async def _look_up(self) -> None:
        """Trust the cluster's client CA, so that users can authenticate with certificates of the cluster."""
        client = self._connect(self._reviewer, SystemClock())
        name, namespace, key = CLIENT_CA
        delay = 1.0
        try:
            while True:
                try:
                    found = await client.get(CONFIG_MAPS, name, namespace)
                    bundle = found.get("data", key, default="") if isinstance(found, Unstructured) else ""
                    if bundle:
                        self._certificate.trust_clients(bundle)
                    return
                except NotFound:
                    _log.warning("The cluster publishes no client CA; only tokens are accepted", map=name)
                    return
                except Forbidden as error:
                    self._refused(str(error))
                    return
                except MoorageError as error:
                    _log.warning("Cannot read the client CA yet", map=f"{namespace}/{name}", err=str(error))
                await asyncio.sleep(delay)
                delay = min(delay * 2, 60.0)
        finally:
            await client.close()

    def _refused(self, why: str) -> None:
        if self._options.tolerate_lookup_failure:
            _log.warning("Not allowed to read the client CA; only tokens are accepted", err=why)
            return
        self._on_refused(
            f"the client CA of the cluster cannot be read ({why}); bind the Role "
            "extension-apiserver-authentication-reader, or set --authentication-skip-lookup"
        )
