"""Traces: spans of attempts, points and writes, whose they are, and that they are off unless asked for."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

import pytest

from moorage.api import decoding
from moorage.api.resources import NODES, PODS
from moorage.app.scheduler import Scheduler
from moorage.sim import loop
from moorage.sim.loop import EPOCH, VirtualClock
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.telemetry import tracing
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.telemetry.tracing import Tracing
from moorage.testing import make_node, make_pod

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"


def schedule(*pods: Any, sampler: Any = None) -> list[Any]:
    """The spans, in the order of their end, of a scheduler that places the pods on a small node."""
    pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=sampler)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def main() -> None:
        clock = VirtualClock()
        store = Store(clock.wall, random.Random(0))
        store.load(NODES, decoding.to_builtins(make_node("n", cpu="4")))
        async with Scheduler(
            LocalClient(store, clock),
            clock=clock,
            discover=False,
            instance="test",
            metrics=SchedulerMetrics(clock.now),
            tracing=Tracing(provider, clock.now, clock.wall),
        ):
            for pod in pods:
                await asyncio.sleep(1)
                store.load(PODS, decoding.to_builtins(pod))
            await asyncio.sleep(1)

    loop.run(main())
    return list(exporter.get_finished_spans())


def named(spans: list[Any], name: str) -> Any:
    (found,) = [span for span in spans if span.name == name]
    return found


def test_an_attempt_is_a_span_and_its_points_and_its_bind_belong_to_it():
    spans = schedule(make_pod("p", cpu="1"))
    attempt = named(spans, "attempt")
    attributes = dict(attempt.attributes)
    assert attributes.pop("k8s.pod.uid")
    assert attributes == {
        "k8s.pod.name": "p",
        "k8s.namespace.name": "default",
        "k8s.node.name": "n",
        "moorage.profile": "default-scheduler",
        "moorage.attempt": 1,
        "moorage.result": "scheduled",
        "moorage.nodes.evaluated": 1,
        "moorage.nodes.feasible": 1,
    }
    assert attempt.parent is None
    others = [span for span in spans if span is not attempt]
    assert {"PreFilter", "Filter", "Reserve", "Bind"} <= {span.name for span in others}
    assert {span.context.trace_id for span in others} == {attempt.context.trace_id}
    write = named(spans, "create pods/binding")
    assert dict(write.attributes) == {"moorage.object": "p"}
    assert write.parent.span_id == attempt.context.span_id
    point = named(spans, "Filter")
    assert point.parent.span_id == attempt.context.span_id
    times = [attempt.start_time, point.start_time, point.end_time, attempt.end_time]
    assert times == sorted(times)
    assert EPOCH <= times[0] / 1e9 <= times[-1] / 1e9 <= EPOCH + 10
    assert dict(point.attributes) == {"moorage.status": "Success"}


def test_a_refusal_says_why_and_its_status_update_belongs_to_it():
    spans = schedule(make_pod("large", cpu="64"))
    attempt = named(spans, "attempt")
    assert attempt.attributes["moorage.result"] == "unschedulable"
    assert "Insufficient cpu" in attempt.attributes["moorage.message"]
    assert named(spans, "patch pods/status").parent.span_id == attempt.context.span_id
    assert named(spans, "PostFilter").attributes["moorage.status"] == "Unschedulable"


def test_a_pod_brings_its_own_trace():
    spans = schedule(make_pod("p", annotations={"traceparent": SAMPLED}))
    attempt = named(spans, "attempt")
    assert {f"{span.context.trace_id:032x}" for span in spans} == {TRACE}
    assert f"{attempt.parent.span_id:016x}" == PARENT


@pytest.mark.parametrize("traceparent", ["", "nonsense", "00-00000000000000000000000000000000-0-01"])
def test_a_trace_context_that_is_none_is_none(traceparent):
    assert named(schedule(make_pod("p", annotations={"traceparent": traceparent})), "attempt").parent is None


def test_an_attempt_that_is_not_sampled_leaves_nothing():
    pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    none = ParentBasedTraceIdRatio(0.0)
    assert schedule(make_pod("p"), make_pod("large", cpu="64"), sampler=none) == []
    assert schedule(make_pod("p", annotations={"traceparent": NOT_SAMPLED})) == []
    own = schedule(make_pod("a"), make_pod("p", annotations={"traceparent": SAMPLED}), sampler=none)
    assert {f"{span.context.trace_id:032x}" for span in own} == {TRACE}


def test_attempts_do_not_run_into_each_other():
    spans = schedule(make_pod("a"), make_pod("b"))
    attempts = [span for span in spans if span.name == "attempt"]
    assert [span.parent for span in attempts] == [None, None]
    binds = [span for span in spans if span.name == "create pods/binding"]
    assert [bind.context.trace_id for bind in binds] == [span.context.trace_id for span in attempts]


CLOCKS = (lambda: 0.0, lambda: 0.0)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "zipkin"},
        {"OTEL_METRICS_EXPORTER": "otlp"},
    ],
)
def test_nothing_is_imported_unless_the_environment_names_an_exporter(environ, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert tracing.from_environment(environ, *CLOCKS) is None


def test_without_the_extra_there_is_a_warning_that_names_it(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert tracing.from_environment({"OTEL_TRACES_EXPORTER": "otlp"}, *CLOCKS) is None
    assert "moorage[otel]" in caplog.text


@pytest.mark.parametrize(
    "environ", [{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, {"OTEL_TRACES_EXPORTER": "console"}]
)
def test_the_environment_starts_it(environ, monkeypatch, capsys):
    pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    made = tracing.from_environment(environ, *CLOCKS)
    assert made is not None
    provider = made._provider
    assert provider.resource.attributes["service.name"] == "moorage"
    assert "0.01" in provider.sampler.get_description()
    made.close()
