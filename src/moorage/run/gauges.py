"""What the process adds to the metrics: gauges that are read off the scheduler on its own loop when they are
asked for, what never changes, and the requests of the API client as client-go counts them.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from moorage.api.pod import Container, Pod
from moorage.api.requests import pod_requests
from moorage.api.version import VERSION as MOORAGE_VERSION
from moorage.client.events import ApiEventRecorder
from moorage.config.gates import GATES, FeatureGates
from moorage.scheduler.engine import Engine
from moorage.telemetry.metrics import SchedulerMetrics

MAJOR, MINOR, VERSION = "1", "36", "v1.36.4"
"""The kube-scheduler whose behaviour this is."""


def refresh(metrics: SchedulerMetrics, engine: Engine, recorder: ApiEventRecorder) -> None:
    """Take over what the engine has now."""
    metrics.pending.replace(((queue,), count) for queue, count in engine.queue.pending.counts().items())
    metrics.unschedulable.replace(engine.queue.pending.rejections().items())
    metrics.inflight.replace(
        ((event,), count) for event, count in engine.queue.pending.inflight_events().items()
    )
    assumed = sum(1 for _ in engine.cache.assumed())
    sizes = {"nodes": len(engine.cache.table), "pods": len(engine.cache), "assumed_pods": assumed}
    metrics.cache_size.replace(((kind,), count) for kind, count in sizes.items())
    metrics.goroutines.replace([(("binding",), len(engine.bindings))])
    metrics.corrections.replace(((kind,), count) for kind, count in engine.cache.corrections.items())
    metrics.events_dropped.child().value = recorder.dropped


def describe(metrics: SchedulerMetrics, gates: FeatureGates) -> None:
    """Version and feature gates."""
    system = f"{platform.system().lower()}/{platform.machine()}"
    version = f"{VERSION}+moorage-{MOORAGE_VERSION}"
    python = f"python{platform.python_version()}"
    labels = ("", platform.python_implementation(), "", "", version, python, MAJOR, MINOR, system)
    metrics.build.set(*labels, to=1)
    for name, gate in GATES.items():
        stage = {"ga": "", "beta": "BETA", "alpha": "ALPHA"}[gate.stage]
        metrics.features.set(name, stage, to=1 if gates(name) else 0)


UNITS = {"cpu": "cores", "memory": "bytes", "ephemeral-storage": "bytes"}


def pod_resources(pod: Pod) -> Iterator[tuple[str, str, str, float]]:
    """(kind, resource, unit, amount) of a pod: what it requests and what limits it."""
    for kind, amounts in (("request", pod_requests(pod)), ("limit", _limits(pod))):
        for resource, amount in amounts.items():
            if amount:
                yield kind, resource, _unit(resource), amount / 1000 if resource == "cpu" else float(amount)


def _limits(pod: Pod) -> dict[str, int]:
    """Limits add up over containers as requests do."""
    replace = msgspec.structs.replace

    def limited(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(one, resources=replace(one.resources, requests=one.resources.limits))
            for one in containers
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
