"""Requests of the API client as client-go's metrics count them."""

from __future__ import annotations

from urllib.parse import urlsplit

from mooring.telemetry.metrics import SchedulerMetrics


class RequestMeter:
    """Implements `client.observing.RequestObserver` for one API server."""

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
