"""The measured usage of nodes, from metrics.k8s.io, Prometheus or a load-watcher.

    provider        the arguments that name the source of the values
    sample          one response of a source: percent of capacity by node
    metrics_server, prometheus, load_watcher    the sources
    history         the samples of the last minutes, and functions over a window of them
    usage           NodeUsage, which plugins read; one per process and provider

A plugin creates its NodeUsage in the constructor, keeps it current in `run`, and reads columns from it in its hooks; no
hook waits for a source."""

from moorage.contrib.metrics.history import LATEST, Window
from moorage.contrib.metrics.provider import MetricProvider
from moorage.contrib.metrics.sample import CPU, MEMORY, Sample
from moorage.contrib.metrics.usage import NodeUsage

__all__ = ["CPU", "LATEST", "MEMORY", "MetricProvider", "NodeUsage", "Sample", "Window"]
