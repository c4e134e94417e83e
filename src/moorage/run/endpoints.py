"""Joins a process and its endpoints: what they show, who may see it, and where they listen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from moorage.api.errors import Forbidden, MoorageError, NotFound
from moorage.api.pod import Pod
from moorage.api.resources import Resource, Unstructured
from moorage.api.version import VERSION
from moorage.app.clock import SystemClock
from moorage.client.connection import connect, default_user_agent
from moorage.client.credentials import Credentials
from moorage.client.http_client import HttpClient
from moorage.endpoints.health import Health, Inside, application
from moorage.endpoints.loop_bridge import LoopDoor, NotNow
from moorage.endpoints.v1 import configuration_routes
from moorage.run import gauges
from moorage.run.options import ServingOptions
from moorage.serving.access import Authenticator, Authorizer, Guard
from moorage.serving.certificates import Certificate, ServingCertificate
from moorage.serving.server import ServingThread
from moorage.telemetry import logs
from moorage.telemetry.instruments import Exposed
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

REFRESH_SECONDS = 10.0
"""Between two looks at the certificate files."""
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True, Unstructured)
CLIENT_CA = ("extension-apiserver-authentication", "kube-system", "client-ca-file")


class Exposition:
    """The texts of /metrics, /metrics/resources and /metrics/slis."""

    def __init__(
        self,
        metrics: SchedulerMetrics,
        refresh: Callable[[], None],
        pods: Callable[[], list[Pod]],
        leads: Callable[[], bool],
        health: Health,
        door: LoopDoor,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._refresh = refresh
        self._pods = pods
        self._leads = leads
        self._health = health
        self._door = door
        self._registry = CollectorRegistry()
        self._registry.register(Exposed(metrics.families(), without))

    async def metrics(self) -> bytes:
        """A loop that is blocked leaves the gauges as they were; the rest is current. prometheus-client's own
        registry has the process, and what plugins measure."""
        try:
            await self._door.ask(self._refresh)
        except NotNow:
            _log.info(2, "Metrics without fresh gauges: the scheduling loop does not answer")
        return generate_latest(self._registry) + generate_latest(REGISTRY)

    async def resource_metrics(self) -> bytes:
        if not self._leads():
            return b""
        pods = await self._door.ask(self._pods)
        return _text(_PodResources(pods))

    def slis(self) -> bytes:
        return _text(_HealthResults(self._health))


def _text(collector: Collector) -> bytes:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry)


class _PodResources(Collector):
    def __init__(self, pods: list[Pod]) -> None:
        self._pods = pods

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        labels = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
        request = GaugeMetricFamily(
            "kube_pod_resource_request",
            "[STABLE] What the pods of the cluster request, as the scheduler reckons it.",
            labels=labels,
        )
        limit = GaugeMetricFamily(
            "kube_pod_resource_limit", "[STABLE] What the pods of the cluster may use at most.", labels=labels
        )
        for pod in self._pods:
            who = (pod.namespace, pod.name, pod.spec.node_name, pod.scheduler_name, str(pod.priority))
            for kind, resource, unit, amount in gauges.pod_resources(pod):
                (request if kind == "request" else limit).add_metric((*who, resource, unit), amount)
        yield request
        yield limit


class _HealthResults(Collector):
    def __init__(self, health: Health) -> None:
        self._health = health

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        last = GaugeMetricFamily(
            "kubernetes_healthcheck", "[STABLE] Result of the last run of a check.", labels=("name", "type")
        )
        for endpoint, name, value in self._health.samples():
            last.add_metric((name, endpoint), value)
        counted = CounterMetricFamily(
            "kubernetes_healthchecks",
            "[STABLE] Results of all runs of a check.",
            labels=("name", "status", "type"),
        )
        for (endpoint, name, status), count in sorted(self._health.counted.items()):
            counted.add_metric((name, status, endpoint), count)
        yield last
        yield counted


class _App:
    """The guarded application, and the connections that it closes at its end."""

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
        inside: Inside,
        reviewer: Credentials,
        authorizer: Credentials,
        on_refused: Callable[[str], None] = _log.warning,
        pair: Certificate | None = None,
    ) -> None:
        """`pair`: a certificate that is at hand, instead of those that the options name."""
        self._options = options
        self._inside = inside
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
        app, options, clock = application(self._inside), self._options, SystemClock()
        if options.skip_authentication:
            _log.warning(
                "The endpoints are open to every caller that reaches them: authentication is switched off"
            )
            return _App(Guard(app, authenticator=None, authorizer=None), [])
        reviewing = self._connect(self._reviewer, clock)
        authorizing = self._connect(self._authorizer, clock)
        guard = Guard(
            app,
            authenticator=Authenticator(reviewing, clock, options.token_cache_seconds),
            authorizer=Authorizer(
                authorizing, clock, options.allow_cache_seconds, options.deny_cache_seconds
            ),
            always_allow=options.always_allow_paths,
            writable=(configuration_routes.PATH,) if options.configuration_changes else (),
        )
        return _App(guard, [reviewing, authorizing])

    def _connect(self, credentials: Credentials, clock: SystemClock) -> HttpClient:
        return connect(credentials, clock, qps=20, burst=50, user_agent=default_user_agent("endpoints"))

    # Chores of the endpoints' loop.

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            self._certificate.refresh()

    async def _look_up(self) -> None:
        """The cluster's client CA: with it, people with a certificate of the cluster may look."""
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
                    _log.warning(
                        "The cluster has no client CA for endpoints; only tokens are accepted", map=name
                    )
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
            _log.warning("The client CA may not be read; only tokens are accepted", err=why)
            return
        self._on_refused(
            f"the client CA of the cluster cannot be read ({why}); bind the Role "
            "extension-apiserver-authentication-reader, or set --authentication-skip-lookup"
        )


def status_page(
    started: float, profiles: Iterable[str], leads: Callable[[], bool]
) -> Callable[[], dict[str, str]]:
    """What /statusz shows."""

    def page() -> dict[str, str]:
        return {
            "Started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "Up": f"{int(time.time() - started)}s",
            "Version": VERSION,
            "Behaviour of": f"kube-scheduler {gauges.VERSION}",
            "Profiles": " ".join(profiles),
            "Leads": "yes" if leads() else "no",
        }

    return page
