"""The metrics of a process: gauges that are read from the scheduler on request, constants such as the
version, the requests of the API client, and the text of /metrics, /metrics/resources and /metrics/slis."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import msgspec
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from moorage.api.pod import Container, Pod
from moorage.api.requests import pod_requests
from moorage.api.version import VERSION as MOORAGE_VERSION
from moorage.client.events import ApiEventRecorder
from moorage.config.gates import FeatureGates
from moorage.endpoints.health import Health
from moorage.endpoints.loop_bridge import LoopBridge, NotNow
from moorage.scheduler.engine import Engine
from moorage.telemetry import logs
from moorage.telemetry.instruments import Exposed
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)


def refresh(metrics: SchedulerMetrics, engine: Engine, recorder: ApiEventRecorder) -> None:
    """Copy the present figures of the engine into the gauges."""
    metrics.waiting(engine.queue.pending.counts())
    metrics.unschedulable.replace(engine.queue.pending.rejections().items())
    metrics.inflight.replace(((event,), count) for event, count in engine.queue.pending.inflight_events().items())
    assumed = sum(1 for _ in engine.cache.assumed())
    sizes = {"nodes": len(engine.cache.table), "pods": len(engine.cache), "assumed_pods": assumed}
    metrics.cache_size.replace(((kind,), count) for kind, count in sizes.items())
    metrics.goroutines.replace([(("binding",), len(engine.bindings))])
    metrics.corrections.replace(((kind,), count) for kind, count in engine.cache.corrections.items())
    metrics.events_dropped.child().value = recorder.dropped


def describe(metrics: SchedulerMetrics, gates: FeatureGates) -> None:
    """Set the metrics of the version and the feature gates."""
    system = f"{platform.system().lower()}/{platform.machine()}"
    behaviour = gates.behaviour
    version = f"{behaviour.release}+moorage-{MOORAGE_VERSION}"
    python = f"python{platform.python_version()}"
    labels = ("", platform.python_implementation(), "", "", version, python, *behaviour.minor.split("."), system)
    metrics.build.set(*labels, to=1)
    for name, gate in gates.known.items():
        stage = {"ga": "", "beta": "BETA", "alpha": "ALPHA"}[gate.stage]
        metrics.features.set(name, stage, to=1 if gates(name) else 0)


UNITS = {"cpu": "cores", "memory": "bytes", "ephemeral-storage": "bytes"}


def pod_resources(pod: Pod) -> Iterator[tuple[str, str, str, float]]:
    """Yield (kind, resource, unit, amount) for the requests and limits of a pod."""
    for kind, amounts in (("request", pod_requests(pod)), ("limit", _limits(pod))):
        for resource, amount in amounts.items():
            if amount:
                yield kind, resource, _unit(resource), amount / 1000 if resource == "cpu" else float(amount)


def _limits(pod: Pod) -> dict[str, int]:
    """Return the limits of a pod; they are summed over containers like requests."""
    replace = msgspec.structs.replace

    def limited(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(one, resources=replace(one.resources, requests=one.resources.limits)) for one in containers
        )

    whole = pod.spec.resources
    spec = replace(
        pod.spec,
        containers=limited(pod.spec.containers),
        init_containers=limited(pod.spec.init_containers),
        resources=replace(whole, requests=whole.limits) if whole is not None else None,
        overhead={},
    )
    return pod_requests(replace(pod, spec=spec), use_status=False)


def _unit(resource: str) -> str:
    return UNITS.get(resource) or ("bytes" if resource.startswith("hugepages-") else "integer")


class RequestMeter:
    """Implements `client.http_client.RequestObserver` for one API server."""

    def __init__(self, metrics: SchedulerMetrics, server: str) -> None:
        self._metrics = metrics
        self._host = urlsplit(server).netloc

    def answered(self, verb: str, method: str, code: str, seconds: float) -> None:
        self._metrics.requests.inc(code, method, self._host)
        self._metrics.request_seconds.observe(seconds, verb, self._host)

    def waited(self, verb: str, seconds: float) -> None:
        self._metrics.limiter_seconds.observe(seconds, verb, self._host)

    def repeated(self, verb: str, method: str, code: str) -> None:
        self._metrics.retries.inc(code, verb, self._host)


class Exposition:
    """The texts of /metrics, /metrics/resources and /metrics/slis."""

    def __init__(
        self,
        metrics: SchedulerMetrics,
        refresh: Callable[[], None],
        pods: Callable[[], list[Pod]],
        leads: Callable[[], bool],
        health: Health,
        bridge: LoopBridge,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._refresh = refresh
        self._pods = pods
        self._leads = leads
        self._health = health
        self._bridge = bridge
        self._registry = CollectorRegistry()
        self._registry.register(Exposed(metrics.families(), without))

    async def metrics(self) -> bytes:
        """Return all metrics. If the scheduling loop is blocked, its gauges keep their last values. The
        registry of prometheus-client adds the metrics of the process and of plugins."""
        try:
            await self._bridge.call(self._refresh)
        except NotNow:
            _log.info(2, "Gauges are out of date: the scheduling loop does not answer")
        return generate_latest(self._registry) + generate_latest(REGISTRY)

    async def resource_metrics(self) -> bytes:
        if not self._leads():
            return b""
        pods = await self._bridge.call(self._pods)
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
            "[STABLE] Resources requested by pods, as the scheduler accounts for them.",
            labels=labels,
        )
        limit = GaugeMetricFamily(
            "kube_pod_resource_limit",
            "[STABLE] Resource limits of pods, as the scheduler accounts for them.",
            labels=labels,
        )
        for pod in self._pods:
            who = (pod.namespace, pod.name, pod.spec.node_name, pod.scheduler_name, str(pod.priority))
            for kind, resource, unit, amount in pod_resources(pod):
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
            "kubernetes_healthcheck",
            "[STABLE] Result of the last run of a health check: 1 for success, 0 for failure.",
            labels=("name", "type"),
        )
        for endpoint, name, value in self._health.samples():
            last.add_metric((name, endpoint), value)
        counted = CounterMetricFamily(
            "kubernetes_healthchecks",
            "[STABLE] Results of all runs of a health check.",
            labels=("name", "status", "type"),
        )
        for (endpoint, name, status), count in sorted(self._health.counted.items()):
            counted.add_metric((name, status, endpoint), count)
        yield last
        yield counted
