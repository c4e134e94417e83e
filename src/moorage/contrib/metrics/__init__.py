"""What nodes use, measured while the scheduler runs: from metrics.k8s.io, Prometheus or a load-watcher.

    provider        the arguments that say where values come from
    sample          one answer of a source: percent of capacity by node
    metrics_server, prometheus, load_watcher    the sources
    history         the samples of the last minutes, and functions over a window of them
    usage           NodeUsage: one per process and provider; what plugins read

A plugin makes its NodeUsage in the constructor, keeps it current in `run`, and reads columns from it in its
hooks; no hook waits for anything."""

from moorage.contrib.metrics.history import LATEST, Window
from moorage.contrib.metrics.provider import MetricProvider
from moorage.contrib.metrics.sample import CPU, MEMORY, Sample
from moorage.contrib.metrics.usage import NodeUsage

__all__ = ["CPU", "LATEST", "MEMORY", "MetricProvider", "NodeUsage", "Sample", "Window"]
