"""OpenTelemetry traces: one span per attempt with its extension points, and one per write to the API server.

Tracing is off unless the standard environment variables name an exporter; it then needs the extra `otel`.
Times are those of the meters. An attempt belongs to the trace in the pod's annotation `traceparent`, if
present. Sampling is decided once, when the attempt starts; unsampled attempts record nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from moorage.telemetry import logs
from moorage.telemetry.metrics import SUCCESS, Plugins, ProfileMeter, SchedulerMetrics

NAME = "moorage"
DEFAULT_RATIO = 0.01
"""Share of sampled attempts without a `traceparent` if OTEL_TRACES_SAMPLER is not set."""
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

T = TypeVar("T")
_log = logs.get(__name__)


class Tracing:
    """The spans of one scheduler.

    `provider` is a TracerProvider of the OpenTelemetry SDK. `now` and `wall` are clocks in seconds; `now` is
    the clock of the meters.
    """

    def __init__(self, provider: Any, now: Callable[[], float], wall: Callable[[], float]) -> None:
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer(NAME)
        self._now, self._wall = now, wall
        self._context, self._trace = context, trace
        self._extract = TraceContextTextMapPropagator().extract

    async def attempt(
        self,
        work: Awaitable[T],
        annotations: Mapping[str, str],
        attributes: Mapping[str, Any],
        outcome: Callable[[], Mapping[str, Any]],
    ) -> T:
        """Run an attempt in a span, which also covers what the attempt starts, such as the binding.

        `outcome` returns the attributes that are known afterwards.
        """
        parent = self._extract(annotations) if "traceparent" in annotations else self._context.Context()
        span = self._tracer.start_span(
            "attempt", parent, attributes=dict(attributes), start_time=_nanoseconds(self._wall())
        )
        token = self._context.attach(self._trace.set_span_in_context(span, parent))
        try:
            return await work
        finally:
            self._context.detach(token)
            if span.is_recording():
                try:
                    span.set_attributes(dict(outcome()))
                except Exception as error:  # an error in a span must not stop the scheduler
                    _log.error("Cannot add the outcome to a span", error=error, stack=True)
            span.end(_nanoseconds(self._wall()))

    def point(self, name: str, since: float, until: float, status: str) -> None:
        """Add a span for an extension point of the current attempt."""
        if not self._is_sampled():
            return
        offset = self._wall() - self._now()
        span = self._tracer.start_span(
            name, start_time=_nanoseconds(since + offset), attributes={"moorage.status": status}
        )
        span.end(end_time=_nanoseconds(until + offset))

    @contextmanager
    def write(self, name: str, attributes: Mapping[str, Any]) -> Iterator[None]:
        """Add a span for a write request. A write outside an attempt gets no span."""
        if not self._is_sampled():
            yield
            return
        kind = self._trace.SpanKind.CLIENT
        with self._tracer.start_as_current_span(name, kind=kind, attributes=dict(attributes)):
            yield

    def meter(self, metrics: SchedulerMetrics, name: str, filters: Plugins, scores: Plugins) -> ProfileMeter:
        """Return a meter whose laps are also spans."""
        return TracedMeter(self, metrics, name, filters, scores)

    def _is_sampled(self) -> bool:
        """Return whether the attempt is sampled. Its span may have ended while the pod is being bound."""
        return bool(self._trace.get_current_span().get_span_context().trace_flags.sampled)

    def close(self) -> None:
        """Export the remaining spans."""
        self._provider.shutdown()


class TracedMeter(ProfileMeter):
    """A meter that also makes spans."""

    def __init__(
        self, tracing: Tracing, metrics: SchedulerMetrics, name: str, filters: Plugins, scores: Plugins
    ) -> None:
        super().__init__(metrics, name, filters, scores)
        self._tracing = tracing

    def lap(self, point: str, status: str = SUCCESS) -> None:
        began = self._last
        super().lap(point, status)
        self._tracing.point(point, began, self._last, status)

    def observe(self, point: str, since: float, status: str = SUCCESS) -> float:
        now = super().observe(point, since, status)
        self._tracing.point(point, since, now, status)
        return now


def from_environment(environ: Mapping[str, str], now: Callable[[], float], wall: Callable[[], float]) -> Tracing | None:
    """Return tracing as the OTEL_* variables request, or None if they do not or the extra is missing."""
    exporter = environ.get("OTEL_TRACES_EXPORTER") or ("otlp" if any(map(environ.get, ENDPOINTS)) else "none")
    if exporter == "none" or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if exporter not in EXPORTERS:
        _log.warning("Traces are disabled: OTEL_TRACES_EXPORTER must be otlp, console or none", found=exporter)
        return None
    try:
        return Tracing(_provider(exporter, environ), now, wall)
    except ImportError as error:
        _log.warning("Traces are disabled: run pip install 'moorage[otel]'", missing=error.name, exporter=exporter)
        return None


EXPORTERS = ("otlp", "console")


def _provider(exporter: str, environ: Mapping[str, str]) -> Any:
    """Build the provider. The SDK itself reads the other variables: endpoint, headers, sampler, batches, resource."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    named = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": NAME})
    sampler = None if environ.get("OTEL_TRACES_SAMPLER") else ParentBasedTraceIdRatio(DEFAULT_RATIO)
    provider = TracerProvider(sampler=sampler, resource=resource)
    made = OTLPSpanExporter() if exporter == "otlp" else ConsoleSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(made))
    return provider


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
